"""Anytime with other questions than it would choose: what was voted on, or what a person has not just been asked.

Its predictions and bets are vectors, fixed when a stage is planned, and mean something for any question. The proof asks
no more than that the questions are fixed by then, too (docs/anytime.md, section 4): it holds for those turned to.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from surepick.identify.anytime import Anytime
from surepick.identify.policy import Plan, Policy, Wait
from surepick.identify.problem import Problem

Integers = NDArray[np.int64]

Turn = Callable[[Any, Plan], Plan | Wait]
"""From the state and the stage as planned to the stage that is asked; it sees no answers but those in the state."""


def redirected(policy: Anytime, turn: Turn) -> Policy[Any]:
    """The policy, with every stage turned to other questions."""
    return cast("Policy[Any]", _Redirected(policy, turn))


class _Redirected:
    def __init__(self, policy: Anytime, turn: Turn) -> None:
        self._policy = policy
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def plan(self, state: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        _, outcome = self._policy.plan(state, rng)
        turned = self._turn(state, outcome) if isinstance(outcome, Plan) else outcome
        return (self._policy.adopt(state, turned) if isinstance(turned, Plan) else state), turned


def with_counts(plan: Plan, counts: Integers) -> Plan:
    """The same stage with other questions: how often to ask each measurement of the problem."""
    where = np.flatnonzero(counts)
    return replace(plan, measurements=where, pulls=counts[where])


def nearest(problem: Problem, plan: Plan, left: Integers) -> Plan:
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
    return with_counts(plan, counts)
