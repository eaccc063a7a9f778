"""Searches from beginning to end: what is left of them when they are over."""

import gc
import weakref

from surepick.identify import Problem, run
from surepick.judges import World
from surepick.registry import POLICIES, policy_named
from surepick_experiments.worlds import soare

SEARCHES = 40


def search(name: str, seed: int) -> "weakref.ref[Problem]":
    """A search by this policy, over by the time it returns; and a reference that keeps nothing alive."""
    made = soare(2, angle=0.8)
    problem = Problem(made.problem.measurements, made.problem.items)
    world = World(
        "fresh",
        Problem.from_pairs(made.problem.items) if name in ("exclusion", "winner", "posterior") else problem,
        made.theta,
    )
    known = {} if name in ("anytime", "exclusion", "winner", "posterior", "rage-linear") else {"norm_bound": 2.2}
    budget = 10**4 if name == "gl-gape" else 10**9  # its width is so large that it hardly ever stops
    verdict = run(world.problem, policy_named(name, delta=0.3, budget=budget, **known), world.judge(seed), seed=seed)
    assert verdict.status.final
    return weakref.ref(world.problem)


def test_finished_searches_leave_no_problem_alive() -> None:
    """A service runs for months: what a cache keeps of one search, it keeps of all."""
    names = [list(POLICIES)[number % len(POLICIES)] for number in range(SEARCHES)]
    problems = [search(name, seed) for seed, name in enumerate(names)]
    gc.collect()
    assert [name for name, problem in zip(names, problems, strict=True) if problem() is not None] == []
