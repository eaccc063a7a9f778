"""A Gaussian belief about the score of every item: features guide it, the items' own record overrules them.

Model: score of item i = x_iᵀθ + u_i, with θ ~ N(0, ρ²I) and u_i ~ N(0, τ²) independent, and P(i beats j) =
μ(score_i − score_j). In the space of scores the prior is N(0, ρ²XXᵀ + τ²I). Several pairs (ρ, τ) are kept, weighted by
how well they predicted. It predicts, guides the sampling and ranks; no proof depends on it.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from surepick._arrays import Floats, Integers
from surepick.glm.loss import probability_of_yes

OWN_SCALES = (0.7, 1.3, 2.5)
"""Prior standard deviations τ of items' own scores, in log-odds: people's and models' votes lie between them."""

FEATURE_SCALES = ((1.0, 0.1), (3.0, 0.1), (1.0, 0.5), (3.0, 0.5))
"""Pairs (ρ, τ) that trust the features: ρ is the standard deviation of x_iᵀθ over the items."""

PENDING = 32
"""Answers whose effect on the covariance is kept as rank-one terms before it is written out, as one matrix product."""

NEWTON_STEPS = 6
"""The posterior of a gap is log-concave; six steps from the old mean reach its mode to a thousandth."""

LEAST_CHANCE = 1e-9
"""No answer is predicted to be less likely than this."""

PROBIT = math.pi / 8
"""The mean of μ(v) over v ~ N(a, b) is about μ(a/√(1 + πb/8)) (MacKay 1992)."""


