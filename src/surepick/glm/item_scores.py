"""A Gaussian belief about the score of every item: features guide it, the items' own record overrules them.

Model: score of item i = x_iᵀθ + u_i, with θ ~ N(0, ρ²I) and u_i ~ N(0, τ²) independent, and P(i beats j) =
μ(score_i − score_j). In the space of scores the prior is N(0, ρ²XXᵀ + τ²I). Several pairs (ρ, τ) are kept, weighted by
how well they predicted. It predicts, guides the sampling and ranks; no proof depends on it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from surepick._arrays import Floats, Integers
from surepick._cached import cached_property
from surepick.glm.loss import probability_of_yes

OWN_SCALES = (0.7, 1.3, 2.5)
"""Prior standard deviations τ of items' own scores, in log-odds: people's and models' votes lie between them."""

FEATURE_SCALES = ((1.0, 0.1), (3.0, 0.1), (1.0, 0.5), (3.0, 0.5))
"""Pairs (ρ, τ) that trust the features: ρ is the standard deviation of x_iᵀθ over the items."""

ADVICE_SCALES = ((1.0, 0.3), (1.0, 1.0), (0.5, 0.3), (0.5, 1.0))
"""Pairs (c, τ) that trust an advisor: scores are c times the advisor's, with deviations of τ in log-odds."""

PENDING = 32
"""Answers whose effect on the covariance is kept as rank-one terms before it is written out, as one matrix product."""

DRAWS = 64
"""Samples that are kept of each belief; two of them in random proportions are a new one."""

NEWTON_STEPS = 6
"""The posterior of a gap is log-concave; six steps from the old mean reach its mode to a thousandth."""

NODES = 64
"""Nodes of the expected share of an item in a pick; no proof depends on how exact it is."""

LEAST_CHANCE = 1e-9
"""No answer is predicted to be less likely than this."""

PROBIT = math.pi / 8
"""The mean of μ(v) over v ~ N(a, b) is about μ(a/√(1 + πb/8)) (MacKay 1992)."""


