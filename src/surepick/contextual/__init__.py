"""Decisions in a stream of contexts: choose one of the arms offered, learn from a yes or no, lose little.

Reading order: `policy` (the interface), `greedy`, `likelihood_ratio` with `ratio_set` (the one to use), `sup_logistic`
with `levels`, `session` (use in production), `plain` (the inner loops; `compiled` has the same for numba).
"""

from surepick.contextual.eco_log import EcoLog
from surepick.contextual.greedy import Greedy
from surepick.contextual.likelihood_ratio import LikelihoodRatioUcb
from surepick.contextual.logistic_ucb import LogisticUcb
from surepick.contextual.menu import NAMES, policy_by_name
from surepick.contextual.ofu_glb import OfuGlb
from surepick.contextual.ofu_log import OfuLog
from surepick.contextual.one_pass import OnePassUcb
from surepick.contextual.policy import Choice, Facts, Policy
from surepick.contextual.session import ContextualSession
from surepick.contextual.square_cb import SquareCb
from surepick.contextual.sup_cb_glm import SupCbGlm
from surepick.contextual.sup_logistic import SupLogistic
from surepick.contextual.thompson import LogisticThompson
from surepick.contextual.ucb_glm import UcbGlm
from surepick.contextual.uniform import Uniform

__all__ = [
    "NAMES",
    "Choice",
    "ContextualSession",
    "EcoLog",
    "Facts",
    "Greedy",
    "LikelihoodRatioUcb",
    "LogisticThompson",
    "LogisticUcb",
    "OfuGlb",
    "OfuLog",
    "OnePassUcb",
    "Policy",
    "SquareCb",
    "SupCbGlm",
    "SupLogistic",
    "UcbGlm",
    "Uniform",
    "policy_by_name",
]
