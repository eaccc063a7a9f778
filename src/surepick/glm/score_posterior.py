"""The posterior of all items' scores when they are drawn from a known population, by draws that are weighted exactly.

Model: scores s ~ Σ_g w_g N(m_g, K_g), and P(i beats j) = μ(s_i − s_j). Every answer updates a Gaussian approximation of
the posterior under each component g (expectation propagation: Minka 2001). It is only where the draws come from: a draw
is weighted by what the posterior is there, so the approximation costs effective draws and no bias.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr, log_expit, xlogy

from surepick._arrays import Floats, Integers
from surepick._cached import cached_property
from surepick.glm.item_scores import posterior_mode
from surepick.glm.loss import probability_of_yes

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
"""Gauss and Hermite's rule for integrals over a gap: accurate enough for an approximation."""

WIDE = 0.2
"""Share of draws from the prior moved to the mode: no weight exceeds a bound that is known (`_Proposal.log_bound`)."""

NEWTON_STEPS, FARTHEST, NEAR = 12, 3.0, 0.05
"""Of the modes: steps, how far one may change a gap, and the change at which they are near enough."""

TEMPERED = 0.8
"""Share of the answers' precision in what draws come from: its tails are then wider than those of the posterior."""

SWEEPS = 2
"""Rounds over all questions that refine the approximation before draws; more do not make draws more effective."""

DAMPING = 0.8
"""How far a round moves: without damping, rounds that change all questions at once may oscillate."""

LIKELY = 1e-3
"""Only components of at least this probability are refined; the others have few draws."""

EVEN_SHARE = 0.005
"""Share of draws divided evenly between the components, however unlikely they are by the approximation."""

FACTORS = 1000
"""Numbers of at most 2 that are multiplied at a time: their product is below the largest float."""

LEAST_SITE = 1e-9
"""Precision of a question that says nothing about the gap."""