@dataclass(frozen=True, eq=False)
class ItemScores:
    """Gaussian beliefs under several prior scales; a value that every answer replaces by a new one.

    The covariance under a scale is `written` − Σ_k e_k e_kᵀ, with one e_k for each of the last answers. So an answer
    costs O(scales·items·PENDING) and shares the matrix with the beliefs before it; one in `PENDING` costs a product of
    O(scales·items²·PENDING). Memory: 8·scales·items² bytes, twice that while the product is taken; with three scales
    (no features) 24 MB for 1,000 items, with seven 56 MB.
    """

    mean: Floats
    """Scales × items."""
    variance: Floats
    """Scales × items: the diagonal of the covariance."""
    written: Floats
    """Scales × items × items: the covariance before the last answers."""
    pending: Floats
    """Last answers × scales × items: the rows e_k."""
    log_weights: Floats
    """Log predictive probability of the past answers under each scale."""

    @classmethod
    def of(cls, features: Floats | None, items: int) -> "ItemScores":
        """The prior, with features (items × d) or without."""
        guided = FEATURE_SCALES if features is not None and features.shape[1] else ()
        covariance = np.zeros((len(OWN_SCALES) + len(guided), items, items))
        if features is not None and guided:
            centred = features - features.mean(axis=0)
            # Scaled so that ρ is the standard deviation of xᵀθ over the items, whatever the units of the features.
            kernel = centred @ centred.T / max(float(np.mean(np.einsum("ij,ij->i", centred, centred))), 1e-300)
            for place, (rho, _) in enumerate(guided, len(OWN_SCALES)):
                np.multiply(rho**2, kernel, out=covariance[place])
        variance = np.einsum("gii->gi", covariance)  # a view: adding to it adds to the matrix
        variance += np.array([*OWN_SCALES, *(tau for _, tau in guided)])[:, None] ** 2
        scales = len(covariance)
        nothing = np.zeros((scales, items))
        return cls(nothing, variance.copy(), covariance, np.zeros((0, scales, items)), np.zeros(scales))

    @property
    def weights(self) -> Floats:
        """How far each scale is believed: proportional to its predictive probability of the past answers."""
        relative = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(relative / relative.sum())

    def gap(self, first: int, second: int) -> tuple[Floats, Floats]:
        """Mean and variance of score_first − score_second under each scale."""
        e, mean, variance = self.pending, self.mean, self.variance
        together = self.written[:, first, second] - np.einsum("ks,ks->s", e[:, :, first], e[:, :, second])
        # After very many answers what is left of the variance may be lost to rounding.
        gap = np.maximum(variance[:, first] + variance[:, second] - 2 * together, 1e-12)
        return mean[:, first] - mean[:, second], gap

    def covariance_with(self, item: int) -> Floats:
        """Covariance of every item's score with this one's under each scale."""
        known = np.einsum("ksn,ks->sn", self.pending, self.pending[:, :, item])
        return np.asarray(self.written[:, item, :] - known)

    def predict(self, first: int, second: int) -> float:
        """Probability that the first beats the second."""
        return float(self.weights @ self._by_scale(first, second))

    def update(self, first: int, second: int, wins: float, answers: float = 1.0) -> "ItemScores":
        """After answers to one comparison of which the first item won `wins` (a tie is half a win).

        Assumed-density filtering: along the gap of the two items the posterior is replaced by the Gaussian at its mode
        (Laplace), and the belief about all items follows by a rank-one update. Its cost does not grow with the number
        of answers; after 500 answers on ten items its means differ from a full refit by less than their deviations.
        """
        mean, var = self.gap(first, second)
        mode = posterior_mode(mean, var, wins, answers)
        p = probability_of_yes(mode)
        information = answers * p * (1 - p)
        direction = self.covariance_with(first) - self.covariance_with(second)
        moved = self.mean + direction * ((mode - mean) / var)[:, None]
        term = direction * np.sqrt(information / (1 + information * var))[:, None]
        pending = np.concatenate([self.pending, term[None]])
        q = self._by_scale(first, second)
        gained = wins * np.log(q) + (answers - wins) * np.log(1 - q)
        after = replace(
            self,
            mean=moved,
            variance=self.variance - term**2,
            pending=pending,
            log_weights=self.log_weights + gained,
        )
        return after if len(pending) < PENDING else after._written_out()

    def _written_out(self) -> "ItemScores":
        """The same, with no answers pending."""
        written = np.empty_like(self.written)
        for place, terms in enumerate(self.pending.transpose(1, 0, 2)):
            np.subtract(self.written[place], terms.T @ terms, out=written[place])
        return replace(self, written=written, pending=self.pending[:0].copy())

    def scores(self) -> Floats:
        """Posterior mean of every item's score."""
        return np.asarray(self.weights @ self.mean)

    def deviations_from(self, item: int) -> Floats:
        """Posterior standard deviation of every item's gap to this one, all scales together."""
        w = self.weights
        variances = w @ (self.variance[:, [item]] + self.variance - 2 * self.covariance_with(item))
        gaps = self.mean[:, [item]] - self.mean
        spread = w @ gaps**2 - (w @ gaps) ** 2  # disagreement between the scales
        return np.asarray(np.sqrt(np.maximum(variances + spread, 1e-12)))

    def chance_of_best(self, item: int, others: Integers, margin: float = 0.0) -> float:
        """About the probability that no other is better by more than the margin: a product, as if independent."""
        if not len(others):
            return 1.0
        z = (self.scores()[item] - self.scores()[others] + margin) / self.deviations_from(item)[others]
        return float(np.prod(ndtr(z)))

    def _by_scale(self, first: int, second: int) -> Floats:
        mean, var = self.gap(first, second)
        # An item far outside the others may be predicted to win with a probability that rounds to 1. Its logarithm is
        # kept finite, so that a scale which was that wrong loses its weight and nothing becomes undefined.
        return np.clip(probability_of_yes(mean / np.sqrt(1 + PROBIT * var)), LEAST_CHANCE, 1 - LEAST_CHANCE)


def posterior_mode(mean: Floats, var: Floats, wins: float | Integers, answers: float = 1.0) -> Floats:
    """Where the posterior of a gap ~ N(mean, var) peaks after `answers` comparisons with `wins`; by components."""
    mode = mean.copy()
    for _ in range(NEWTON_STEPS):
        p = probability_of_yes(mode)
        step = ((wins - answers * p) - (mode - mean) / var) / (answers * p * (1 - p) + 1 / var)
        mode += np.clip(step, -2.0, 2.0)  # many answers at once may overshoot where the curve is flat
    return mode
