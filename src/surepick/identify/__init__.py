"""Best-arm identification: problems, policies and verdicts.

Reading order: `problem`, `policy` (what every policy is), `verdict`, `stagewise` (the frame of those that look after
complete stages), `rage_glm`, `certified` (what a stage proves), `static`. See docs/identify.md.
"""

from surepick.identify.anytime import Anytime
from surepick.identify.forecast_result import Forecast
from surepick.identify.gl_gape import GlGapE
from surepick.identify.menu import POLICIES, policy_from_json, policy_named
from surepick.identify.policy import CannotClose, Plan, Policy, Wait
from surepick.identify.problem import Problem
from surepick.identify.rage_glm import RageGlm
from surepick.identify.rage_glm_2 import RageGlm2
from surepick.identify.rage_glm_r import RageGlmR
from surepick.identify.rage_linear import RageLinear
from surepick.identify.search import DrawnAnswers, PlanJudge, run
from surepick.identify.stagewise import Draft, Stages, Stagewise, Standing
from surepick.identify.static import GOptimal, Passive, Uniform
from surepick.identify.verdict import Rival, Status, Verdict

__all__ = [
    "POLICIES",
    "Anytime",
    "CannotClose",
    "Draft",
    "DrawnAnswers",
    "Forecast",
    "GOptimal",
    "GlGapE",
    "Passive",
    "Plan",
    "PlanJudge",
    "Policy",
    "Problem",
    "RageGlm",
    "RageGlm2",
    "RageGlmR",
    "RageLinear",
    "Rival",
    "Stages",
    "Stagewise",
    "Standing",
    "Status",
    "Uniform",
    "Verdict",
    "Wait",
    "policy_from_json",
    "policy_named",
    "run",
]