@dataclass(frozen=True, eq=False)
class ItemScores:
    """Gaussian beliefs under several prior scales; a value that every answer replaces by a new one.

    The covariance under a scale is `written` − Σ_k e_k e_kᵀ, with one e_k for each of the last answers. So an answer
    costs O(scales·items·(PENDING + DRAWS)) and shares the matrix with the beliefs before it; one in `PENDING` costs a
    product of O(scales·items²·PENDING). Memory: 8·scales·items² bytes, twice that while the product is taken; with
    three scales (no features) 24 MB for 1,000 items, with seven 56 MB.
    """

    mean: Floats
    """Scales × items."""
    variance: Floats
    """Scales × items: the diagonal of the covariance."""
    written: Floats
    """Scales × items × items: the covariance before the last answers."""
    pending: Floats
    """Last answers × scales × items: the rows e_k."""
    drawn: Floats
    """Scales × draws × items: deviations from the mean, drawn from the prior and changed with the covariance."""
    log_weights: Floats
    """Log predictive probability of the past answers under each scale."""

    @classmethod
    def of(cls, features: Floats | None, items: int) -> "ItemScores":
        """The prior, with features (items × d) or without."""
        guided = FEATURE_SCALES if features is not None and features.shape[1] else ()
        own = np.array([*OWN_SCALES, *(tau for _, tau in guided)])
        covariance = np.zeros((len(own), items, items))
        # Fixed, so that beliefs are a function of the answers; which samples are used is drawn with every question.
        noise = np.random.default_rng(0)
        drawn = own[:, None, None] * noise.normal(size=(len(own), DRAWS, items))
        if features is not None and guided:
            centred = features - features.mean(axis=0)
            # Scaled so that ρ is the standard deviation of xᵀθ over the items, whatever the units of the features.
            centred /= math.sqrt(max(float(np.mean(np.einsum("ij,ij->i", centred, centred))), 1e-300))
            kernel = centred @ centred.T
            for place, (rho, _) in enumerate(guided, len(OWN_SCALES)):
                np.multiply(rho**2, kernel, out=covariance[place])
                drawn[place] += rho * noise.normal(size=(DRAWS, centred.shape[1])) @ centred.T
        variance = np.einsum("gii->gi", covariance)  # a view: adding to it adds to the matrix
        variance += own[:, None] ** 2
        nothing = np.zeros((len(own), items))
        none = np.zeros((0, len(own), items))
        return cls(nothing, variance.copy(), covariance, none, drawn, np.zeros(len(own)))

    def advised(self, answers: Iterable[tuple[int, int, float, float]]) -> "ItemScores":
        """With further scales that expect scores like those of an advisor, who gave these answers.

        Each answer is (first, second, wins, answers). The advisor's scores are the belief after them, under the scale
        that predicted them best; how far they are trusted is settled by what they predict, like every scale.
        """
        advisor = self
        for first, second, wins, times in answers:
            advisor = advisor.update(first, second, wins, times)
        best = int(np.argmax(advisor.weights))
        mean, drawn = advisor.mean[best], advisor.drawn[best]
        covariance = advisor._written_out().written[best]
        noise = np.random.default_rng(1).normal(size=(len(ADVICE_SCALES), *drawn.shape))
        c, tau = np.array(ADVICE_SCALES).T[:, :, None]
        more = c[:, :, None] ** 2 * covariance + tau[:, :, None] ** 2 * np.eye(len(mean))
        return ItemScores(
            np.vstack([self.mean, c * mean]),
            np.vstack([self.variance, np.einsum("gii->gi", more)]),
            np.concatenate([self._written_out().written, more]),
            np.zeros((0, len(self.mean) + len(c), len(mean))),
            np.concatenate([self.drawn, c[:, :, None] * drawn + tau[:, :, None] * noise]),
            np.concatenate([self.log_weights, np.zeros(len(c))]),
        )

    def with_components(self, mean: Floats, covariance: Floats, log_weights: Floats) -> "ItemScores":
        """With further scales: Gaussians for all scores, such as the tastes of a population; before the first answer.

        `mean` is components × items, `covariance` components × items × items. `log_weights` say how far each is
        believed beforehand, where the scales so far share a weight of one.
        """
        noise = np.random.default_rng(2).normal(size=(len(mean), DRAWS, mean.shape[1]))
        return ItemScores(
            np.vstack([self.mean, mean]),
            np.vstack([self.variance, np.einsum("gii->gi", covariance)]),
            np.concatenate([self._written_out().written, covariance]),
            np.zeros((0, len(self.mean) + len(mean), mean.shape[1])),
            np.concatenate([self.drawn, noise @ np.linalg.cholesky(covariance).transpose(0, 2, 1)]),
            np.concatenate([np.log(self.weights), log_weights]),
        )

    @cached_property
    def weights(self) -> Floats:
        """How far each scale is believed: proportional to its predictive probability of the past answers."""
        relative = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(relative / relative.sum())

    def gap(self, first: int | Integers, second: int | Integers) -> tuple[Floats, Floats]:
        """Mean and variance of score_first − score_second under each scale; arrays of items are many gaps at once."""
        e, mean, variance = self.pending, self.mean, self.variance
        together = self.written[:, first, second] - np.einsum("ks...,ks...->s...", e[:, :, first], e[:, :, second])
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

    def predict_all(self, first: int | Integers, second: int | Integers) -> Floats:
        """The same for many comparisons at once: arrays of items, or one item and an array."""
        first, second = np.broadcast_arrays(first, second)
        return np.asarray(self.weights @ self._by_scale(first, second))

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
        # The gap of a sample shrinks as the deviation of the gap does; the rest of it follows as the mean does.
        shrunk = (1 / np.sqrt(1 + information * var) - 1) / var
        gaps = (self.drawn[:, :, first] - self.drawn[:, :, second]) * shrunk[:, None]
        q = self._by_scale(first, second)
        gained = wins * np.log(q) + (answers - wins) * np.log(1 - q)
        after = replace(
            self,
            mean=moved,
            variance=self.variance - term**2,
            pending=pending,
            drawn=self.drawn + gaps[:, :, None] * direction[:, None, :],
            log_weights=self.log_weights + gained,
        )
        return after if len(pending) < PENDING else after._written_out()

    def shares(self, items: Sequence[int]) -> Floats:
        """Expected shares of these items in a pick from all of them, by scale: the mean of the softmax of scores.

        By quasi-random nodes: O(scales·nodes·items).
        """
        drawn = self._drawn_scores(items)
        drawn -= drawn.max(axis=2, keepdims=True)
        chances = np.exp(drawn)
        chances /= chances.sum(axis=2, keepdims=True)
        return np.asarray(np.clip(chances.mean(axis=1), LEAST_CHANCE, 1.0))

    def _drawn_scores(self, items: Sequence[int]) -> Floats:
        """Scores of these items at nodes that stand for the belief: scales × nodes × items."""
        joint = self._joint_covariance(items)
        joint += 1e-9 * np.eye(len(items)) * (1 + np.einsum("gii->g", joint))[:, None, None]
        root = np.linalg.cholesky(joint)
        return np.asarray(self.mean[:, None, list(items)] + normal_nodes(len(items)) @ root.transpose(0, 2, 1))

    def _joint_covariance(self, items: Sequence[int]) -> Floats:
        """Covariance of the scores of these items under each scale."""
        where = list(items)
        known = self.pending[:, :, where]
        return np.asarray(self.written[:, where][:, :, where] - np.einsum("ksi,ksj->sij", known, known))

    def update_pick(self, items: Sequence[int], picked: int) -> "ItemScores":
        """After a pick of one of these items, given by its place among them.

        As for a comparison: the posterior of the k scores shown is replaced by the Gaussian at its mode, with the
        multinomial likelihood exp(s_picked)/Σ exp(s_i), and the belief about all items follows by a rank-k update:
        O(scales·(k³ + items·k·PENDING)).
        """
        where, k = list(items), len(items)
        before, joint = self.mean[:, where], self._joint_covariance(items)
        won = (np.arange(k) == picked).astype(np.float64)
        mode = before.copy()
        for _ in range(NEWTON_STEPS):
            p = softmax(mode, axis=1)
            information = p[:, :, None] * (np.eye(k) - p[:, None, :])
            residual = np.einsum("gij,gj->gi", joint, won - p) - (mode - before)
            step = np.linalg.solve(np.eye(k) + joint @ information, residual[:, :, None])[:, :, 0]
            mode += np.clip(step, -2.0, 2.0)
        p = softmax(mode, axis=1)
        # B·Bᵀ is the information diag(p) − ppᵀ.
        root = np.sqrt(p)
        B = root[:, :, None] * np.eye(k) - p[:, :, None] * root[:, None, :]
        return self._after(where, joint, won - p, B, np.log(self.shares(items)[:, picked]))

    def update_ranked(self, items: Sequence[int], above: Floats) -> "ItemScores":
        """After rankings of these items, as comparisons of all pairs: `above[i, j]` times the i-th was above the j-th.

        The posterior of the k scores is replaced by the Gaussian at its mode, with the likelihood of the comparisons:
        O(scales·(k³ + items·k·PENDING)), however many there were.
        """
        where, k = list(items), len(items)
        before, joint = self.mean[:, where], self._joint_covariance(items)
        met = above + above.T

        def slope_and_information(scores: Floats) -> tuple[Floats, Floats]:
            p = probability_of_yes(scores[:, :, None] - scores[:, None, :])
            weights = met * p * (1 - p)
            return (above - met * p).sum(axis=2), weights.sum(axis=2)[:, :, None] * np.eye(k) - weights

        mode = before.copy()
        for _ in range(NEWTON_STEPS):
            slope, information = slope_and_information(mode)
            residual = np.einsum("gij,gj->gi", joint, slope) - (mode - before)
            step = np.linalg.solve(np.eye(k) + joint @ information, residual[:, :, None])[:, :, 0]
            mode += np.clip(step, -2.0, 2.0)
        slope, information = slope_and_information(mode)
        values, vectors = np.linalg.eigh(information)
        first, second = np.triu_indices(k, 1)
        q = self._by_scale(np.array(where)[first], np.array(where)[second])
        gained = np.log(q) @ above[first, second] + np.log(1 - q) @ above[second, first]
        return self._after(where, joint, slope, vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :], gained)

    def _after(self, where: list[int], joint: Floats, slope: Floats, B: Floats, gained: Floats) -> "ItemScores":
        """After answers about a few items whose log-likelihood has this slope and the information B·Bᵀ at the mode.

        The covariance falls by ΣB(I + BᵀΣB)⁻¹BᵀΣ. At the mode the scores moved by `joint`·slope: so all means move by
        their covariance with these items. `gained` is the log predictive probability under each scale.
        """
        inside = B.transpose(0, 2, 1) @ joint @ B
        across = np.stack([self.covariance_with(item) for item in where], axis=1)  # scales × k × items
        lower = np.linalg.cholesky(np.eye(B.shape[2]) + inside)
        moves = B.transpose(0, 2, 1) @ across
        terms = np.linalg.solve(lower, moves)
        after = replace(
            self,
            mean=self.mean + np.einsum("gkn,gk->gn", across, slope),
            variance=np.maximum(self.variance - np.einsum("gkn,gkn->gn", terms, terms), 1e-12),
            pending=np.concatenate([self.pending, terms.transpose(1, 0, 2)]),
            drawn=self.drawn - self.drawn[:, :, where] @ B @ _shrinking(inside) @ moves,
            log_weights=self.log_weights + gained,
        )
        return after if len(after.pending) < PENDING else after._written_out()

    def _written_out(self) -> "ItemScores":
        """The same, with no answers pending."""
        written = np.empty_like(self.written)
        for place, terms in enumerate(self.pending.transpose(1, 0, 2)):
            np.subtract(self.written[place], terms.T @ terms, out=written[place])
        return replace(self, written=written, pending=self.pending[:0].copy())

    def scores(self) -> Floats:
        """Posterior mean of every item's score."""
        return np.asarray(self.weights @ self.mean)

    def sample(self, count: int, items: Integers, rng: np.random.Generator) -> Floats:
        """Scores of these items drawn from the belief, `count` times: samples × items. O(count·items).

        Of two kept samples e and e' of N(0, C), cos(φ)·e + sin(φ)·e' is a sample of it for every φ.
        """
        scales = rng.choice(len(self.mean), size=count, p=self.weights)[:, None]
        one, other = rng.integers(DRAWS, size=(2, count, 1))
        angle = rng.uniform(0, 2 * math.pi, size=(count, 1))
        around = np.cos(angle) * self.drawn[scales, one, items] + np.sin(angle) * self.drawn[scales, other, items]
        return np.asarray(self.mean[scales, items] + around)

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

    def _by_scale(self, first: int | Integers, second: int | Integers) -> Floats:
        mean, var = self.gap(first, second)
        # An item far outside the others may be predicted to win with a probability that rounds to 1. Its logarithm is
        # kept finite, so that a scale which was that wrong loses its weight and nothing becomes undefined.
        return np.clip(probability_of_yes(mean / np.sqrt(1 + PROBIT * var)), LEAST_CHANCE, 1 - LEAST_CHANCE)