@dataclass(frozen=True, eq=False)
class ScorePrior:
    """A mixture of Gaussians for the scores of all items: how tastes are distributed in a population."""

    mean: Floats
    """Components × items."""
    covariance: Floats
    """Components × items × items, each positive definite."""
    log_weights: Floats
    """Of the components; their exponentials sum to one."""

    @cached_property
    def roots(self) -> Floats:
        """Lower triangular roots of the covariances."""
        return np.asarray(np.linalg.cholesky(self.covariance), dtype=np.float64)

    @cached_property
    def precision(self) -> Floats:
        """Inverses of the covariances."""
        return np.asarray(np.linalg.inv(self.covariance))

    @cached_property
    def log_norms(self) -> Floats:
        """Logarithms of the components' densities at their means, without the factor (2π)^(−items/2)."""
        return np.asarray(-np.sum(np.log(np.einsum("gii->gi", self.roots)), axis=1))

    def log_density(self, g: int, scores: Floats) -> float:
        """Of component g at these scores, without the factor (2π)^(−items/2)."""
        away = scores - self.mean[g]
        return float(self.log_norms[g] - 0.5 * away @ self.precision[g] @ away)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Tastes of this many people, one row each."""
        chosen = rng.choice(len(self.log_weights), size=count, p=np.exp(self.log_weights))
        noise = rng.normal(size=(count, self.mean.shape[1]))
        return np.asarray(self.mean[chosen] + np.einsum("nij,nj->ni", self.roots[chosen], noise))


@dataclass(frozen=True, eq=False)
class Draws:
    """Independent draws, weighted by the posterior over the density they come from."""

    scores: Floats
    """Draws × items."""
    log_weights: Floats
    """Logarithm of prior times likelihood over the density of the draw: the mean weight estimates the evidence."""
    log_ratios: Floats | None = None
    """The same without the likelihood, where the draws are to be weighted again after further answers."""

    @cached_property
    def weights(self) -> Floats:
        """Weights that sum to one."""
        return np.asarray(np.exp(self.log_weights - _log_sum(self.log_weights)))

    @cached_property
    def log_evidence(self) -> float:
        """Logarithm of the probability of the answers; the probability is estimated without bias."""
        return float(_log_sum(self.log_weights)) - math.log(len(self.log_weights))

    @property
    def evidence_error(self) -> float:
        """Standard error of `log_evidence`."""
        return math.sqrt(max(float(np.sum(self.weights**2)) - 1 / len(self.weights), 0.0))

    @cached_property
    def effective(self) -> float:
        """How many draws of equal weight would be worth as much (Kish)."""
        return float(1 / np.sum(self.weights**2))


@dataclass(frozen=True, eq=False)
class _Proposal:
    """Where draws come from: a component by its share, then its tempered approximation or its prior moved to the mode.

    Both are of the form prior times exp(log_scale + push·gaps − precision·gaps²/2), `gaps` those of the questions. For
    the moved priors, the "wide" ones, the precision is zero and the rest the tangent of the log-likelihood at the mode,
    log L ≤ height + slope·gaps, divided by its mean exp(log_top) under the prior.
    """

    shares: Floats
    """Of the approximations, and then of the moved priors; they sum to one."""
    means: Floats
    """Components × items: of the tempered approximation."""
    roots: Floats
    """A with A Aᵀ its covariance, for every component."""
    sites: Floats
    """Components × questions × 2: the tempered sites, precision and precision times mean."""
    log_scales: Floats
    wide_means: Floats
    slopes: Floats
    """Components × questions."""
    wide_log_scales: Floats
    log_bound: float
    """No draw has a larger log-weight: their shares are proportional to w_g exp(log_top), log L at most the tangent."""

    def log_ratios(self, prior: ScorePrior, g: int, gaps: Floats) -> Floats:
        """Density of component g and scores by the prior over that by which they are drawn.

        `gaps` are those of the questions, questions × draws: the ratio depends on nothing else of the scores.
        """
        precision, push = self.sites[g].T
        share, wide_share = np.log(self.shares.reshape(2, -1)[:, g])
        by_fit = share + self.log_scales[g] + push @ gaps - precision / 2 @ gaps**2
        by_wide = wide_share + self.wide_log_scales[g] + self.slopes[g] @ gaps
        return np.asarray(prior.log_weights[g] - np.logaddexp(by_fit, by_wide))


@dataclass(frozen=True, eq=False)
class ScorePosterior:
    """What the answers so far say of the scores; a value that every answer replaces by a new one.

    An answer costs O(components·items²), a draw O(items·(items + questions)).
    """

    prior: ScorePrior
    mean: Floats
    """Components × items: of the Gaussian approximation."""
    covariance: Floats
    log_evidence: Floats
    """Of each component, by the approximation."""
    pairs: Integers
    """Distinct questions: first and second item."""
    wins: Floats
    """Of the first item, for every question."""
    losses: Floats
    sites: Floats
    """Components × questions × 2: precision and precision times mean of the Gaussian that stands for the answers."""

    @classmethod
    def of(cls, prior: ScorePrior) -> "ScorePosterior":
        """Before the first answer."""
        components = len(prior.log_weights)
        none = np.zeros(0)
        return cls(
            prior,
            prior.mean,
            prior.covariance,
            np.zeros(components),
            np.zeros((0, 2), dtype=np.int64),
            none,
            none,
            np.zeros((components, 0, 2)),
        )

    def update(self, first: int, second: int, wins: int, losses: int) -> "ScorePosterior":
        """After more answers to one question, of which the first item won `wins`: one step of expectation propagation.

        All answers to the question together are replaced by a Gaussian in its gap such that mean and variance of the
        gap are those of the exact posterior, with Gaussians in place of the other questions.
        """
        place = np.flatnonzero((self.pairs == (first, second)).all(axis=1))
        if not len(place):
            nothing = np.zeros((len(self.mean), 1, 2))
            return replace(
                self,
                pairs=np.vstack([self.pairs, [(first, second)]]),
                wins=np.append(self.wins, 0.0),
                losses=np.append(self.losses, 0.0),
                sites=np.concatenate([self.sites, nothing], axis=1),
            ).update(first, second, wins, losses)
        number = int(place[0])
        won, lost = self.wins.copy(), self.losses.copy()
        won[number] += wins
        lost[number] += losses
        mean, variance = self._gap(first, second)
        old = self.sites[:, number]
        now = np.array([won[number], lost[number]])
        new, centre, spread = _matched(mean, variance, old, *now[:, None])
        chance = [
            _log_sum(_at_nodes(centre, spread, *counts[:, None])[1])
            for counts in (np.array([self.wins[number], self.losses[number]]), now)
        ]
        sites = self.sites.copy()
        sites[:, number] = new
        # The precision grows by g along e_first − e_second: a change of rank one.
        g, push = (new - old).T
        direction = self.covariance[:, :, first] - self.covariance[:, :, second]
        moved = (push - g * mean) / (1 + g * variance)
        shrunk = g / (1 + g * variance)
        return replace(
            self,
            mean=self.mean + direction * moved[:, None],
            covariance=self.covariance - shrunk[:, None, None] * direction[:, :, None] * direction[:, None, :],
            log_evidence=self.log_evidence + chance[1] - chance[0],
            wins=won,
            losses=lost,
            sites=sites,
        )

    def under(self, prior: ScorePrior) -> "ScorePosterior":
        """After the same answers of a person of another population."""
        posterior = ScorePosterior.of(prior)
        for (first, second), wins, losses in zip(self.pairs.tolist(), self.wins, self.losses, strict=True):
            posterior = posterior.update(first, second, int(wins), int(losses))
        return posterior

    def _gap(self, first: int, second: int) -> tuple[Floats, Floats]:
        c = self.covariance
        variance = c[:, first, first] + c[:, second, second] - 2 * c[:, first, second]
        return self.mean[:, first] - self.mean[:, second], np.maximum(variance, 1e-12)

    @cached_property
    def shares(self) -> Floats:
        """Probabilities of the components by the approximation."""
        likely = self.log_evidence + self.prior.log_weights
        return np.asarray(np.exp(likely - _log_sum(likely)))

    @cached_property
    def _refined(self) -> Floats:
        """The sites after `SWEEPS` rounds of expectation propagation over all questions at once."""
        sites = self.sites.copy()
        if not len(self.pairs):
            return sites
        likely = np.flatnonzero(self.shares >= LIKELY)
        first, second = self.pairs.T
        mean, covariance = self.mean[likely], self.covariance[likely]
        for sweep in range(SWEEPS):
            if sweep:
                precision, shift = self._with_sites(likely, sites[likely])
                covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
                mean = np.einsum("gij,gj->gi", covariance, shift)
            variance = covariance[:, first, first] + covariance[:, second, second] - 2 * covariance[:, first, second]
            moved = _matched(
                mean[:, first] - mean[:, second], np.maximum(variance, 1e-12), sites[likely], self.wins, self.losses
            )
            sites[likely] = (1 - DAMPING) * sites[likely] + DAMPING * moved[0]
        return sites

    def _with_sites(self, components: Integers, sites: Floats) -> tuple[Floats, Floats]:
        """Precision, and precision times mean, of these components' priors with Gaussians in place of the answers."""
        prior, (first, second) = self.prior, self.pairs.T
        precision = prior.precision[components].copy()
        shift = np.einsum("gij,gj->gi", precision, prior.mean[components])
        for number, (weight, push) in enumerate(sites.transpose(0, 2, 1)):
            # Every question is asked about another pair, so no entry off the diagonal is changed twice.
            precision[number, first, second] -= weight
            precision[number, second, first] -= weight
            for item in (first, second):
                np.add.at(precision[number], (item, item), weight)
            np.add.at(shift[number], first, push)
            np.subtract.at(shift[number], second, push)
        return precision, shift

    def _gaps(self, scores: Floats) -> Floats:
        """Of all questions: questions × draws, for items × draws."""
        return np.asarray(scores[self.pairs[:, 0]] - scores[self.pairs[:, 1]])

    def _log_likelihood(self, gaps: Floats) -> Floats:
        """Of all answers, for every draw.

        log μ(v) = min(v, 0) − log(1 + e^−|v|). The factors 1 + e^−|v| are at most 2, so up to `FACTORS` of
        them are multiplied before one logarithm is taken, which costs as much as ten multiplications.
        """
        answers = self.wins + self.losses
        logs = self.wins @ gaps - answers @ np.maximum(gaps, 0.0)
        factors = 1.0 + np.exp(-np.abs(gaps))
        for count in np.unique(answers).tolist():
            alike = factors[answers == count]
            for start in range(0, len(alike), FACTORS):
                logs -= count * np.log(np.prod(alike[start : start + FACTORS], axis=0))
        return np.asarray(logs)

    @cached_property
    def _slopes(self) -> Floats:
        """Components × questions: derivatives of the log-likelihood by the gaps, at each component's posterior mode."""
        prior, everyone = self.prior, np.arange(len(self.shares))
        first, second = self.pairs.T
        answers, scores = self.wins + self.losses, self.mean
        for _ in range(NEWTON_STEPS):
            p = probability_of_yes(scores[:, first] - scores[:, second])
            slopes = np.asarray(self.wins - answers * p)
            if not len(answers):
                break
            precision, shift = self._with_sites(everyone, np.stack([answers * p * (1 - p), slopes], axis=-1))
            gradient = shift - np.einsum("gij,gj->gi", prior.precision, scores)
            step = np.linalg.solve(precision, gradient[..., None])[..., 0]
            far = np.abs(step[:, first] - step[:, second]).max(axis=1)
            if np.max(far) < NEAR:
                break
            scores = scores + step * np.minimum(1.0, FARTHEST / np.maximum(far, FARTHEST))[:, None]
        return slopes

    @cached_property
    def _proposal(self) -> _Proposal:
        prior, everyone = self.prior, np.arange(len(self.shares))
        gaps = prior.mean[:, self.pairs[:, 0]] - prior.mean[:, self.pairs[:, 1]]
        sites = TEMPERED * self._refined
        precision, shift = self._with_sites(everyone, sites)
        roots = np.asarray(np.linalg.inv(np.linalg.cholesky(precision)), dtype=np.float64).transpose(0, 2, 1)
        means = np.einsum("gij,gkj,gk->gi", roots, roots, shift, optimize=True)
        # Both densities at the mean of the prior, whose gaps are taken out of the sites.
        away = prior.mean - means
        log_scales = (
            -np.sum(np.log(np.einsum("gii->gi", roots)), axis=1)
            - 0.5 * np.einsum("gi,gij,gj->g", away, precision, away)
            - prior.log_norms
            - np.sum(sites[..., 1] * gaps - sites[..., 0] / 2 * gaps**2, axis=1)
        )
        # A tangent with these slopes touches log μ(v)^wins μ(−v)^losses where μ(v) = (wins − slope)/answers; its height
        # there is minus the entropy of that coin. Any slopes give a valid bound, those of the mode the smallest.
        slopes, answers = self._slopes, self.wins + self.losses
        heights = -np.sum(entr(self.wins - slopes) + entr(self.losses + slopes) + xlogy(answers, answers), axis=1)
        shown = np.eye(prior.mean.shape[1])[self.pairs]
        pushes = slopes @ (shown[:, 0] - shown[:, 1])
        moves = np.einsum("gij,gj->gi", prior.covariance, pushes)
        log_means = np.sum(slopes * gaps, axis=1) + 0.5 * np.sum(pushes * moves, axis=1)
        tops = prior.log_weights + heights + log_means
        shares = (1 - EVEN_SHARE) * self.shares + EVEN_SHARE / len(self.shares)
        return _Proposal(
            np.concatenate([(1 - WIDE) * shares, WIDE * np.exp(tops - _log_sum(tops))]),
            means,
            roots,
            sites,
            log_scales,
            prior.mean + moves,
            slopes,
            -log_means,
            float(_log_sum(tops)) - math.log(WIDE),
        )

    @property
    def log_bound(self) -> float:
        """No draw can have a larger log-weight (docs/population.md, Lemma 2)."""
        return self._proposal.log_bound

    def draws(self, count: int, rng: np.random.Generator) -> Draws:
        """Draws from the posterior by importance sampling, in no particular order.

        A component g and one of its two Gaussians are drawn by their shares, then scores from that Gaussian. The weight
        is w_g N(s; m_g, K_g) L(s) over the density of having drawn (g, s), by either of the two.
        """
        prior, proposal = self.prior, self._proposal
        counts = rng.multinomial(count, proposal.shares).reshape(2, -1)
        scores = rng.standard_normal((self.mean.shape[1], count))
        gaps, ratios, start = np.empty((len(self.pairs), count)), np.empty(count), 0
        for g in np.flatnonzero(counts.sum(axis=0)).tolist():
            middle, end = start + int(counts[0, g]), start + int(counts[:, g].sum())
            for part, mean, root in (
                (slice(start, middle), proposal.means[g], proposal.roots[g]),
                (slice(middle, end), proposal.wide_means[g], prior.roots[g]),
            ):
                scores[:, part] = mean[:, None] + root @ scores[:, part]
            part = slice(start, end)
            gaps[:, part] = self._gaps(scores[:, part])
            ratios[part] = proposal.log_ratios(prior, g, gaps[:, part])
            start = end
        return Draws(scores.T, ratios + self._log_likelihood(gaps), ratios)

    def weighted(self, draws: Draws) -> Draws:
        """Draws of an earlier state, weighted by the answers that there are now."""
        ratios = draws.log_ratios
        assert ratios is not None
        return Draws(draws.scores, ratios + self._log_likelihood(self._gaps(draws.scores.T)), ratios)

    def log_weights_at(self, scores: Floats) -> tuple[Floats, Floats]:
        """For one person's scores: their log-weights if drawn with each component, and its chance given the scores."""
        prior, gaps = self.prior, self._gaps(scores[:, None])
        components = range(len(self.shares))
        logs = np.array([self._proposal.log_ratios(prior, g, gaps)[0] for g in components])
        dense = prior.log_weights + np.array([prior.log_density(g, scores) for g in components])
        return logs + self._log_likelihood(gaps)[0], np.asarray(np.exp(dense - _log_sum(dense)))


