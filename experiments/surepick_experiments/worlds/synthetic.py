"""Worlds with a formula: the benchmarks of the paper, families that are hard on purpose, and people with a taste."""

import math

import numpy as np

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.io.items import colour_features
from surepick.judges.simulated import World
from surepick.limits import kappa_family

CATALOGUE = {
    "open": (3327, 1e-4, 0.01),
    "pointy": (2932, 0.3, None),
    "sporty": (3219, 0.3, None),
    "comfort": (3374, 0.05, None),
}
"""Items, gap between best and second, and how far apart they are where they are nearly the same picture: the four
columns of Jun et al. 2021, Table 1. Only near twins explain that a gap of 1e-4 took 1e8 questions and not 1e12."""

CLOSE_ENOUGH = 0.1
"""Largest relative difference between a drawn gap and the one wanted."""

TRIES = 200_000
"""Directions drawn before the search for a gap is given up."""


def soare(dimension: int, *, angle: float = 0.1, length: float = 2.0) -> World:
    """d coordinate vectors and one turned by `angle` from the first towards the second; θ* = length·e₁; X = Z."""
    if dimension < 2:
        raise InvalidInput(f"Soare's benchmark needs at least 2 dimensions, got {dimension}.")
    arms = np.vstack([np.eye(dimension), np.zeros(dimension)])
    arms[-1, :2] = math.cos(angle), math.sin(angle)
    names = [f"e{number + 1}" for number in range(dimension)] + ["turned"]
    return World(f"soare-{dimension}", Problem(arms, arms, names=names), length * np.eye(dimension)[0])


def example_1(height: float, *, gap: float = 0.1) -> World:
    """X = Z = {e₁, e₂}, θ* = (r, r − gap): two coins, both nearly always heads (Jun et al. 2021, Example 1)."""
    return World(f"example1-{height:g}", Problem(np.eye(2), np.eye(2)), np.array([height, height - gap]))


def example_2(height: float, *, gap: float = 0.1) -> World:
    """Example 1 with e₁ − e₂ to measure besides, which is nearly a fair coin (Jun et al. 2021, Example 2)."""
    rows = np.vstack([np.eye(2), [1.0, -1.0]])
    return World(f"example2-{height:g}", Problem(rows, np.eye(2)), np.array([height, height - gap]))


def gaussian(dimension: int, items: int, *, norm: float = 2.0, gap: float | None = None, seed: int = 0) -> World:
    """Random items of about unit length, compared in pairs; θ* of the given norm in a random direction."""
    rng = np.random.default_rng([seed, dimension, items])
    features = rng.normal(size=(items, dimension)) / math.sqrt(dimension)
    theta = rng.normal(size=dimension)
    theta *= norm / float(np.linalg.norm(theta))
    if gap is not None:
        features = _with_gap(features, theta, gap)
    return World(f"gaussian-{dimension}-{items}", Problem.from_pairs(features, seed=seed), theta)


def catalogue(
    column: str = "comfort",
    *,
    items: int | None = None,
    pairs: int = 5000,
    dimension: int = 25,
    gap: float | None = None,
    kappa: float = 0.1,
    seed: int = 0,
) -> World:
    """A synthetic shoe catalogue: 25 principal components of falling spread, 5,000 random pairs, κ₀ = .1.

    The column of the paper's Table 1 gives the number of items and the gap, unless they are given.
    """
    if column not in CATALOGUE:
        raise InvalidInput(f"There is no column {column!r}; choose one of {', '.join(CATALOGUE)}.")
    count, usual, apart = CATALOGUE[column]
    rng = np.random.default_rng([seed, *column.encode()])
    features = rng.normal(size=(items or count, dimension)) / np.sqrt(np.arange(1, dimension + 1))
    theta = rng.normal(size=dimension)
    wanted = usual if gap is None else gap
    root = math.sqrt(1 - 4 * kappa)
    largest = math.log((1 + root) / (1 - root))  # the logit whose answer has variance kappa
    first = Problem.from_pairs(features, pairs=pairs, seed=seed)
    theta *= largest / float(np.max(np.abs(first.measurements @ theta)))
    if apart is not None:
        features = _with_twin(features, theta, apart, rng)
    features = _with_gap(features, theta, wanted)
    problem = Problem.from_pairs(features, pairs=first.about, seed=seed)
    return World(f"catalogue-{column}", problem, theta)


def pairs_of_pairs(base: World, pairs: int, *, seed: int = 0) -> World:
    """The same items, but every question compares two differences: x = (z_a − z_b) − (z_c − z_d)."""
    items = base.problem.items
    a, b, c, d = (items[chosen] for chosen in compared_items(len(items), pairs, seed=seed).T)
    problem = Problem((a - b) - (c - d), items, names=base.problem.names)
    rows = problem.measurements @ base.theta
    # Differences of differences are longer; the questions are scaled back to the same κ₀.
    scale = float(np.max(np.abs(base.problem.measurements @ base.theta)) / np.max(np.abs(rows)))
    return World(
        f"{base.name}-pairs-of-pairs", Problem(scale * problem.measurements, items, names=problem.names), base.theta
    )


def compared_items(items: int, pairs: int, *, seed: int = 0) -> Integers:
    """The items a, b, c, d of every question of `pairs_of_pairs`, one question a row."""
    rng = np.random.default_rng([seed, 4])
    return np.column_stack([rng.integers(items, size=pairs) for _ in range(4)])


def one_over_kappa(items: int, *, epsilon: float = 0.5, seed: int = 0) -> World:
    """A member of the 1/κ₀ family (`surepick.limits.kappa_family`), asked yes/no: only the best item gets a yes."""
    family = kappa_family(items, epsilon=epsilon, seed=seed)
    best = int(np.random.default_rng([seed, items]).integers(items))
    return World(f"one-over-kappa-{items}", Problem(family.items, family.items), family.thetas[best])


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


def _with_gap(features: Floats, theta: Floats, gap: float) -> Floats:
    """Move the best item along θ* until it is better than the second by just the gap."""
    scores = features @ theta
    order = np.argsort(-scores)
    moved = features.copy()
    moved[order[0]] += theta * ((scores[order[1]] + gap - scores[order[0]]) / float(theta @ theta))
    return moved


def _with_twin(features: Floats, theta: Floats, apart: float, rng: np.random.Generator) -> Floats:
    """Make the second best item nearly a copy of the best, at this distance across θ*."""
    order = np.argsort(-(features @ theta))
    step = rng.normal(size=len(theta))
    step -= theta * float(step @ theta) / float(theta @ theta)
    moved = features.copy()
    moved[order[1]] = moved[order[0]] + step * (apart / float(np.linalg.norm(step)))
    return moved
