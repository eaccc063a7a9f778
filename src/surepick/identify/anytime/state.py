"""The state of Anytime: all stages with their answers, both evidence processes, and what they suggest.

Stages are multiplied into the processes in the order of planning, over the longest complete prefix; all that a stage's
factors depend on was fixed in its memo when it was planned. So late answers, and delays that depend on the answer, do
no harm (docs/anytime.md, section 4).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput
from surepick.evidence.plug_in_bounds import Localiser, localiser
from surepick.evidence.process import RIDGES, Evidence, PlugIn, predicted, ridge_experts
from surepick.glm import variance
from surepick.glm.batched_newton import log_sum
from surepick.identify.anytime.alternatives import CLOSEST, Alternatives, likeliest
from surepick.identify.anytime.directional import (
    BETS,
    CONTENDER,
    LEAD,
    LEADERS,
    SETTLED,
    SETTLING,
    Bets,
    Process,
    good_bets,
    weight,
)
from surepick.identify.anytime.proof_log import Ledger
from surepick.identify.anytime.sampling import FEW_DIMENSIONS, LATE_FROM, STRONG, closeness
from surepick.identify.problem import Problem
from surepick.identify.stages import StageRecord

LOCALISER = 0.3
"""Share of delta spent by the plug-in process; the rest by the directional one."""


@dataclass(frozen=True, eq=False)
class State:
    """All stages with their answers, and both processes after the first `sealed` of them."""

    problem: Problem
    filed: tuple[StageRecord, ...]
    sealed: int
    plug_in: PlugIn
    processes: tuple[Process, ...]
    experts: Floats
    """Fits that predicted the last stage: where the next ones start."""
    charge: bool
    delta: float
    epsilon: float
    ledger: Ledger = field(default_factory=Ledger)
    """What was proved and tried when stages were planned."""
    old: tuple[Floats, Floats] | None = None
    """Pulls and wins of answers from before, which half of the experts know."""

    @property
    def threshold(self) -> float:
        """Nats that pass a rival by the plug-in process."""
        return math.log(1 / (LOCALISER * self.delta))

    def share_of(self, leader: int) -> float:
        """Of delta, what the directional process of a leader may spend: that of a first one while there is none."""
        process = self.process_of(leader)
        return weight(0 if process is None else process.number) * (1 - LOCALISER)

    def needed(self, leader: int) -> float:
        """Nats that pass a rival of this leader by the directional process."""
        return math.log(1 / (self.share_of(leader) * self.delta))

    @property
    def stakes(self) -> float:
        """Nats that bets aim at."""
        return 2 * (math.log(1 / self.delta) + 1)

    @cached_property
    def asked(self) -> int:
        """Number of questions planned."""
        return sum(each.plan.total for each in self.filed)

    @cached_property
    def settled(self) -> "State":
        """The same with all stages of the longest complete prefix multiplied into the processes."""
        state = self
        for filed in self.filed[self.sealed :]:
            if not filed.answered:
                break
            plan, where = filed.plan, filed.plan.measurements
            if "predictions" not in plan.memo:
                before = replace(state, filed=state.filed[: state.sealed])
                plan = replace(plan, memo={**plan.memo, **before.wagers(where, plan.pulls)})
            pulls, wins = filed.pulls.astype(float), filed.wins.astype(float)
            lost = (plan.pulls - filed.pulls).astype(float) * self.charge
            state = replace(
                state,
                filed=(*state.filed[: state.sealed], replace(filed, plan=plan), *state.filed[state.sealed + 1 :]),
                sealed=state.sealed + 1,
                plug_in=state.plug_in.after(
                    where, pulls, wins, np.array(plan.memo["predictions"]), restart=plan.memo["restart"], missing=lost
                ),
                processes=after_stage(state.processes, plan.memo, where, pulls, wins, lost, self.problem.rows),
                experts=np.array(plan.memo["experts"]),
            )
        return state

    @cached_property
    def found(self) -> dict[Any, Any]:
        """What policies found out about this state, so that they need not twice."""
        return {}

    def process_of(self, leader: int) -> Process | None:
        """The oldest process of this leader: it has the largest weight."""
        return next((each for each in self.settled.processes if each.leader == leader), None)

    @cached_property
    def evidence(self) -> Evidence:
        """The plug-in evidence of the evaluated stages."""
        return Evidence.of(self.settled.plug_in, self.problem.rows)

    @cached_property
    def arrived(self) -> tuple[Floats, Floats]:
        """Pulls and wins of all answers there are, of open stages too: estimates and questions may use them."""
        settled = self.settled
        pulls, wins = settled.plug_in.pulls.copy(), settled.plug_in.wins.copy()
        for filed in settled.filed[settled.sealed :]:
            np.add.at(pulls, filed.plan.measurements, filed.pulls)
            np.add.at(wins, filed.plan.measurements, filed.wins)
        return pulls, wins

    @cached_property
    def waiting(self) -> int:
        """Number of questions whose answers are still to come; those of evaluated stages never will."""
        return int(self.planned.sum() - self.arrived[0].sum())

    @cached_property
    def planned(self) -> Floats:
        """Pulls of all stages, answered or not."""
        pulls = self.settled.plug_in.pulls.copy()
        for filed in self.filed[self.settled.sealed :]:
            np.add.at(pulls, filed.plan.measurements, filed.plan.pulls)
        return pulls

    @cached_property
    def fits(self) -> Floats:
        """The experts on all answers there are, every other one on old answers, too."""
        fits = ridge_experts(self.problem.rows, *self.arrived, self.experts)
        if self.old is not None:
            pulls, wins = (new + old for new, old in zip(self.arrived, self.old, strict=True))
            fits = fits.copy()
            fits[::2] = ridge_experts(self.problem.rows, pulls, wins, self.experts)[::2]
        return fits

    @cached_property
    def theta(self) -> Floats:
        """The estimate: the expert who predicted best so far."""
        return np.asarray(self.fits[int(np.argmax(self.settled.plug_in.scores))])

    @cached_property
    def ridge(self) -> float:
        """Its ridge weight in the units of the problem."""
        return float(RIDGES[int(np.argmax(self.settled.plug_in.scores))]) * self._longest

    @cached_property
    def _longest(self) -> float:
        """The largest squared length of a measurement vector."""
        return float(np.max(np.einsum("xi,xi->x", self.problem.rows, self.problem.rows)))

    @cached_property
    def information(self) -> Floats:
        """Information of all planned questions at the estimate."""
        rows = self.problem.rows
        return np.asarray((rows.T * (self.planned * variance(rows @ self.theta))) @ rows)

    @cached_property
    def recent_information(self) -> Floats:
        """The same of the questions planned after the last restart but one."""
        rows, restarts = self.problem.rows, self.settled.plug_in.restarts
        recent = self.planned - restarts[max(len(restarts) - 2, 0)].pulls
        return np.asarray((rows.T * (recent * variance(rows @ self.theta))) @ rows)

    def guess(self, rng: np.random.Generator) -> Floats:
        """A draw of θ, as uncertain as the answers there are leave it."""
        rows = self.problem.rows
        seen = (rows.T * (self.arrived[0] * variance(rows @ self.theta))) @ rows
        root = np.linalg.cholesky(seen + self.ridge * np.eye(len(seen)))
        return np.asarray(self.theta + np.linalg.solve(root.T, rng.normal(size=len(seen))))

    @cached_property
    def early(self) -> bool:
        """Whether it is human scale still: few dimensions, few answers, and some of them all but certain."""
        rank = self.problem.span.rank
        if rank > FEW_DIMENSIONS or self.asked >= LATE_FROM * rank:
            return False
        return self.asked < SETTLING * rank or bool(np.max(np.abs(self.problem.rows @ self.theta)) > STRONG)

    @cached_property
    def leader(self) -> int:
        """The best item under the estimate."""
        return int(np.argmax(self.problem.points @ self.theta))

    @cached_property
    def rivals(self) -> Integers:
        """All items but the leader."""
        return np.delete(np.arange(len(self.problem.items)), self.leader)

    @cached_property
    def inverse(self) -> Floats:
        """C: inverse of the ridge information at the estimate."""
        return np.asarray(np.linalg.inv(self.information + self.ridge * np.eye(len(self.information))))

    def nats(self, leader: int) -> Floats:
        """By how many nats (quadratic approximation) each item is behind a leader."""
        return closeness(self.problem.points, leader, self.theta, self.inverse, self.epsilon)

    def alternatives(self, leader: int) -> Alternatives:
        """The likeliest θ with which rivals have caught up, by the answers there are."""
        key = ("alternatives", leader)
        if key not in self.found:
            self.found[key] = self._alternatives(leader, self.theta, np.zeros(len(self.planned)))
        known: Alternatives = self.found[key]
        return known

    def later_alternatives(self, leader: int, guess: Floats) -> Alternatives:
        """The same as expected when all questions are answered, if the guess is right."""
        if not self.waiting:
            return self.alternatives(leader)
        return self._alternatives(leader, guess, self.planned - self.arrived[0])

    def _alternatives(self, leader: int, guess: Floats, waiting: Floats) -> Alternatives:
        points = self.problem.points
        close = np.argsort(closeness(points, leader, guess, self.inverse, self.epsilon), kind="stable")
        close = close[: min(CLOSEST, len(points) - 1)]
        return likeliest(
            self.problem.rows,
            self.arrived,
            waiting,
            guess,
            close,
            points[leader] - points[close],
            self.inverse,
            float(RIDGES[-1]) * self._longest,
            self.epsilon,
        )

    @property
    def expected(self) -> Floats:
        """Nats that answers still to come will add against each item, if the estimate is right."""
        rows = self.problem.rows
        if not self.waiting:
            return np.zeros(len(self.problem.points))
        seen = (rows.T * (self.arrived[0] * variance(rows @ self.theta))) @ rows
        inverse: Floats = np.asarray(np.linalg.inv(seen + self.ridge * np.eye(len(seen))), dtype=np.float64)
        now = closeness(self.problem.points, self.leader, self.theta, inverse, self.epsilon)
        now[self.leader], later = 0.0, self.nats(self.leader)
        later[self.leader] = 0.0
        return np.maximum(later - now, 0.0)

    @cached_property
    def localiser(self) -> Localiser:
        """An ellipsoid around all θ that the plug-in process does not refute."""
        return localiser(self.evidence, self.threshold)

    def evidence_about(self, leader: int) -> tuple[Floats, Floats]:
        """About how much evidence there is against each item already, in nats, and what its proof may come to.

        Both processes at one point where the rival has caught up with the leader (early the likeliest, later that of
        the quadratic approximation): no proof can come to more. It will come to less by about what the proof of a
        directional bound costs, λ times the room in the localiser, and to no more than the quadratic approximation.
        """
        key = ("evidence", leader)
        if key not in self.found:
            self.found[key] = self._evidence_about(leader, self.nats(leader))
        known: tuple[Floats, Floats] = self.found[key]
        return known

    def _evidence_about(self, leader: int, nats: Floats) -> tuple[Floats, Floats]:
        settled, points, rows = self.settled, self.problem.points, self.problem.rows
        if not settled.plug_in.restarts:
            return nats, nats
        if self.early:
            caught_up = self.alternatives(leader)
            close, theta = caught_up.items, caught_up.points
        else:
            close = np.argsort(nats, kind="stable")[: min(CLOSEST, len(points) - 1)]
            away = points[leader] - points[close]
            across = away @ self.inverse
            back = (away @ self.theta + self.epsilon) / np.maximum(np.einsum("zi,zi->z", away, across), 1e-300)
            theta = self.theta - across * back[:, None]
        found = self.evidence.log_evidence(theta)
        proven, process = found, self.process_of(leader)
        if process is not None:
            bets = process.values(close, rows, theta)
            cost = process.mean_tilts(close) * np.maximum(self.threshold - found, 0.0)[:, None]
            proven = np.maximum(found, log_sum(bets - cost) - math.log(BETS))
            found = np.maximum(found, log_sum(bets) - math.log(BETS))
        evidence, promised = nats.copy(), nats.copy()
        # The approximation knows nothing of answers that all agree; to refuse a stop, only the evidence itself counts.
        evidence[close], promised[close] = found, np.minimum(proven, nats[close])
        return evidence, promised

    def lacking(self, leader: int, items: Integers, points: Floats) -> Floats:
        """Nats that both processes lack at a θ of each item's null: where they do, no proof can pass it."""
        lacking = self.threshold - self.evidence.log_evidence(points)
        process = self.process_of(leader)
        if process is not None:
            bets = log_sum(process.values(items, self.problem.rows, points)) - math.log(BETS)
            lacking = np.minimum(lacking, self.needed(leader) - bets)
        return lacking

    def wagers(self, where: Integers, pulls: Integers) -> dict[str, Any]:
        """What is predicted and bet about a stage that asks these measurements so often, as plain values."""
        rows, points = self.problem.rows, self.problem.points
        bets = []
        for process in self._betting():
            close = self.nats(process.leader)
            rivals = np.argsort(close, kind="stable")[: min(CLOSEST, len(points) - 1)]
            made = good_bets(
                process,
                rows,
                points,
                rivals,
                self.theta,
                (where, pulls.astype(float)),
                behind=close[rivals],
                epsilon=self.epsilon,
                nats=self.stakes,
                inverse=self.inverse,
            )
            bets.append(
                {
                    "process": process.number,
                    "leader": process.leader,
                    "rivals": made.items.tolist(),
                    "shifts": made.shifts.tolist(),
                    "logits": made.logits.tolist(),
                    "limits": made.limits.tolist(),
                }
            )
        predictions = predicted(rows, self.arrived[0], self.fits, rows[where])
        return {"experts": self.fits.tolist(), "predictions": predictions.tolist(), "bets": bets}

    def _betting(self) -> list[Process]:
        """Processes to bet in the next stage, as they will be when all planned stages are answered."""
        processes = self.settled.processes
        rows = self.problem.rows
        for filed in self.settled.filed[self.settled.sealed :]:
            where, pulls = filed.plan.measurements, filed.plan.pulls.astype(float)
            processes = after_stage(processes, filed.plan.memo, where, pulls, 0 * pulls, 0 * pulls, rows)
        behind = self.nats(self.leader)
        if not processes and not self._may_begin(behind):
            return []
        behind[self.leader] = 0.0
        wanted = [int(item) for item in np.argsort(behind, kind="stable")[:LEADERS] if behind[item] < CONTENDER]
        result = []
        for leader in wanted:
            known = next((each for each in processes if each.leader == leader), None)
            if known is None:
                known = Process.begin(len(processes), leader)
                processes = (*processes, known)
            result.append(known)
        return result

    def _may_begin(self, behind: Floats) -> bool:
        """Whether those who may be best are few enough to begin a process for each: every one later has less weight."""
        asked, dimension = self.asked, self.problem.span.rank
        few = np.sum(behind < CONTENDER) < LEADERS
        return bool(behind.min() >= LEAD and asked >= (SETTLING if few else SETTLED) * dimension)


