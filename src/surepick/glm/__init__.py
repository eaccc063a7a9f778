"""The logistic model: answers as counts, and the fit of a score per unit of each feature.

Reading order: `tally` (the data), `loss` (the formulas), `fit` (the estimate), `newton` and `batched_newton` (how it is
found, for one problem and for many), `duality` (what a point found proves), `separation` (whether there is one).
"""

from surepick.glm.fit import Fit, FitStatus, fit
from surepick.glm.loss import probability_of_yes, softplus, variance
from surepick.glm.tally import Tally

__all__ = ["Fit", "FitStatus", "Tally", "fit", "probability_of_yes", "softplus", "variance"]
