"""The logistic model: answers as counts, and the fit of a score per unit of each feature.

Reading order: `tally` (the data), `model` (the formulas), `fit` (the estimate), `problem`, `newton`, `separation`
(how).
"""

from surepick.glm.fit import Fit, fit
from surepick.glm.link import probability_of_yes, softplus, variance
from surepick.glm.loss import FitStatus
from surepick.glm.tally import Tally

__all__ = ["Fit", "FitStatus", "Tally", "fit", "probability_of_yes", "softplus", "variance"]
