"""A policy of one's own, written with the public interface only: ask everything equally often, stop when it is proved.

The contract that surepick's own policies pass is shipped; `pytest examples/round_robin.py` runs it on this one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import surepick as sp
from surepick.identify import Draft, Stages, Stagewise, Standing
from surepick.testing import PolicyContract


@dataclass(frozen=True, kw_only=True)
class RoundRobin(Stagewise):
    """Round k asks every measurement vector 2^k times; the anytime intervals of all rounds decide.

    Those intervals hold at all times at once, whatever was asked, so looking after every round costs nothing.
    """

    NAME = "round-robin"
    GUARANTEE = sp.Guarantee.PROVED
    STATEMENT = "The best item is excluded with probability at most delta (the anytime intervals, docs/theory.md)."

    def draft(self, state: Stages, standing: Standing | None) -> Draft:
        """The next round."""
        everything = np.arange(len(state.problem.measurements))
        return Draft(everything, np.full(len(everything), 2 ** len(state.filed)), memo={})

    def standing(self, state: Stages) -> Standing:
        """An item is out when the leader beats it for certain."""
        scores, low, _ = _gaps_to_leader(state, self.delta)
        leader = int(np.argmax(scores))
        alive = np.flatnonzero(low <= 0)  # the leader's gap to itself is 0
        return Standing(alive, leader, shortfall=float(max(0.0, -low.min())))

    def gaps(self, state: Stages, best: int) -> tuple[Any, Any]:
        """The same intervals, for the verdict."""
        _, low, high = _gaps_to_leader(state, self.delta)
        return low, high


@lru_cache(maxsize=4)  # a state never changes, and one look at it asks three times
def _gaps_to_leader(state: Stages, delta: float) -> tuple[Any, Any, Any]:
    rounds = [filed.plan.tally(state.problem, filed.wins, filed.pulls) for filed in state.filed]
    items = state.problem.items
    scores = items @ sp.fit(rounds[-1], ridge=1.0).theta
    found = sp.interval_anytime(rounds, items[np.argmax(scores)] - items, delta=delta)
    return scores, found.low, found.high


class TestRoundRobin(PolicyContract):
    """The contract; the limits are passed as the command line would pass them."""

    budget = 20_000

    def policy(self, **limits: Any) -> RoundRobin:
        """The policy under test."""
        return RoundRobin(**limits)


if __name__ == "__main__":
    colours: Mapping[str, list[float]] = {"teal": [0.2, 0.9], "olive": [0.7, 0.3], "plum": [-0.4, 0.1]}
    problem = sp.Problem.from_pairs(colours)
    taste, rng = np.array([1.0, 2.0]), np.random.default_rng(1)
    print(sp.find_best(problem, lambda q: rng.random() < 1 / (1 + np.exp(-q.vector @ taste)), policy=RoundRobin()))