@dataclass(frozen=True, eq=False)
class PeoplesAnswers:
    """Comparisons of many people, people × questions: items, wins and losses of the first; no answers fill rows up."""

    first: Integers
    second: Integers
    wins: Floats
    losses: Floats

    @classmethod
    def of(cls, people: Sequence[Sequence[tuple[int, int, int, int]]]) -> "PeoplesAnswers":
        """Of people with rows of first item, second item, wins and losses of the first."""
        table = np.zeros((len(people), max(map(len, people)), 4), dtype=np.int64)
        table[:, :, 1] = 1  # any two items do where there are no answers
        for number, person in enumerate(people):
            table[number, : len(person)] = person
        first, second, wins, losses = np.moveaxis(table, -1, 0)
        return cls(first, second, wins.astype(np.float64), losses.astype(np.float64))

    def approximated(
        self, mean: Floats, covariance: Floats, sites: Floats | None = None, *, sweeps: int
    ) -> tuple[Floats, Floats, Floats]:
        """Means and covariances of all people's scores ~ N(mean, covariance), and the sites they come from.

        Rounds of expectation propagation over all questions at once, from these `sites` or from none; a round costs
        O(people·items²·(items + questions)).
        """
        shown = np.eye(len(mean))[self.first] - np.eye(len(mean))[self.second]
        precision = np.linalg.inv(covariance)
        sites = np.zeros((*self.wins.shape, 2)) if sites is None else sites
        for sweep in range(sweeps + 1):
            weighted = shown * sites[..., :1]
            covariances = np.linalg.inv(precision + shown.transpose(0, 2, 1) @ weighted)
            shifts = precision @ mean + np.einsum("pqi,pq->pi", shown, sites[..., 1])
            means = np.einsum("pij,pj->pi", covariances, shifts)
            if sweep < sweeps:
                rows = np.arange(len(means))[:, None]
                # The diagonal of covariances between the gaps of the questions.
                variance = np.einsum("pqi,pqi->pq", shown @ covariances, shown)
                gaps = means[rows, self.first] - means[rows, self.second]
                found = _matched(gaps, np.maximum(variance, 1e-12), sites, self.wins, self.losses)[0]
                sites = (1 - DAMPING) * sites + DAMPING * found
        return means, np.asarray(covariances, dtype=np.float64), sites


