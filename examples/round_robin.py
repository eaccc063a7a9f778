"""A policy of one's own, written with the public interface only: ask everything equally often, stop when it is proved.

The contract that surepick's own policies pass is shipped; `pytest examples/round_robin.py` runs it on this one.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import surepick as sp
from surepick.identify import Draft, Elimination, Stages, Stagewise
from surepick.testing import PolicyContract


@dataclass(frozen=True, kw_only=True)
class RoundRobin(Stagewise):
    """Round k asks every measurement vector 2^k times; the anytime intervals of all rounds decide.

    Those intervals hold at all times at once, whatever was asked, so evaluating them after every round costs nothing.
    """

    order_seed: int = field(default_factory=lambda: secrets.randbelow(2**31))
    """Puts the answers of a round in an order. It must be drawn at random, and stay the same during a search."""

    NAME = "round-robin"
    GUARANTEE = sp.Guarantee.PROVED
    STATEMENT = "The best item is excluded with probability at most delta (the anytime intervals, docs/theory.md)."

    def draft(self, state: Stages) -> Draft:
        """The next round."""
        everything = np.arange(len(state.problem.measurements))
        return Draft(everything, np.full(len(everything), 2 ** len(state.records)))

    def eliminate(self, state: Stages) -> Elimination:
        """An item is out when the leader beats it for certain."""
        rounds = [record.plan.tally(state.problem, record.wins, record.pulls) for record in state.records]
        items = state.problem.items
        leader = int(np.argmax(items @ sp.fit(rounds[-1], ridge=1.0).theta))
        gaps = sp.interval_anytime(rounds, items[leader] - items, delta=self.delta, order_seed=self.order_seed)
        alive = np.flatnonzero(gaps.low <= 0)  # the leader's gap to itself is 0
        return Elimination(alive, leader, float(max(0.0, -gaps.low.min())), gaps=(gaps.low, gaps.high))


class TestRoundRobin(PolicyContract):
    """The contract; the limits are passed as the command line would pass them."""

    budget = 20_000

    def policy(self, **limits: Any) -> RoundRobin:
        """The policy under test."""
        return RoundRobin(order_seed=7, **limits)  # tests compare searches with each other


if __name__ == "__main__":
    colours: Mapping[str, list[float]] = {"teal": [0.2, 0.9], "olive": [0.7, 0.3], "plum": [-0.4, 0.1]}
    problem = sp.Problem.from_pairs(colours)
    taste, rng = np.array([1.0, 2.0]), np.random.default_rng(1)
    print(sp.find_best(problem, lambda q: rng.random() < 1 / (1 + np.exp(-q.vector @ taste)), policy=RoundRobin()))
