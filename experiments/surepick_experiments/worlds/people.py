"""People with a favourite colour: colours, nine features of each, and somebody's taste."""

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.io.items import colour_features
from surepick.judges.simulated import World

CLOSE_ENOUGH = 0.1
"""Relative difference of the gap from the one wanted."""

TRIES = 200_000


def person(*, colours: int = 37, gap: float = 0.35, norm: float | None = None, seed: int = 0) -> World:
    """One person who compares colours: θ* of a random direction, drawn until the best gap is about the one wanted.

    Features are standardised CIELAB coordinates, their squares and products, scaled so that the longest difference
    has length one. Without `norm` it is drawn between 4 and 25.
    """
    colours = validate.whole("colours", colours, least=2)
    rng = np.random.default_rng([seed, colours, 77])
    features = colour_features(rng.random((colours, 3)))
    gap = validate.positive("gap", gap)
    for _ in range(TRIES):
        direction: Floats = np.asarray(rng.normal(size=features.shape[1]))
        length = rng.uniform(4, 25) if norm is None else norm
        theta = direction * (length / float(np.linalg.norm(direction)))
        second, best = np.sort(features @ theta)[-2:]
        if abs(best - second - gap) <= CLOSE_ENOUGH * gap:
            return World(f"person-{colours}-{gap:g}", Problem.from_pairs(features), theta)
    raise InvalidInput(f"No taste with a gap of {gap:g} was found in {TRIES:,} tries; ask for a smaller gap.")