def _log_sum(logs: Floats) -> Floats:
    """log Σ exp along the last axis; SciPy's takes ten times as long on few numbers."""
    top = np.max(logs, axis=-1)
    return np.asarray(top + np.log(np.sum(np.exp(logs - top[..., None]), axis=-1)))


def _matched(
    mean: Floats, variance: Floats, sites: Floats, wins: Floats, losses: Floats
) -> tuple[Floats, Floats, Floats]:
    """New sites of questions, by components × questions, and the means and variances of their gaps with these.

    The belief about a gap without its own answers (the cavity) is N(mean, variance) with the old site divided out. The
    new site is such that mean and variance are those of the cavity times the answers' exact likelihood.
    """
    without = 1 / variance - sites[..., 0]
    cavity = np.maximum(without, 1e-9)
    centre = (mean / variance - sites[..., 1]) / cavity
    new_mean, new_variance = _tilted(centre, 1 / cavity, wins, losses)
    # No variance is below 1 over the mean curvature, which is at most the cavity's and a quarter per answer. Where
    # the quadrature fails, or rounding leaves no cavity, this bound or the old site keeps the approximation sound.
    most = np.broadcast_to((wins + losses) / 4, cavity.shape)
    precision = np.clip(1 / np.maximum(new_variance, 1e-12) - cavity, LEAST_SITE, most)
    found = np.stack([precision, new_mean * (cavity + precision) - cavity * centre], axis=-1)
    return np.where((without > 1e-9)[..., None], found, sites), centre, 1 / cavity


