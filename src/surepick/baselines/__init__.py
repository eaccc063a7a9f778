"""What others do, to compare with: the paper's printed forms, rival policies, intervals and contextual policies."""

from surepick.baselines.eco_log import EcoLog
from surepick.baselines.gl_gape import GlGapE
from surepick.baselines.intervals import interval_faury, interval_li, interval_printed, interval_wald
from surepick.baselines.logistic_ucb import LogisticUcb
from surepick.baselines.ofu import OfuGlb, OfuLog
from surepick.baselines.printed_forms import PassivePrinted, RageGlmPrinted, RageGlmR
from surepick.baselines.rage_glm_2 import RageGlm2
from surepick.baselines.rage_linear import RageLinear
from surepick.baselines.simple import Greedy, LogisticThompson, SquareCb, UniformArms
from surepick.baselines.sup_cb_glm import SupCbGlm
from surepick.baselines.ucb_glm import UcbGlm

__all__ = [
    "EcoLog",
    "GlGapE",
    "Greedy",
    "LogisticThompson",
    "LogisticUcb",
    "OfuGlb",
    "OfuLog",
    "PassivePrinted",
    "RageGlm2",
    "RageGlmPrinted",
    "RageGlmR",
    "RageLinear",
    "SquareCb",
    "SupCbGlm",
    "UcbGlm",
    "UniformArms",
    "interval_faury",
    "interval_li",
    "interval_printed",
    "interval_wald",
]
