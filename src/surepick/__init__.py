"""surepick: find the best item from yes/no or A-versus-B answers, and say how sure it is.

Reading order for newcomers: the README's example, `session`, `identify`, `design`, `confidence`, `logistic`, `linalg`;
docs/architecture.md has the map.
"""

from surepick import design, identify, limits
from surepick.certificate import CertificateRefused, Checked, verify_certificate
from surepick.confidence import (
    Evidence,
    Intervals,
    in_given_order,
    interval_anytime,
    interval_corrected,
    interval_faury,
    interval_li,
    interval_printed,
    interval_wald,
    plug_in_evidence,
)
from surepick.design import (
    Design,
    DesignStatus,
    apportion,
    d_optimal,
    g_optimal,
    gap_optimal,
    max_optimal,
    pairs_optimal,
    xy_optimal,
)
from surepick.errors import InvalidInput, MissingExtra, NotIdentifiable, SurepickError
from surepick.guarantee import Guarantee
from surepick.identify import (
    Anytime,
    CannotClose,
    Forecast,
    GlGapE,
    GOptimal,
    Passive,
    Plan,
    Policy,
    Problem,
    RageGlm,
    RageGlm2,
    RageGlmR,
    RageLinear,
    Rival,
    Status,
    Uniform,
    Verdict,
    Wait,
)
from surepick.logistic import Fit, FitStatus, Tally, fit
from surepick.session import Question, Session, find_best

__version__ = "0.1.0.dev0"

__all__ = [
    "Anytime",
    "CannotClose",
    "CertificateRefused",
    "Checked",
    "Design",
    "DesignStatus",
    "Evidence",
    "Fit",
    "FitStatus",
    "Forecast",
    "GOptimal",
    "GlGapE",
    "Guarantee",
    "Intervals",
    "InvalidInput",
    "MissingExtra",
    "NotIdentifiable",
    "Passive",
    "Plan",
    "Policy",
    "Problem",
    "Question",
    "RageGlm",
    "RageGlm2",
    "RageGlmR",
    "RageLinear",
    "Rival",
    "Session",
    "Status",
    "SurepickError",
    "Tally",
    "Uniform",
    "Verdict",
    "Wait",
    "apportion",
    "d_optimal",
    "design",
    "find_best",
    "fit",
    "g_optimal",
    "gap_optimal",
    "identify",
    "in_given_order",
    "interval_anytime",
    "interval_corrected",
    "interval_faury",
    "interval_li",
    "interval_printed",
    "interval_wald",
    "limits",
    "max_optimal",
    "pairs_optimal",
    "plug_in_evidence",
    "verify_certificate",
    "xy_optimal",
]
