"""Anytime with other questions than it would choose: what was voted on, or what a person has not just been asked.

Its proof asks no more than that questions, predictions and bets of a stage are fixed before its answers are seen
(docs/anytime.md, section 4); predictions and bets are made for the questions turned to.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from surepick._arrays import Integers
from surepick.identify.anytime.policy import Anytime
from surepick.identify.policy import Plan, Policy, Wait
from surepick.identify.problem import Problem

Turn = Callable[[Any, Plan], Integers | Wait]
"""From the state and the stage as planned to how often each measurement is asked instead."""


def redirected(policy: Anytime, turn: Turn) -> Policy[Any]:
    """The policy, with every stage turned to other questions."""
    return cast("Policy[Any]", _Redirected(policy, turn))


class _Redirected:
    def __init__(self, policy: Anytime, turn: Turn) -> None:
        self._policy = policy
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def plan(self, state: Any, rng: np.random.Generator) -> Any:
        outcome = self._policy.plan(state, rng)
        if not isinstance(outcome, Plan):
            return outcome
        turned = self._turn(state, outcome)
        if isinstance(turned, Wait):
            return turned
        return self._policy.stage_of(state, turned)


def as_counts(problem: Problem, plan: Plan) -> Integers:
    """How often a stage asks each measurement of the problem."""
    counts = np.zeros(len(problem.measurements), dtype=np.int64)
    counts[plan.measurements] = plan.pulls
    return counts


def nearest(problem: Problem, plan: Plan, left: Integers) -> Integers:
    """For every question of the stage one that may still be asked and points most nearly the same way.

    `left` says how often each measurement may be asked; where that is less than the stage wants, the stage shrinks.
    """
    rows, counts = problem.rows, np.zeros_like(left)
    lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    for wanted, pulls in zip(plan.measurements, plan.pulls, strict=True):
        alike = np.abs(rows @ rows[wanted]) / lengths
        missing = int(pulls)
        for row in np.argsort(-alike, kind="stable"):
            taken = min(missing, int(left[row] - counts[row]))
            counts[row] += taken
            missing -= taken
            if not missing:
                break
    return counts
