"""Soft top-two sampling: ask what says most about the leader's closest rivals (docs/anytime.md, section 7).

No guarantee depends on it, only the number of questions. Rivals weigh exp(−nats/temperature), nats being the evidence
against them.

early   the question whose answer is expected to say most against the likeliest theta with which rivals have caught up:
        where many answers are all alike, the quadratic approximation at the estimate is blind
late    with C the inverse information at the estimate, the vector of the largest expected decrease of
        Σ_z weight_z·log ‖y_z‖²_C; C is updated by it, and so on through the stage
"""

from dataclasses import dataclass

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.glm import probability_of_yes, softplus, variance
from surepick.glm.batched_newton import minimise_losses, onto
from surepick.glm.loss import Vectors
from surepick.identify.anytime.tuning import TUNING


def quadratic_nats(points: Floats, leader: int, theta: Floats, C: Floats, epsilon: float) -> Floats:
    """q_z = max(yᵀtheta + epsilon, 0)²/(2‖y‖²_C) of every item z: nats by which it is behind; the leader's is infinite.

    O(items · d²).
    """
    y = points[leader] - points
    squared = np.einsum("zi,ij,zj->z", y, C, y)
    gap = np.maximum(y @ theta + epsilon, 0.0)
    q = gap**2 / (2 * np.maximum(squared, 1e-300))
    q[leader] = np.inf
    return np.asarray(q)


def closest_rivals(nats: Floats) -> Integers:
    """The items with the fewest nats against them; `nats` of the leader is infinite."""
    return np.argsort(nats, kind="stable")[: min(TUNING.closest, len(nats) - 1)]


@dataclass(frozen=True, eq=False)
class CaughtUpRivals:
    """The closest rivals of a leader, and the likeliest theta of each with yᵀtheta = −epsilon, y = leader − rival."""

    items: Integers
    theta: Floats
    nats: Floats
    """By how many each theta is less likely than the estimate, once all questions are answered."""
    coming: Floats
    """How many of these are to come from answers that are not in yet, if the estimate is right."""
    ahead: Floats
    """For each a theta at which the rival is `Tuning.ahead` standard errors ahead: at a tie nothing tells it apart."""


def caught_up_rivals(
    rows: Floats,
    answers: tuple[Floats, Floats],
    waiting: Floats,
    theta: Floats,
    items: Integers,
    y: Floats,
    C: Floats,
    ridge: float,
    epsilon: float,
) -> CaughtUpRivals:
    """Find them by a few batched Newton steps from where the quadratic approximation has them.

    Args:
        rows: Measurement vectors.
        answers: Pulls and wins of each so far.
        waiting: Questions without an answer yet; what the estimate expects of them is counted.
        theta: The estimate.
        items: The rivals.
        y: Leader − rival for each of them.
        C: Inverse information at the estimate.
        ridge: Weight that keeps each theta finite where answers are all alike.
        epsilon: Of the null yᵀtheta ≤ −epsilon.

    O(rivals · (vectors + d) · d²). No guarantee depends on the points, so six steps will do.
    """
    across = y @ C
    squared = np.maximum(np.einsum("zi,zi->z", y, across), 1e-300)
    points = theta - across * (np.maximum(y @ theta + epsilon, 0.0) / squared)[:, None]
    further = across * (TUNING.ahead / np.sqrt(squared))[:, None]
    pulls, wins = answers
    where = np.flatnonzero(pulls + waiting)
    if not len(where):
        return CaughtUpRivals(items, points, np.zeros(len(items)), np.zeros(len(items)), points - further)
    vectors = Vectors(np.ascontiguousarray(rows[where]))
    mu, waiting = probability_of_yes(vectors.rows @ theta), waiting[where]
    pulls, wins = pulls[where] + waiting, wins[where] + waiting * mu
    shape = (len(items), len(where))
    points = minimise_losses(
        vectors,
        np.broadcast_to(pulls, shape),
        np.broadcast_to(wins, shape),
        onto(points, y, epsilon),
        ridge=np.full(len(items), ridge),
        normals=y,
        tolerance=0.1,
        iterations=6,
    )
    # Steps along the hyperplane leave it by rounding.
    points = onto(points, y, epsilon)
    divergence = expected_nats(vectors.rows, theta, points)
    # The log-likelihood ratio is its expectation under the estimate plus (wins − expected wins)·(difference of logits).
    difference = (vectors.rows @ theta)[:, None] - vectors.rows @ points.T
    nats = pulls @ divergence + (wins - pulls * mu) @ difference
    return CaughtUpRivals(items, points, nats, waiting @ divergence, points - further)


