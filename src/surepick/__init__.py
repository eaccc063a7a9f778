"""surepick: find the best item from yes/no or A-versus-B answers, and say how sure it is.

Reading order for newcomers: the README's example, `confidence`, `logistic`, `linalg`.
"""

from surepick.errors import InvalidInput, MissingExtra, NotIdentifiable, SurepickError
from surepick.guarantee import Guarantee
from surepick.logistic import Fit, FitStatus, Tally, fit

__version__ = "0.1.0.dev0"

__all__ = [
    "Fit",
    "FitStatus",
    "Guarantee",
    "InvalidInput",
    "MissingExtra",
    "NotIdentifiable",
    "SurepickError",
    "Tally",
    "fit",
]