def after_stage(
    processes: tuple[Process, ...],
    memo: Mapping[str, Any],
    where: Integers,
    pulls: Floats,
    wins: Floats,
    lost: Floats,
    rows: Floats,
) -> tuple[Process, ...]:
    """The processes after a stage: those that bet in it, begun where it is their first."""
    result = list(processes)
    for each in memo["bets"]:
        number = each["process"]
        if number == len(result):
            result.append(Process.begin(number, each["leader"]))
        bets = Bets(
            np.array(each["rivals"], dtype=np.int64),
            np.array(each["shifts"]).reshape(-1, BETS, rows.shape[1]),
            np.array(each["logits"]),
            np.array(each["limits"]),
        )
        result[number] = result[number].after(where, pulls, wins, lost, bets, rows)
    return tuple(result)


def old_counts(warm: tuple[tuple[int, int, int], ...], count: int) -> tuple[Floats, Floats] | None:
    """Old answers (measurement, pulls, wins) as pulls and wins of all measurements; None if there are none."""
    if not warm:
        return None
    rows, asked, ones = np.array(warm, dtype=np.int64).T
    if rows.min() < 0 or rows.max() >= count or np.any(asked < 1) or np.any((ones < 0) | (ones > asked)):
        raise InvalidInput(
            f"warm must hold (measurement, pulls, wins) for measurements below {count}, got one that does not exist or "
            "more wins than pulls."
        )
    pulls, wins = np.zeros(count), np.zeros(count)
    np.add.at(pulls, rows, asked)
    np.add.at(wins, rows, ones)
    return pulls, wins
