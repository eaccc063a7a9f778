"""The state of Exclusion: all stages with their answers, the wealth against every item, and what was excluded.

As in Anytime, stages are evaluated in the order of planning, over the longest prefix of answered ones, and all that a
stage's factors depend on is fixed before its answers are used: when it is planned, or, while answers of earlier stages
are out, when these are in (docs/anytime.md, section 4).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surepick._arrays import Floats, Integers
from surepick._cached import cached_property
from surepick.evidence.likelihood_ratio import RIDGES, PlugIn, predicted
from surepick.evidence.stakes import Bound, StakedEvidence, Stakes
from surepick.glm import probability_of_yes
from surepick.identify.anytime.estimates import Estimates
from surepick.identify.anytime.sampling import CaughtUpRivals, caught_up_rivals
from surepick.identify.policy import StageRecord, has_more
from surepick.identify.problem import Problem

ROUGH_STEPS, ROUGH = 4, 1e-2
"""Newton steps, and the decrement after which they end, for nats that only weigh rivals ..."""

FINE_STEPS, FINE = 15, 1e-6
"""... and for a proof."""

NEARLY = 0.05
"""A proof is tried where the rough nats lack no more than this."""

SPARE = 0.5
"""Nats beyond what excludes a rival after which it is no longer asked about, unless its proof fails."""

NOBODY = -1
"""For the leader of an exclusion that holds against any leader."""


@dataclass(frozen=True)
class Excluded:
    """An item that was excluded after some number of stages, and what its proof was found with.

    With epsilon > 0 it is excluded as the winner by more than epsilon over this leader, and no more.
    """

    leader: int
    item: int
    stages: int
    nats: float
    theta: list[float]
    """Empty, as the next two, where it was excluded by its losses alone."""
    shares: list[float]
    multipliers: list[float]


@dataclass(frozen=True, eq=False)
class StakedFactors:
    """What the factors of a stage depend on besides its answers."""

    experts: Floats
    """The fits that predict."""
    logits: Floats
    """Experts × measurements: what each predicts."""
    stakes: Stakes

    def to_json(self) -> dict[str, Any]:
        """As plain values. Certificates show the predictions; the rest serves a replay."""
        return {
            "experts": self.experts.tolist(),
            "logits": self.logits.tolist(),
            "predictions": {
                "chances": self.stakes.chances.tolist(),
                "rivals": self.stakes.rivals.tolist(),
                "stakes": self.stakes.signed.tolist(),
            },
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "StakedFactors":
        """Read what `to_json` gave."""
        told = given["predictions"]
        chances, rivals = np.array(told["chances"]), np.array(told["rivals"], dtype=np.int64)
        signed = np.array(told["stakes"], dtype=np.float64).reshape(len(chances), -1, len(rivals))
        return cls(np.array(given["experts"]), np.array(given["logits"]), Stakes(chances, rivals, signed))


@dataclass(frozen=True, eq=False)
class ExclusionMemo:
    """What must be remembered of the moment at which a stage was planned; `Plan.memo` holds it as JSON."""

    excluded: tuple[Excluded, ...]
    """Items excluded just before it."""
    factors: StakedFactors | None
    """None while answers to earlier stages, on which they may depend, are still out."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        factors = {} if self.factors is None else self.factors.to_json()
        return {"excluded": [vars(excluded) for excluded in self.excluded], **factors}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "ExclusionMemo":
        """Read what `to_json` gave."""
        excluded = tuple(Excluded(**one) for one in given["excluded"])
        return cls(excluded, StakedFactors.from_json(given) if "predictions" in given else None)


@dataclass(frozen=True, eq=False)
class ExclusionEvaluation:
    """What the evaluated stages say."""

    nats: Floats
    """About the log wealth against each item where it is least; infinite where it is excluded."""
    excluded: tuple[Excluded, ...]
    """Items excluded now, and not before."""
    unproved: Integers
    """Items against which there seems to be more than enough, but no proof; those nearest to one by their losses first.

    Answers that all agree are best explained by a theta at infinity, where no dual point balances."""


