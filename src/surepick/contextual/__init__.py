"""Decisions in a stream of contexts: choose one of the arms offered, learn from a yes or no, lose little.

Reading order: `policy` (the interface), `likelihood_ratio` (the one to use), `sup_logistic`
with `sup_levels`. Rival policies are in `surepick.baselines`, the session in `surepick.session`.
"""

from surepick.contextual.likelihood_ratio import LikelihoodRatioUcb
from surepick.contextual.one_pass import OnePassUcb
from surepick.contextual.policy import Choice, ContextualPolicy, Facts
from surepick.contextual.sup_logistic import SupLogistic

__all__ = ["Choice", "ContextualPolicy", "Facts", "LikelihoodRatioUcb", "OnePassUcb", "SupLogistic"]