def _shrinking(S: Floats) -> Floats:
    """The G with G + Gᵀ − G·S·Gᵀ = (I + S)⁻¹, by which samples of covariance S become samples of S(I + S)⁻¹."""
    values, vectors = np.linalg.eigh(S)
    r = np.sqrt(1 + np.maximum(values, 0.0))
    return np.asarray((vectors / (r * (1 + r))[:, None, :]) @ vectors.transpose(0, 2, 1))


@cache
def normal_nodes(dimension: int) -> Floats:
    """Points that stand for a standard normal distribution: multiples of 2^{j/(d+1)} modulo 1, mirrored.

    They are scaled so that means and covariances are exactly those of the distribution.
    """
    generators = 2 ** (np.arange(1, dimension + 1) / (dimension + 1))
    points = ndtri((np.arange(1, NODES // 2 + 1)[:, None] * generators) % 1)
    root = np.linalg.cholesky(points.T @ points / len(points))
    points = np.linalg.solve(root, points.T).T
    return np.concatenate([points, -points])


def posterior_mode(mean: Floats, var: Floats, wins: float | Integers | Floats, answers: float | Floats = 1.0) -> Floats:
    """Where the posterior of a gap ~ N(mean, var) peaks after `answers` comparisons with `wins`; by components."""
    mode = mean.copy()
    for _ in range(NEWTON_STEPS):
        p = probability_of_yes(mode)
        step = ((wins - answers * p) - (mode - mean) / var) / (answers * p * (1 - p) + 1 / var)
        mode += np.clip(step, -2.0, 2.0)  # many answers at once may overshoot where the curve is flat
    return mode
