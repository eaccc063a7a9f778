"""Best-arm identification: problems, policies and verdicts.

Reading order: `problem`, `policy` (what every policy is), `verdict`, `stages` (the record of a search), `staged`
(policies that evaluate answered stages, RAGE-GLM among them), `winner` (the default for comparisons), `anytime` (the
default for other questions), `population` and `posterior` (for a person drawn from a known population), `ladder` (what
a search proves under each assumption). See docs/identify.md, docs/assumptions.md, docs/anytime.md, docs/population.md.
"""

from surepick.identify.anytime.policy import Anytime
from surepick.identify.exclusion.policy import Exclusion
from surepick.identify.policy import CannotClose, Plan, Policy, Wait
from surepick.identify.population import Population
from surepick.identify.posterior import Posterior
from surepick.identify.problem import Problem
from surepick.identify.simulation import DrawnAnswers, PlanJudge, run
from surepick.identify.staged.base import Draft, Elimination, Stages, Stagewise
from surepick.identify.staged.rage_glm import RageGlm
from surepick.identify.staged.static_designs import GOptimal, Passive, Uniform
from surepick.identify.verdict import Claim, Forecast, Rival, Status, Verdict
from surepick.identify.winner import Winner

__all__ = [
    "Anytime",
    "CannotClose",
    "Claim",
    "Draft",
    "DrawnAnswers",
    "Elimination",
    "Exclusion",
    "Forecast",
    "GOptimal",
    "Passive",
    "Plan",
    "PlanJudge",
    "Policy",
    "Population",
    "Posterior",
    "Problem",
    "RageGlm",
    "Rival",
    "Stages",
    "Stagewise",
    "Status",
    "Uniform",
    "Verdict",
    "Wait",
    "Winner",
    "run",
]
