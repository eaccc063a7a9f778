"""The logistic model: answers as counts, and the fit of a score per unit of each feature.

Reading order: `tally` (the data), `model` (the formulas), `fit` (the estimate), `problem`, `newton`, `separation`
(how).
"""

from surepick.logistic.fit import Fit, fit
from surepick.logistic.model import probability_of_yes, softplus, variance
from surepick.logistic.problem import FitStatus
from surepick.logistic.tally import Tally

__all__ = ["Fit", "FitStatus", "Tally", "fit", "probability_of_yes", "softplus", "variance"]
