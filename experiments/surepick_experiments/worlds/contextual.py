"""Simulated streams of contexts, and a policy run through one. Policies see arms and rewards, never the truth."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.contextual.likelihood_ratio import LikelihoodRatioSet
from surepick.contextual.one_pass import OnePassState
from surepick.contextual.policy import AnyPolicy
from surepick.contextual.sup_logistic import PHI, SupLogisticBase, SupState
from surepick.glm import probability_of_yes

STEPS_PER_BLOCK = 4096


@dataclass(frozen=True)
class ContextualWorld:
    """A truth, and how the arms of every step are drawn: `draw(rng, steps)` gives steps × arms × dimension."""

    theta: Floats
    draw: Callable[[np.random.Generator, int], Floats]

    def blocks(self, horizon: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Arms, probabilities of a reward, and per step one uniform number that decides it, block by block."""
        for first in range(0, horizon, STEPS_PER_BLOCK):
            steps = min(STEPS_PER_BLOCK, horizon - first)
            arms = self.draw(rng, steps)
            yield arms, probability_of_yes(arms @ self.theta), rng.random(steps)


def random_direction(rng: np.random.Generator, dimension: int, norm: float) -> Floats:
    """A vector of this length in a uniform direction."""
    theta = rng.normal(size=dimension)
    return np.asarray(theta * (norm / np.linalg.norm(theta)))


def ball_world(rng: np.random.Generator, *, dimension: int = 5, arms: int = 20, norm: float = 3.0) -> ContextualWorld:
    """Fresh arms uniform in the unit ball at every step; θ* of the given length in a random direction."""

    def draw(rng: np.random.Generator, steps: int) -> Floats:
        points = rng.normal(size=(steps, arms, dimension))
        points *= (rng.random((steps, arms)) ** (1 / dimension) / np.linalg.norm(points, axis=2))[..., None]
        return np.asarray(points)

    return ContextualWorld(random_direction(rng, dimension, norm), draw)


def trap_world(*, dimension: int = 2, decent: float = 0.4, best: float = 2.0) -> ContextualWorld:
    """Greedy's trap: the same arms e₁, …, e_d at every step, e₁ decent, e_d best, the others worthless.

    Greedy breaks its first tie in favour of e₁ and, once that was rewarded, has no reason ever to try another arm.
    """
    theta = np.full(dimension, -1.0)
    theta[0], theta[-1] = decent, best
    return ContextualWorld(theta, lambda rng, steps: np.tile(np.eye(dimension), (steps, 1, 1)))


@dataclass(frozen=True)
class Run:
    """A finished run: regret at the checkpoints, time of the policy alone, and its last state."""

    regret: Floats
    phi_regret: float | None
    """Regret of the steps whose rewards went to Φ; None for policies without it."""
    microseconds_per_step: float
    state: Any


def simulate(
    policy: AnyPolicy,
    world: ContextualWorld,
    horizon: int,
    rng: np.random.Generator,
    *,
    checkpoints: Sequence[int] = (),
    watch: Callable[[Any], None] | None = None,
) -> Run:
    """Run a policy for `horizon` steps; `watch` sees every state. Regret is in expected rewards lost."""
    streams = rng.spawn(2)
    state, total, step, spent, in_phi = policy.start(len(world.theta)), 0.0, 0, 0.0, 0.0
    marks = {mark: place for place, mark in enumerate(checkpoints or (horizon,))}
    regret = np.full(len(marks), math.nan)
    for arms, probabilities, uniforms in world.blocks(horizon, streams[0]):
        best = probabilities.max(axis=1)
        start = time.process_time()
        for i in range(len(arms)):
            if isinstance(policy, SupLogisticBase) and watch is None and state.burn_in_over:
                rewards = (uniforms[i:, None] < probabilities[i:]).astype(np.float64)
                state, chosen = policy.advance(state, arms[i:], rewards, streams[1])
                lost = total + np.cumsum(best[i:] - probabilities[np.arange(i, len(arms)), chosen])
                for mark in marks.keys() & range(step + 1, step + len(lost) + 1):
                    regret[marks[mark]] = lost[mark - step - 1]
                total, step = float(lost[-1]), step + len(lost)
                break
            choice = policy.choose(state, arms[i], streams[1])
            chance = float(probabilities[i, choice.index])
            total += float(best[i]) - chance
            in_phi += float(best[i]) - chance if choice.bucket == PHI else 0.0
            state = policy.learn(state, arms[i], choice, 1.0 if uniforms[i] < chance else 0.0)
            step += 1
            if step in marks:
                regret[marks[step]] = total
            if watch is not None:
                watch(state)
        spent += time.process_time() - start
    return Run(regret, in_phi if isinstance(policy, SupLogisticBase) else None, spent / horizon * 1e6, state)


def distance_in_radii(state: Any, theta: Floats) -> float | None:
    """The distance of θ from the centre of the state's set, in units of its proved radius: above 1 it is not covered.

    None for states without a proved radius. For SupLogistic the worst of Φ's set and of all certified levels.
    """
    if isinstance(state, LikelihoodRatioSet | OnePassState):
        return _in_units(state.inverse, state.centre - theta, state.radius)
    if isinstance(state, SupState):
        levels = state.levels
        worst = _in_units(state.phi.inverse, state.phi.centre - theta, state.phi.radius)
        for s in np.flatnonzero(np.isfinite(levels.multipliers)):
            worst = max(worst, _in_units(levels.inverses[s], levels.thetas[s] - theta, float(levels.multipliers[s])))
        return worst
    return None


def _in_units(inverse: Floats, difference: Floats, radius: float) -> float:
    if math.isinf(radius):
        return 0.0
    return math.sqrt(float(difference @ np.linalg.solve(inverse, difference))) / radius