def expected_nats(rows: Floats, theta: Floats, points: Floats) -> Floats:
    """KL(xᵀtheta, xᵀpoint): nats that one answer to x is expected to say against a point; rows × points."""
    here, there = rows @ theta, rows @ points.T
    difference = there - here[:, None]
    return np.asarray(softplus(there) - softplus(here)[:, None] - probability_of_yes(here)[:, None] * difference)


def ask_early(
    rows: Floats,
    theta: Floats,
    points: Floats,
    nats: Floats,
    size: int,
    *,
    enough: float,
    temperature: float = TUNING.early_temperature,
) -> Integers:
    """How often to ask each measurement to refute the points at which rivals are ahead: Σ_z weight_z·KL is largest.

    O(rows · rivals · d).
    """
    weights = _soft_weights(nats, temperature, enough)
    counted = weights > 0
    gain = expected_nats(rows, theta, points[counted]) @ weights[counted]
    best = np.argsort(-gain, kind="stable")[:size]
    counts = np.zeros(len(rows), dtype=np.int64)
    counts[best] = 1
    # A stage of more questions than there are vectors.
    counts[best[0]] += size - len(best)
    return counts


def _soft_weights(nats: Floats, temperature: float, enough: float) -> Floats:
    """Weights of rivals, of sum one."""
    least = nats.min()
    weights = np.exp(-(nats - least) / temperature)
    # Rivals with `enough` nats count no more while others lack: 48 passed rivals once outweighed the last one.
    weights = np.where((nats > max(enough, least)) | (weights <= TUNING.least_weight), 0.0, weights)
    return np.asarray(weights / weights.sum())