@dataclass(frozen=True, eq=False)
class ExclusionState(Estimates):
    """All stages with their answers, and the wealth after the first `evaluated_stages` of them."""

    problem: Problem
    delta: float
    epsilon: float
    charge: bool
    """Whether missing answers are charged the worst."""
    evidence: StakedEvidence
    plug_in: PlugIn
    """Counts, and how well each expert predicted."""
    experts: Floats
    old: tuple[Floats, Floats] | None = None
    stages: tuple[StageRecord, ...] = ()
    memos: tuple[ExclusionMemo, ...] = ()
    evaluated_stages: int = 0
    excluded: Mapping[tuple[int, int], Excluded] = field(default_factory=dict)
    """By leader and item: what was excluded before the last stage was planned. It stays excluded."""

    @property
    def needed(self) -> float:
        """Nats at which an item is excluded."""
        return math.log(1 / self.delta)

    @property
    def evaluated(self) -> "ExclusionState":
        """The same with all stages of the longest answered prefix multiplied into the wealth."""
        return self._evaluated if has_more(self.stages, self.evaluated_stages) else self

    @cached_property
    def _evaluated(self) -> "ExclusionState":
        state = self
        for stage, memo in zip(self.stages[self.evaluated_stages :], self.memos[self.evaluated_stages :], strict=True):
            if not stage.answered:
                break
            done, where = state.evaluated_stages, stage.plan.measurements
            factors = memo.factors
            if factors is None:
                # All earlier answers are in, and nothing later is used, not even what was excluded while these answers
                # were out: how long they take may depend on what they are.
                before = replace(
                    state,
                    stages=state.stages[:done],
                    memos=state.memos[:done],
                    excluded=_collected(memo.excluded for memo in state.memos[: done + 1]),
                )
                factors = before.fix_factors(where)
                memo = replace(memo, factors=factors)
            pulls, wins = stage.scored
            missing = (stage.plan.pulls - pulls) * self.charge
            state = replace(
                state,
                memos=(*state.memos[:done], memo, *state.memos[done + 1 :]),
                evaluated_stages=done + 1,
                evidence=state.evidence.after(factors.stakes, where, pulls, wins, missing),
                plug_in=state.plug_in.after(where, pulls, wins, factors.logits, restart=False, missing=missing),
                experts=factors.experts,
            )
        return state

    def whose(self, leader: int) -> int:
        """The leader for which exclusions count: with epsilon = 0 they hold against any."""
        return leader if self.epsilon > 0 else NOBODY

    def left(self, leader: int) -> Integers:
        """Items that were not excluded before the last stage; with epsilon > 0 those that may beat this leader."""
        among = np.ones(len(self.problem.items), dtype=np.bool_)
        among[[item for whose, item in self.excluded if whose == self.whose(leader)]] = False
        return np.flatnonzero(among)

    @cached_property
    def leader(self) -> int:
        """The best item under the estimate, of those that are not excluded if there are any."""
        scores = self.problem.points @ self.theta
        left = self.left(NOBODY) if self.epsilon == 0 else np.zeros(0, dtype=np.int64)
        return int(left[np.argmax(scores[left])] if len(left) else np.argmax(scores))

    @cached_property
    def rivals(self) -> Integers:
        """Items that may be better than the leader."""
        left = self.left(self.leader)
        return np.asarray(left[left != self.leader])

    def caught_up(self, leader: int, theta: Floats, waiting: Floats) -> CaughtUpRivals:
        """The likeliest theta with which each rival of a leader has caught up; `rivals` are those of the state."""
        points, rivals = self.problem.points, self.rivals if leader == self.leader else self._others(leader)
        ridge = float(RIDGES[-1]) * self._longest
        y = points[leader] - points[rivals]
        rows = self.problem.rows
        return caught_up_rivals(rows, self.arrived, waiting, theta, rivals, y, self.inverse, ridge, self.epsilon)

    def _others(self, leader: int) -> Integers:
        left = self.left(leader)
        return np.asarray(left[left != leader])

    @cached_property
    def caught_up_now(self) -> CaughtUpRivals:
        """The same for the leader, by the answers there are."""
        return self.caught_up(self.leader, self.theta, np.zeros(len(self.planned)))

    def caught_up_later(self, leader: int, theta: Floats) -> CaughtUpRivals:
        """The same as expected when all questions are answered, if this theta is right."""
        if not self.waiting and leader == self.leader:
            return self.caught_up_now
        return self.caught_up(leader, theta, self.planned - self.arrived[0])

    @cached_property
    def evaluation(self) -> ExclusionEvaluation:
        """What can be excluded by the evaluated stages, tried where it is nearly so by a rough solution."""
        if self.evaluated is not self:
            return self.evaluated.evaluation
        count = len(self.problem.items)
        items = self.left(self.leader)
        nats = np.full(count, np.inf)
        if self.epsilon > 0:
            items = items[items != self.leader]
        if not self.plug_in.pulls.any() or not len(items):
            nats[items] = 0.0
            return ExclusionEvaluation(nats, (), items[:0])
        wealth = self.evidence.against(
            items, self.problem.rows, self.problem.points, self.leader, self.epsilon, self.inverse
        )
        start = np.broadcast_to(self.theta, (count, len(self.theta))).copy()
        start[self.caught_up_now.items] = self.caught_up_now.theta
        points, rough = wealth.minimise(start[items], np.arange(len(items)), steps=ROUGH_STEPS, tolerance=ROUGH)
        near = np.flatnonzero(rough >= self.needed - NEARLY)
        excluded, by_losses = [], np.zeros(len(items))
        if len(near):
            points[near], rough[near] = wealth.minimise(points[near], near, steps=FINE_STEPS, tolerance=FINE)
            by_losses = self.evidence.by_losses(items, self.problem.about)
            for place in near.tolist():
                bound = wealth.prove(place, points[place])
                if not bound.nats >= self.needed and by_losses[place] >= self.needed:
                    nothing = np.zeros(0)
                    bound = Bound(float(by_losses[place]), nothing, nothing, nothing)
                if bound.nats >= self.needed:
                    excluded.append(
                        Excluded(
                            self.whose(self.leader),
                            int(items[place]),
                            self.evaluated_stages,
                            bound.nats,
                            bound.theta.tolist(),
                            bound.shares.tolist(),
                            bound.multipliers.tolist(),
                        )
                    )
        nats[items] = rough
        nats[[one.item for one in excluded]] = np.inf
        seems_enough = np.isfinite(nats[items]) & (rough >= self.needed + SPARE) & (items != self.leader)
        unproved = np.flatnonzero(seems_enough)
        return ExclusionEvaluation(
            nats, tuple(excluded), items[unproved[np.argsort(-by_losses[unproved], kind="stable")]]
        )

    @property
    def concluded(self) -> "ExclusionState":
        """Evaluated, and with all that can be excluded by now."""
        state = self.evaluated
        return state._concluded if state.evaluation.excluded else state

    @cached_property
    def _concluded(self) -> "ExclusionState":
        return self.excluding(self.evaluation.excluded)

    def excluding(self, more: Iterable[Excluded]) -> "ExclusionState":
        """With these items excluded, too."""
        return replace(self, excluded={**self.excluded, **_collected([more])})

    def fix_factors(self, where: Integers) -> StakedFactors:
        """What is predicted and staked about a stage that asks these measurements.

        It may depend on all answers to stages planned before, whenever they came (docs/anytime.md, section 4).
        """
        x, theta = self.problem.rows[where], self.theta
        if self.arrived[0].any():
            logits = predicted(self.problem.rows, self.arrived[0], self.fits, x)
        else:
            logits = np.zeros((len(RIDGES), len(where)))
        # The mean of the experts by how well they predicted is the prediction of their mixture.
        scores = self.evaluated.plug_in.scores
        weights = np.exp(scores - scores.max())
        chances = weights @ probability_of_yes(logits) / weights.sum()
        caught, points = self.caught_up_now, self.problem.points
        y = points[self.leader] - points[caught.items]
        across = y @ self.inverse
        shifts = (across / np.maximum(np.einsum("zi,zi->z", y, across), 1e-300)[:, None]) @ x.T
        stakes = Stakes.of(chances, caught.items, caught.theta @ x.T, shifts, self.problem.about[where])
        return StakedFactors(np.asarray(self.fits if len(theta) else self.experts), logits, stakes)


def _collected(groups: Iterable[Iterable[Excluded]]) -> dict[tuple[int, int], Excluded]:
    return {(one.leader, one.item): one for group in groups for one in group}
