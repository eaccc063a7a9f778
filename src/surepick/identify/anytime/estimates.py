"""Estimates of theta from all answers there are: what questions, predictions and bets of the next stage depend on.

They belong to a state that keeps its stages, the counts of the evaluated ones and the experts' last fits. Nothing here
is part of a proof: estimates may be rough.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from surepick._arrays import Floats
from surepick._cached import cached_property
from surepick.evidence.likelihood_ratio import RIDGES, PlugIn, ridge_experts
from surepick.glm import variance
from surepick.identify.anytime.sampling import quadratic_nats
from surepick.identify.policy import StageRecord
from surepick.identify.problem import Problem


class Estimates(ABC):
    """The estimates of a state, which has these fields."""

    problem: Problem
    epsilon: float
    stages: tuple[StageRecord, ...]
    plug_in: PlugIn
    """Counts and scores of the evaluated stages."""
    evaluated_stages: int
    experts: Floats
    """Fits that predicted the last stage: where the next ones start."""
    old: tuple[Floats, Floats] | None
    """Pulls and wins of answers from before the search, which half of the experts know."""

    @property
    @abstractmethod
    def evaluated(self) -> "Estimates":
        """The same with all stages of the longest answered prefix evaluated."""

    def with_stage(self, stage: int, record: StageRecord) -> Self:
        """With what a stage has by now; evidence that was counted for good does not change."""
        if stage < self.evaluated_stages:
            return self
        stages = (*self.stages[:stage], record, *self.stages[stage + 1 :])
        return cast("Self", replace(cast("Any", self), stages=stages))  # all states are dataclasses

    @cached_property
    def asked(self) -> int:
        """Number of questions planned."""
        return sum(stage.plan.total for stage in self.stages)

    # Estimates use all answers there are, also of stages not evaluated yet: all were planned before the next stage, so
    # its questions, predictions and bets may depend on them.

    @cached_property
    def arrived(self) -> tuple[Floats, Floats]:
        """Pulls and wins of all answers there are."""
        state = self.evaluated
        pulls, wins = state.plug_in.pulls.copy(), state.plug_in.wins.copy()
        for stage in state.stages[state.evaluated_stages :]:
            answers, scores = stage.scored
            np.add.at(pulls, stage.plan.measurements, answers)
            np.add.at(wins, stage.plan.measurements, scores)
        return pulls, wins

    @cached_property
    def planned(self) -> Floats:
        """Pulls of all stages, answered or not."""
        pulls = self.evaluated.plug_in.pulls.copy()
        for stage in self.stages[self.evaluated.evaluated_stages :]:
            np.add.at(pulls, stage.plan.measurements, stage.plan.pulls)
        return pulls

    @cached_property
    def waiting(self) -> int:
        """Number of questions whose answers are still to come; those missing in evaluated stages never will."""
        return int(self.planned.sum() - self.arrived[0].sum())

    @cached_property
    def fits(self) -> Floats:
        """The experts on all answers there are, every other one on old answers, too."""
        fits = ridge_experts(self.problem.rows, *self.arrived, self.experts)
        # The other half predicts as without old answers, so that wrong ones cost little.
        if self.old is not None:
            pulls, wins = (new + old for new, old in zip(self.arrived, self.old, strict=True))
            fits = fits.copy()
            fits[::2] = ridge_experts(self.problem.rows, pulls, wins, self.experts)[::2]
        return fits

    @cached_property
    def _best_expert(self) -> int:
        """Who predicted best so far."""
        return int(np.argmax(self.evaluated.plug_in.scores))

    @cached_property
    def theta(self) -> Floats:
        """The estimate: the fit of the best expert."""
        return np.asarray(self.fits[self._best_expert])

    @cached_property
    def ridge(self) -> float:
        """Its ridge weight in the units of the problem."""
        return float(RIDGES[self._best_expert]) * self._longest

    @cached_property
    def _longest(self) -> float:
        """The largest squared length of a measurement vector."""
        return float(np.max(np.einsum("xi,xi->x", self.problem.rows, self.problem.rows)))

    def information_of(self, pulls: Floats) -> Floats:
        """Σ n·s·xxᵀ at the estimate."""
        rows = self.problem.rows
        return np.asarray((rows.T * (pulls * variance(rows @ self.theta))) @ rows)

    @cached_property
    def information(self) -> Floats:
        """Information of all planned questions."""
        return self.information_of(self.planned)

    @cached_property
    def inverse(self) -> Floats:
        """C: inverse of the ridge information of all planned questions."""
        return np.asarray(np.linalg.inv(self.information + self.ridge * np.eye(len(self.information))))

    def draw_theta(self, rng: np.random.Generator) -> Floats:
        """A draw from the ridge posterior of the answers there are, by its normal approximation."""
        seen = self.information_of(self.arrived[0])
        root = np.linalg.cholesky(seen + self.ridge * np.eye(len(seen)))
        return np.asarray(self.theta + np.linalg.solve(root.T, rng.normal(size=len(seen))))

    @cached_property
    def leader(self) -> int:
        """The best item under the estimate."""
        return int(np.argmax(self.problem.points @ self.theta))

    def nats(self, leader: int, theta: Floats | None = None) -> Floats:
        """Nats (quadratic approximation) by which each item is behind a leader, by default that of the estimate."""
        theta = self.theta if theta is None else theta
        return quadratic_nats(self.problem.points, leader, theta, self.inverse, self.epsilon)