def ask_late(
    rows: Floats,
    points: Floats,
    leader: int,
    theta: Floats,
    information: Floats,
    ridge: float,
    size: int,
    nats: Floats,
    *,
    enough: float,
    optimistic: bool = False,
) -> Integers:
    """How often to ask each measurement, `size` questions in all, by the decrease of Σ_z weight_z·log ‖y_z‖²_C.

    Args:
        rows: Measurement vectors.
        points: Items.
        leader: Whose rivals the nats are against.
        theta: The estimate, for variances of answers.
        information: Of all questions so far.
        ridge: Added to it.
        size: Number of questions.
        nats: Against every item; infinite for those that need no more questions.
        enough: Nats after which a rival is no longer asked about.
        optimistic: Take the variance of an answer as large as one standard error allows: estimates from answers that
            all agree call questions useless that were never asked.

    O(picks · candidates · (rivals + d) + rows · rivals · d).
    """
    close = closest_rivals(nats)
    weights = _soft_weights(nats[close], TUNING.temperature, enough)
    close, weights = close[weights > 0], weights[weights > 0]
    # With old information discounted, proportions of the stage make up for those of earlier ones.
    C = np.linalg.inv(TUNING.old_information * information + ridge * np.eye(rows.shape[1]))
    y = points[leader] - points[close]
    x_C = rows @ C
    x_C_y = x_C @ y.T
    x_C_x = np.einsum("xi,xi->x", x_C, rows)
    v = np.abs(rows @ theta)
    s = variance(np.maximum(v - np.sqrt(x_C_x), 0.0) if optimistic else v)
    # An answer to x lowers log ‖y‖²_C by about s(xᵀCy)²/((1 + s·xᵀCx)·yᵀCy).
    y_C_y = np.einsum("zi,ij,zj->z", y, C, y)
    # What is worth little at first is hardly ever worth most later in the stage.
    gain = s / (1.0 + s * x_C_x) * ((x_C_y**2) @ (weights / y_C_y))
    few = np.sort(np.argsort(-gain, kind="stable")[: TUNING.candidates])
    x, x_C, x_C_y, x_C_x, s = rows[few], x_C[few], x_C_y[few], x_C_x[few], s[few]
    picks = min(size, TUNING.picks)
    repeats = np.full(picks, size // picks)
    repeats[: size % picks] += 1
    counts = np.zeros(len(rows), dtype=np.int64)
    for times in repeats:
        gain = s / (1.0 + s * x_C_x) * ((x_C_y**2) @ (weights / y_C_y))
        chosen = int(np.argmax(gain))
        counts[few[chosen]] += times
        # Sherman–Morrison: C falls by shrink·(Cx)(Cx)ᵀ, and all products with it; C itself is never needed again.
        shrink = times * s[chosen] / (1.0 + times * s[chosen] * x_C_x[chosen])
        column = x_C @ x[chosen]
        chosen_y = x_C_y[chosen].copy()
        x_C -= shrink * np.outer(column, x_C[chosen])
        x_C_y -= shrink * np.outer(column, chosen_y)
        x_C_x -= shrink * column**2
        y_C_y -= shrink * chosen_y**2
    return counts


def ask_for_proof(
    rows: Floats, theta: Floats, information: Floats, ridge: float, curvature: Floats, size: int
) -> Integers:
    """How often to ask each vector so that a proof of a directional bound costs less, `size` questions in all.

    `curvature` is what each vector costs the evidence (`DirectionalProcess.curvature`). What a proof loses by not
    knowing theta grows with tr(CB), B = Σ curvature·s·xxᵀ; the vector of its largest expected decrease is asked.
    O(picks · rows · d²).
    """
    s = variance(rows @ theta)
    C = np.linalg.inv(information + ridge * np.eye(rows.shape[1]))
    B = (rows.T * (curvature * s)) @ rows
    counts = np.zeros(len(rows), dtype=np.int64)
    for part in np.array_split(np.arange(size), min(size, TUNING.picks)):
        x_C = rows @ C
        x_C_x = np.einsum("xi,xi->x", x_C, rows)
        # An answer to x lowers tr(CB) by s·xᵀCBCx/(1 + s·xᵀCx).
        gain = s / (1.0 + s * x_C_x) * np.einsum("xi,ij,xj->x", x_C, B, x_C)
        chosen = int(np.argmax(gain))
        strength = len(part) * s[chosen]
        C -= strength / (1.0 + strength * x_C_x[chosen]) * np.outer(x_C[chosen], x_C[chosen])
        counts[chosen] += len(part)
    return counts


def ask_uncovered(rows: Floats, theta: Floats, information: Floats, ridge: float, size: int) -> Integers:
    """How often to ask each vector so that none is left without answers: always the one of largest ‖x‖_C.

    An arm whose few answers all agree leaves the localiser unbounded, and no bound can be proved. O(picks · rows · d).
    """
    s = variance(rows @ theta)
    x_C = rows @ np.linalg.inv(information + ridge * np.eye(rows.shape[1]))
    x_C_x = np.einsum("xi,xi->x", x_C, rows)
    counts = np.zeros(len(rows), dtype=np.int64)
    for part in np.array_split(np.arange(size), min(size, 2 * TUNING.picks)):
        chosen = int(np.argmax(x_C_x))
        strength = len(part) * s[chosen]
        shrink = strength / (1.0 + strength * x_C_x[chosen])
        column = x_C @ rows[chosen]
        x_C -= shrink * np.outer(column, x_C[chosen])
        x_C_x -= shrink * column**2
        counts[chosen] += len(part)
    return counts
