"""Best-arm identification: problems, policies and verdicts.

Reading order: `problem`, `policy` (what every policy is), `verdict`, `stagewise` (the frame of those that look after
complete stages), `rage_glm`, `certified` (what a stage proves). See docs/identify.md.
"""

from surepick.identify.menu import POLICIES, policy_from_json
from surepick.identify.policy import CannotClose, Plan, Policy, Wait
from surepick.identify.problem import Problem
from surepick.identify.rage_glm import RageGlm
from surepick.identify.verdict import Rival, Status, Verdict

__all__ = [
    "POLICIES",
    "CannotClose",
    "Plan",
    "Policy",
    "Problem",
    "RageGlm",
    "Rival",
    "Status",
    "Verdict",
    "Wait",
    "policy_from_json",
]
