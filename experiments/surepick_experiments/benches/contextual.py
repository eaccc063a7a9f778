"""Contextual policies: microseconds a step, and how they grow with the horizon, the dimension and the arms."""

import time
from dataclasses import dataclass

import numpy as np

from surepick.glm import probability_of_yes
from surepick.glm.kernels import interpreted
from surepick.registry import NAMES, policy_by_name
from surepick_experiments.benches.runner import Progress, Row, compared, silent

LINEAR_IN_T = ("ofu-log", "ofu-glb")
"""Policies whose step costs O(t): they get a shorter horizon."""


@dataclass(frozen=True)
class Setting:
    """A stream of contexts: arms uniform in the unit ball, ‖θ*‖ = 3."""

    horizon: int
    dimension: int
    arms: int

    def __str__(self) -> str:
        return f"T={self.horizon:,}, d={self.dimension}, K={self.arms}"


def bench_contextual(*, quick: bool = False, seed: int = 0, progress: Progress = silent) -> list[Row]:
    """Time every policy at a base setting, against the same without numba, and at larger T, d and K, against the base.

    Processor time of choosing and learning alone, without the drawing of contexts; after one run that warms up.
    """
    rows: list[Row] = []
    for name in NAMES:
        steps = 100 if quick else 500 if name in LINEAR_IN_T else 2000
        base = Setting(steps, 5, 20)
        progress(name)
        seconds_per_step(name, Setting(60, 5, 20), seed)
        short = min(steps, 50 if quick else 300)
        beginning = seconds_per_step(name, base, seed, steps=short)
        with interpreted():
            in_numpy = seconds_per_step(name, base, seed, steps=short)
        rows.append(_row(name, Setting(short, 5, 20), beginning, "the same in NumPy", in_numpy))
        ours = seconds_per_step(name, base, seed)
        rows.append(_row(name, base, ours, str(base), ours))
        larger = [Setting(2 * steps, 5, 20), Setting(steps, 10, 20), Setting(steps, 5, 100)]
        if not quick:
            larger = [Setting(4 * steps, 5, 20), Setting(steps, 20, 20), Setting(steps, 5, 200)]
            if name == "sup-logistic":
                larger += [Setting(10**5, 5, 20), Setting(10**6, 5, 20)]
        rows += [_row(name, case, seconds_per_step(name, case, seed), str(base), ours) for case in larger]
    return rows


def _row(name: str, setting: Setting, ours: float, peer: str, peer_seconds: float) -> Row:
    return compared(
        f"{name}, {setting}",
        ours,
        peer,
        peer_seconds,
        policy=name,
        horizon=setting.horizon,
        d=setting.dimension,
        arms=setting.arms,
        microseconds_per_step=ours * 1e6,
    )


def seconds_per_step(name: str, setting: Setting, seed: int, *, steps: int | None = None) -> float:
    """Run a policy through a stream (its first `steps` steps) and return the mean time of choose and learn."""
    rng = np.random.default_rng(seed)
    policy = policy_by_name(name, horizon=setting.horizon, arms=setting.arms, norm_bound=4.0)
    theta = rng.normal(size=setting.dimension)
    theta *= 3.0 / np.linalg.norm(theta)
    state, spent = policy.start(setting.dimension), 0.0
    total = steps or setting.horizon
    for first in range(0, total, 1000):
        shape = (min(1000, total - first), setting.arms, setting.dimension)
        offered = rng.normal(size=shape)
        offered *= (rng.random(shape[:2]) ** (1 / setting.dimension) / np.linalg.norm(offered, axis=2))[..., None]
        rewards = (rng.random(shape[:2]) < probability_of_yes(offered @ theta)).astype(float)
        start = time.process_time()
        for arms, known in zip(offered, rewards, strict=True):
            choice = policy.choose(state, arms, rng)
            state = policy.learn(state, arms, choice, known[choice.index])
        spent += time.process_time() - start
    return spent / total
