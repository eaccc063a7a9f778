"""For each rival of a leader the likeliest θ with which it has caught up: what has to be refuted.

At human scale, where many answers are all alike, the quadratic approximation at the estimate is blind: it calls a rival
refuted of which a θ far away explains all answers, and questions useless whose answers that θ would get wrong. No
guarantee depends on these points, only when proofs are tried and what is asked.
"""

from dataclasses import dataclass

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.glm import probability_of_yes, softplus
from surepick.glm.batched_newton import minimise_losses, onto
from surepick.glm.loss import Vectors

CLOSEST = 96
"""Closest rivals looked at."""

AHEAD = 0.5
"""Standard errors by which a rival is ahead at the point that a question is to refute."""


@dataclass(frozen=True, eq=False)
class Alternatives:
    """The closest rivals of a leader, the likeliest θ of each with yᵀθ = −epsilon, y = leader − rival."""

    items: Integers
    points: Floats
    nats: Floats
    """By which each is less likely than the guess, when all questions are answered ..."""
    coming: Floats
    """... and how many of these are to come from answers that are not there yet, if the guess is right."""
    ahead: Floats
    """For each a θ with which the rival is AHEAD standard errors ahead: at a tie nothing tells it apart."""


def likeliest(
    rows: Floats,
    answers: tuple[Floats, Floats],
    waiting: Floats,
    guess: Floats,
    items: Integers,
    away: Floats,
    inverse: Floats,
    ridge: float,
    epsilon: float,
) -> Alternatives:
    """By a few batched Newton steps from where the quadratic approximation has them; O(rivals · (vectors + d) · d²).

    `answers` are pulls and wins; of the answers `waiting` for, what the guess expects is counted.
    """
    across = away @ inverse
    squared = np.maximum(np.einsum("zi,zi->z", away, across), 1e-300)
    points = guess - across * (np.maximum(away @ guess + epsilon, 0.0) / squared)[:, None]
    further = across * (AHEAD / np.sqrt(squared))[:, None]
    pulls, wins = answers
    where = np.flatnonzero(pulls + waiting)
    if not len(where):
        return Alternatives(items, points, np.zeros(len(items)), np.zeros(len(items)), points - further)
    vectors = Vectors(np.ascontiguousarray(rows[where]))
    likely, open_ = probability_of_yes(vectors.rows @ guess), waiting[where]
    pulls, wins = pulls[where] + open_, wins[where] + open_ * likely
    shape = (len(items), len(where))
    points = minimise_losses(
        vectors,
        np.broadcast_to(pulls, shape),
        np.broadcast_to(wins, shape),
        onto(points, away, epsilon),
        ridge=np.full(len(items), ridge),
        normals=away,
        tolerance=0.1,
        iterations=6,
    )
    points = onto(points, away, epsilon)
    apart = surprise(vectors.rows, guess, points)
    # What there is less of than expected, or more, is on top of the surprise that the guess expects.
    moved = (vectors.rows @ guess)[:, None] - vectors.rows @ points.T
    nats = pulls @ apart + (wins - pulls * likely) @ moved
    return Alternatives(items, points, nats, open_ @ apart, points - further)


def surprise(rows: Floats, guess: Floats, points: Floats) -> Floats:
    """Nats that one answer to each row is expected to say against each point, if the guess is right; rows × points."""
    here, there = rows @ guess, rows @ points.T
    moved = there - here[:, None]
    return np.asarray(softplus(there) - softplus(here)[:, None] - probability_of_yes(here)[:, None] * moved)
