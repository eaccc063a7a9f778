"""What study `delta` tries on Anytime: exact ties, near ties, hard geometries; and a broken rule that must be caught.

At an exact tie of the best items every claim to be certain counts, and few are allowed. Each stage is three times all
before it, so that a horizon of 10⁸ answers takes some fifteen evaluations of nearly independent evidence; the guarantee
holds for any stage sizes.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from surepick.identify import Anytime, Plan, Status, Verdict, Wait
from surepick.identify.anytime.state import State
from surepick.identify.problem import Problem
from surepick.judges import World
from surepick_experiments.worlds import person, soare

UNPAID = "control: likelihood ratio against log(1/delta)"
HORIZON = 10**8
"""Exact ties end here."""


@dataclass(frozen=True, kw_only=True)
class Hasty(Anytime):
    """Anytime with larger stages: each at least `growth` times all before it."""

    growth: float = 3.0

    def _size(self, state: State) -> int:
        return max(super()._size(state), int(self.growth * state.asked))


@dataclass(frozen=True, kw_only=True)
class Unpaid(Hasty):
    """The negative control: stops when the likelihood ratio against every rival exceeds 1/delta at any evaluation."""

    def plan(
        self, state: State, rng: np.random.Generator, without: Collection[int] | None = None
    ) -> Plan | Wait | Verdict:
        """The next stage, or the verdict without its price."""
        settled = state.evaluated
        if settled.plug_in.restarts and np.min(settled.nats(settled.leader)) >= math.log(1 / self.delta):
            return replace(self.verdict(state), status=Status.CERTAIN)
        return super().plan(state, rng, without)


def tie_of_two() -> World:
    """Two best items of three, compared in pairs."""
    items = np.array([[1.0, 0.3], [1.0, -0.3], [-1.0, 0.1]])
    return World("tie-of-two", Problem.from_pairs(items), np.array([1.5, 0.0]))


def soare_tie() -> World:
    """Soare's arms, θ* halfway between the first and the turned one."""
    base, angle = soare(3, angle=0.3), 0.3
    theta = 2 * np.array([math.cos(angle / 2), math.sin(angle / 2), 0.0])
    return World("soare-tie", base.problem, theta)


def large_norm_tie() -> World:
    """Eight items and ‖θ*‖ = 20: most answers are all but certain, those to the tied pair are coins."""
    rng = np.random.default_rng(3)
    items = rng.normal(size=(8, 3))
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    items[:, 0] = np.minimum(items[:, 0], 0.8)
    items[0], items[1] = [0.9, 0.3, 0.2], [0.9, -0.3, -0.2]
    return World("large-norm-tie", Problem.from_pairs(items), np.array([20.0, 0.0, 0.0]))


def large_norm() -> World:
    """A person of strong taste: most answers are all but certain."""
    return person(colours=12, gap=0.6, norm=20.0, seed=1)


def hardly_seen() -> World:
    """The best two differ along a direction that every question sees at a tenth of its length."""
    items = np.array([[1.0, 0.1, 0.0], [1.0, -0.1, 0.0], [0.0, 0.0, 1.0]])
    questions = np.array([[1.0, 0.1, 0.0], [1.0, -0.1, 0.1], [0.1, 0.0, 1.0], [1.0, 0.1, 1.0]])
    return World("hardly-seen", Problem(questions, items), np.array([1.0, 1.0, 0.5]))


def few_questions() -> World:
    """Three questions for sixty items."""
    rng = np.random.default_rng(5)
    angles = np.sort(rng.uniform(0, 2 * math.pi, 60))
    items = np.column_stack([np.cos(angles), np.sin(angles), 0.2 * np.sin(3 * angles)])
    return World("few-questions", Problem(np.eye(3), items), np.array([1.5, 1.0, 0.3]))


def many_questions() -> World:
    """Five hundred questions for two items."""
    rng = np.random.default_rng(6)
    return World("many-questions", Problem(rng.normal(size=(500, 3)) / 2, np.eye(3)[:2]), np.array([0.3, 0.1, 1.0]))


TIES = {"tie of two": tie_of_two, "Soare tie": soare_tie, "large-norm tie": large_norm_tie}
FAMILIES = TIES | {
    "large norm": large_norm,
    "hardly seen": hardly_seen,
    "few questions": few_questions,
    "many questions": many_questions,
}
