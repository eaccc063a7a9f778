"""Methods that are told the truth and only have to prove it: no lower bound for one instance can exceed what they take.

`told_winner` and `told_features` stop with the true best item when the likelihood ratio of the truth is at least 1/δ
against every alternative under which another item is best. Whatever the questions, that happens with probability at
most δ under any alternative. `told_leader` is told less: what it costs to find out how clearly each rival loses.
"""

import math

import numpy as np
from scipy.special import logsumexp

from surepick._arrays import Floats
from surepick.glm import probability_of_yes
from surepick.glm.batched_newton import minimise_losses, onto
from surepick.glm.loss import Vectors, softplus
from surepick.limits import Instance, kl_divergence
from surepick.limits.winner_bound import comparisons_per_nat

TEMPERATURE = 0.3
"""Of the weights of rivals in the choice of a question; 0.3 took fewer questions than 1, 2 and 5 (three people)."""

GROWTH = 0.02
"""Questions chosen at once, as a share of those asked."""

RIDGE = 1e-4
"""Keeps alternatives finite where all answers agree; it hides about 0.03 nats from the proof."""

MOST = 20_000

HORIZON = 1500
"""Answers to one rival after which `told_leader` takes it as excluded; with a gap of .4 hardly any takes more."""


def told_winner(chances: Floats, *, delta: float, runs: int, rng: np.random.Generator) -> float:
    """Mean comparisons if the matrix is known: every loser meets the item that beats it most, until it is excluded."""
    losing = _least_chances(chances)
    nats, asked = np.zeros((runs, len(losing))), np.zeros((runs, len(losing)), dtype=np.int64)
    going = np.ones_like(nats, dtype=bool)
    while going.any():
        won = rng.random(nats.shape) < losing
        nats += going * np.where(won, np.log(2 * losing), np.log(2 * (1 - losing)))
        asked += going
        going &= nats < math.log(1 / delta)
    return float(asked.sum(axis=1).mean())


def _least_chances(chances: Floats) -> Floats:
    """The probability with which each rival beats the item that beats it most."""
    divergences = 1 / comparisons_per_nat(chances)
    # KL(p, ½) is one to one for p < ½: Newton's method from below would do, a table is simpler.
    p = np.linspace(1e-9, 0.5, 200_001)[:-1]
    return np.asarray(np.interp(-divergences, -(math.log(2) + p * np.log(p) + (1 - p) * np.log1p(-p)), p))


def told_leader(chances: Floats, *, delta: float) -> float:
    """Mean comparisons if the leader and all probabilities are known, but not which rival has which probability.

    Every rival meets the item that beats it most until the mean of the likelihood ratios of all probabilities against ½
    reaches a threshold: the least one at which a rival of probability ½ is ever excluded with probability at most δ.
    Such tests are nearly the best on average over the probabilities (Lerche 1986). Exact up to `HORIZON` answers to a
    rival, after which it counts as excluded, by recursion over the number of losses: O(HORIZON²·rivals).
    """
    p = _least_chances(chances)
    log_ratios = [_mean_log_ratio(p, answers) for answers in range(HORIZON + 1)]

    def excluded(chance: float, threshold: float) -> tuple[float, float]:
        """Probability to be excluded before the horizon, and mean number of answers, of a rival with this chance."""
        going, done, answers = np.ones(1), 0.0, 0.0
        for asked, log_ratio in enumerate(log_ratios):
            stops = going[log_ratio >= threshold].sum()
            done, answers = done + stops, answers + asked * stops
            going = np.where(log_ratio >= threshold, 0.0, going)
            if asked == HORIZON:
                return float(done), float(answers + HORIZON * going.sum())
            going = np.append(going * chance, 0.0) + np.append(0.0, going * (1 - chance))
        raise AssertionError("The loop ends at the horizon.")

    low, high = 0.0, math.log(1 / delta)  # at 1/δ Ville's inequality holds; overshooting leaves some of δ unused
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (low, middle) if excluded(0.5, middle)[0] <= delta else (middle, high)
    return sum(excluded(chance, high)[1] for chance in p.tolist())


def _mean_log_ratio(p: Floats, answers: int) -> Floats:
    """Log of the mean over p of the likelihood ratio of p against ½, after every number of losses among the answers."""
    losses = np.arange(answers + 1)
    logs = np.outer(np.log(2 * (1 - p)), losses) + np.outer(np.log(2 * p), answers - losses)
    return np.asarray(logsumexp(logs, axis=0) - math.log(len(p)))


def told_features(instance: Instance, *, delta: float, rng: np.random.Generator) -> int:
    """Questions of one run if θ* is known: the question asked tells the rivals with least evidence from θ*."""
    # In coordinates that the measurement vectors span.
    rows = instance.measurements @ instance.basis.transform
    theta: Floats = np.asarray(np.linalg.lstsq(rows, instance.logits, rcond=None)[0], dtype=np.float64)
    normals = (instance.items[instance.best] - instance.items[instance.rivals]) @ instance.basis.transform
    needed, chances = math.log(1 / delta), probability_of_yes(instance.logits)
    pulls, wins, asked = np.zeros(len(rows)), np.zeros(len(rows)), 0
    nats, points = np.zeros(len(normals)), onto(theta, normals, 0.0)
    estimate = theta[None]
    while asked < MOST:
        weights = np.exp(-(nats - nats.min()) / TEMPERATURE) * (nats < needed)
        information = kl_divergence(instance.logits[:, None], rows @ points.T) @ (weights / weights.sum())
        question, count = int(np.argmax(information)), 1 + int(GROWTH * asked)
        pulls[question] += count
        wins[question] += rng.binomial(count, chances[question])
        asked += count
        met = np.flatnonzero(pulls)
        vectors, n, k = Vectors(np.ascontiguousarray(rows[met])), pulls[met], wins[met]
        all_n, all_k = (np.broadcast_to(each, (len(normals), len(met))) for each in (n, k))
        ridge = np.full(len(normals), RIDGE)
        points = minimise_losses(vectors, all_n, all_k, points, ridge=ridge, normals=normals, tolerance=1e-3)
        logits = points @ vectors.rows.T
        own = vectors.rows @ theta
        nats = (softplus(logits) @ n - logits @ k) - float(softplus(own) @ n - own @ k)
        if nats.min() >= needed:
            # The least evidence is on the hyperplane only if the estimate is not beyond it.
            estimate = minimise_losses(vectors, n[None], k[None], estimate, ridge=ridge[:1], tolerance=1e-3)
            beyond = normals @ estimate[0] <= 0
            if not beyond.any():
                return asked
            nats = np.where(beyond, 0.0, nats)
    return asked
