"""People with a favourite colour: colours, nine features of each, and somebody's taste."""

import numpy as np
from numpy.typing import NDArray

from surepick import validate
from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.worlds.world import World

Floats = NDArray[np.float64]

CLOSE_ENOUGH = 0.1
"""Relative difference of the gap from the one wanted."""

TRIES = 200_000


def person(*, colours: int = 37, gap: float = 0.35, norm: float | None = None, seed: int = 0) -> World:
    """One person who compares colours: θ* of a random direction, drawn until the best gap is about the one wanted.

    Features are standardised CIELAB coordinates, their squares and products, scaled so that the longest difference
    has length one. Without `norm` it is drawn between 4 and 25.
    """
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


def colour_features(rgb: Floats) -> Floats:
    """Nine features of colours given by red, green and blue between 0 and 1."""
    lab = _cielab(rgb)
    lab = (lab - lab.mean(axis=0)) / lab.std(axis=0)
    first, second, third = lab.T
    features = np.column_stack([lab, lab**2, first * second, first * third, second * third])
    apart = np.linalg.norm(features[:, None] - features[None], axis=2)
    return np.asarray(features / float(apart.max()))


def _cielab(rgb: Floats) -> Floats:
    """CIE 1976 L*a*b* of sRGB colours, white point D65."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
    )
    xyz = linear @ to_xyz.T / np.array([0.95047, 1.0, 1.08883])
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.column_stack([116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])])