def _tilted(mean: Floats, variance: Floats, wins: Floats, losses: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the density proportional to μ(v)^wins μ(−v)^losses N(v; mean, variance), by elements."""
    v, logs = _at_nodes(mean, variance, wins, losses)
    share = np.exp(logs - _log_sum(logs)[..., None])
    centre = np.sum(share * v, axis=-1)
    return centre, np.sum(share * (v - centre[..., None]) ** 2, axis=-1)


def _at_nodes(mean: Floats, variance: Floats, wins: Floats, losses: Floats) -> tuple[Floats, Floats]:
    """Nodes around the mode, and the logarithm of what each is worth in an integral over the gap."""
    answers = wins + losses
    mode = posterior_mode(mean, variance, wins, answers)
    p = probability_of_yes(mode)
    width = 1 / np.sqrt(1 / variance + answers * p * (1 - p))
    v = mode[..., None] + width[..., None] * NODES
    logs = (
        wins[..., None] * v
        + answers[..., None] * log_expit(-v)
        - (v - mean[..., None]) ** 2 / (2 * variance[..., None])
        + NODES**2 / 2
        + np.log(NODE_WEIGHTS)
        + np.log(width / np.sqrt(2 * np.pi * variance))[..., None]
    )
    return v, np.asarray(logs)
