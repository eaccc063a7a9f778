"""Anytime: the best item with nothing known beforehand but delta; docs/anytime.md has the proof.

before each stage   fix predictions (ridge fits) and, for every rival of the leader, a tilt        plug_in, directional
ask                 what best separates the leader from its closest rivals                         soft_top_two
after each stage    multiply both evidence processes by the stage's factors, in planning order
stop                when for every rival one of them is proven large wherever that rival is best   certify
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from surepick import validate
from surepick.certificate import FORMAT, digest
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee
from surepick.identify.anytime_state import BET_RIVALS, State, after_stage, certified_stage
from surepick.identify.certify import localiser
from surepick.identify.contract import HOPELESS
from surepick.identify.directional import CONTENDER, LEAD, LEADERS, SETTLING, Process, good_bets, weight
from surepick.identify.plug_in import RIDGES, PlugIn, predicted
from surepick.identify.policy import Plan, Wait, checked_answers, checked_limits
from surepick.identify.problem import Problem
from surepick.identify.soft_top_two import EARLY, FEW_DIMENSIONS, LATE, LATE_FROM, choose, cover
from surepick.identify.stagewise import ENOUGH, LOGISTIC, Filed
from surepick.identify.verdict import Rival, Status, Verdict
from surepick.identify.weigh import Weighed, weigh
from surepick.logistic import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOCALISER = 0.3
"""Share of delta spent by the plug-in process; the rest by the directional one."""

SPARE = 1.0
"""Nats beyond what a rival needs, after which it is no longer asked about."""

GROWTH = 0.05
"""A stage holds this share of the questions before it, at least one."""


@dataclass(frozen=True, kw_only=True)
class Anytime:
    """Proved at any sampling, any delay and any time of stopping; needs neither kappa nor a norm bound.

    `epsilon` allows a leader that is worse than the best by at most so much (in log-odds); `budget` ends the search
    with the best guess. `missing` says what a question without an answer means: "ignorable", that whether an answer
    comes does not depend on what it would have been, or "charged", that it may, and the worst is assumed. With
    stop="posterior" it stops where the Laplace posterior probability of the leader is 1 − delta: heuristic.

    `warm` are old answers as (measurement, pulls, wins): half of the predictors know them, no evidence counts them, so
    that they make a search shorter where they are right and a little longer where they are not.
    """

    delta: float = 0.05
    epsilon: float = 0.0
    budget: int = ENOUGH
    missing: Literal["ignorable", "charged"] = "ignorable"
    stop: Literal["proved", "posterior"] = "proved"
    warm: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "warm", tuple((int(row), int(asked), int(ones)) for row, asked, ones in self.warm))
        checked_limits(self.delta, self.epsilon, self.budget)
        validate.one_of("missing", self.missing, ("ignorable", "charged"))
        validate.one_of("stop", self.stop, ("proved", "posterior"))

    @property
    def name(self) -> str:
        """Kebab-case name, as on the command line."""
        return "anytime"

    @property
    def guarantee(self) -> Guarantee:
        """What stands behind its verdicts."""
        return Guarantee.PROVED if self.stop == "proved" else Guarantee.HEURISTIC

    @property
    def statement(self) -> str:
        """What is claimed, and where it is proved."""
        if self.stop == "posterior":
            return "Laplace posterior probability of the leader; a heuristic (docs/anytime.md, section 6)."
        return "Wrong with probability at most delta at any time of stopping (docs/anytime.md, Theorem 1)."

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the guarantee, in sentences."""
        return (LOGISTIC,)

    def start(self, problem: Problem) -> State:
        """The state before the first question."""
        nothing = np.zeros(len(problem.measurements))
        experts = np.zeros((len(RIDGES), problem.span.rank))
        old: tuple[Floats, Floats] | None = None
        if self.warm:
            rows, asked, ones = np.array(self.warm, dtype=np.int64).T
            if rows.min() < 0 or rows.max() >= len(nothing) or np.any(asked < 1) or np.any((ones < 0) | (ones > asked)):
                raise InvalidInput(
                    f"warm must hold (measurement, pulls, wins) for measurements below {len(nothing)}, got one that "
                    "does not exist or more wins than pulls."
                )
            pulls, wins = np.zeros_like(nothing), np.zeros_like(nothing)
            np.add.at(pulls, rows, asked)
            np.add.at(wins, rows, ones)
            old = (pulls, wins)
        return State(problem, (), 0, PlugIn(nothing, nothing), (), experts, self.missing == "charged", old)

    def plan(self, state: State, rng: np.random.Generator) -> tuple[State, Plan | Wait | Verdict]:
        """The next stage, whether or not earlier ones are open; or the final verdict."""
        if self._impossible(state) or self._decides(state):
            return state, self.verdict(state)
        size = min(self._size(state), self.budget - state.asked)
        if size < 1:
            if state.settled.sealed < len(state.filed):
                return state, Wait("The budget is spent; answers to questions handed out are still to come.")
            return state, self._out_of_budget(self.verdict(state))
        plan = self._draft(state, size)
        return self.adopt(state, plan), plan

    def adopt(self, state: State, plan: Plan) -> State:
        """The state after this stage was planned; what was complete by then is evaluated for good."""
        nothing = np.zeros(len(plan.pulls), dtype=np.int64)
        return replace(
            state.settled,
            filed=(*state.filed, Filed(plan, nothing, nothing)),
            experts=np.array(plan.memo["experts"]),
        )

    def absorb(self, state: State, stage: int, tally: Tally) -> State:
        """File all answers to a stage that there are by now; stages already evaluated stay as they are."""
        filed = _stage(state, stage)
        pulls, wins = checked_answers(filed.plan, tally)
        return state if stage < state.sealed else _with(state, stage, replace(filed, pulls=pulls, wins=wins))

    def close(self, state: State, stage: int) -> State:
        """Take the answers a stage has as all it will get."""
        filed = _stage(state, stage)
        return state if stage < state.sealed else _with(state, stage, replace(filed, closed=True))

    @property
    def _threshold(self) -> float:
        """Nats that the plug-in process needs."""
        return math.log(1 / (LOCALISER * self.delta))

    def _needed(self, process: Process | None) -> float:
        """Nats that a directional process needs."""
        return math.log(1 / (weight(0 if process is None else process.number) * (1 - LOCALISER) * self.delta))

    def _size(self, state: State) -> int:
        return max(1 + state.problem.span.rank // 10, int(GROWTH * state.asked))

    def _draft(self, state: State, size: int) -> Plan:
        """Choose the questions, then fix predictions and tilts for them."""
        rows, points, theta = state.problem.rows, state.problem.points, state.theta
        nats = state.nats(state.leader, self.epsilon)
        early = state.problem.span.rank <= FEW_DIMENSIONS and state.asked < LATE_FROM * state.problem.span.rank
        form = EARLY if early else LATE
        known = state.evidence_about(state.leader, nats, self.epsilon, self._threshold, penalised=True)
        # Where the estimate says that all are passed and the proof does not, the proof says what is lacking.
        lacking = self._lacking(state) or Weighed.none()
        doubtful = len(lacking.items) > 0
        proved = np.maximum(np.maximum(lacking.plug_in, lacking.directional), -50.0)
        known[lacking.items] = np.minimum(known[lacking.items], proved)
        covering = size // 2 if np.any(lacking.directional < -HOPELESS) else 0
        counts = choose(
            rows,
            points,
            state.leader,
            theta,
            state.information,
            state.ridge,
            size - covering,
            known,
            form,
            enough=self._needed(state.process_of(state.leader)) + SPARE,
            doubtful=doubtful,
        )
        if covering:
            # Hardly a bound at all: the latest restart has hardly an answer about some direction.
            counts += cover(rows, theta, state.recent_information, state.ridge, covering)
        where = np.flatnonzero(counts)
        pulls = counts[where]
        begun = sum(bool(each.plan.memo["restart"]) for each in state.filed)
        bets = []
        for process in self._betting(state, nats):
            close = nats if process.leader == state.leader else state.nats(process.leader, self.epsilon)
            rivals = np.argsort(close, kind="stable")[: min(BET_RIVALS, len(points) - 1)]
            made = good_bets(
                process,
                rows,
                points,
                rivals,
                theta,
                (where, pulls.astype(float)),
                behind=close[rivals],
                epsilon=self.epsilon,
                nats=2 * (math.log(1 / self.delta) + 1),
                inverse=state.inverse,
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
        memo = {
            "experts": state.fits.tolist(),
            "predictions": predicted(rows, state.arrived[0], state.fits, rows[where]).tolist(),
            "restart": state.plug_in.wants_restart(begun, state.asked, state.problem.span.rank),
            "bets": bets,
        }
        return Plan(len(state.filed), where, pulls, memo)

    def _betting(self, state: State, nats: Floats) -> list[Process]:
        """Processes to bet in the next stage, as they will be when all planned stages are answered."""
        processes = state.settled.processes
        rows = state.problem.rows
        for filed in state.filed[state.settled.sealed :]:
            where, pulls = filed.plan.measurements, filed.plan.pulls.astype(float)
            processes = after_stage(processes, filed.plan.memo, where, pulls, 0 * pulls, 0 * pulls, rows)
        if not processes and (nats.min() < LEAD or state.asked < SETTLING * rows.shape[1]):
            return []
        behind = nats.copy()
        behind[state.leader] = 0.0
        wanted = [int(item) for item in np.argsort(behind, kind="stable")[:LEADERS] if behind[item] < CONTENDER]
        result = []
        for leader in wanted:
            known = next((each for each in processes if each.leader == leader), None)
            if known is None:
                known = Process.begin(len(processes), leader)
                processes = (*processes, known)
            result.append(known)
        return result

    def _impossible(self, state: State) -> bool:
        return state.problem.obstacle is not None or len(state.problem.items) == 1

    def _decides(self, state: State) -> bool:
        """Whether the answers so far end the search."""
        return self._lacking(state) is None

    def _lacking(self, state: State) -> Weighed | None:
        """Rivals that could not be proved passed though estimates say they are; None where the search ends."""
        found: dict[Any, Weighed | None] = state.settled.found
        if self not in found:
            found[self] = self._find_lacking(state.settled)
        return found[self]

    def _find_lacking(self, state: State) -> Weighed | None:
        """Cheap tests that refuse come first; where they do, nothing is weighed."""
        leader, nothing = state.leader, Weighed.none()
        if not state.plug_in.pulls.any():
            return nothing
        nats = state.nats(leader, self.epsilon)
        if self.stop == "posterior":
            return None if np.sum(ndtr(-np.sqrt(2 * nats[np.isfinite(nats)]))) <= self.delta else nothing
        # A bound of an infimum is at most the value at any one point, and points are cheap.
        known = state.evidence_about(leader, nats, self.epsilon, self._threshold, penalised=False)
        order = np.argsort(known, kind="stable")[:-1]
        if known[order[0]] < min(self._threshold, self._needed(state.process_of(leader))):
            return nothing
        for part in (order[:1], order[1:12], order[12:]):
            weighed = self._weigh(state, leader, part, thorough=True)
            passes = self._passes(state, leader, weighed)
            if not np.all(passes):
                return weighed.rows_of(np.flatnonzero(~passes))
        return None

    def _passes(self, state: State, leader: int, weighed: Weighed) -> NDArray[np.bool_]:
        needed = self._needed(state.process_of(leader))
        return np.asarray((weighed.plug_in >= self._threshold) | (weighed.directional >= needed))

    def _weigh(self, state: State, leader: int, items: Integers, *, thorough: bool) -> Weighed:
        needed = self._needed(state.process_of(leader))
        return weigh(state, leader, items, self.epsilon, self._threshold, needed, thorough=thorough)

    def verdict(self, state: State) -> Verdict:
        """What the complete stages say: final where they decide, otherwise `open`."""
        state = state.settled
        problem = state.problem
        everything = np.arange(len(problem.items))
        if problem.obstacle is not None:
            return self._say(state, Status.NOT_IDENTIFIABLE, 0, everything, None, problem.obstacle)
        if len(problem.items) == 1:
            return self._say(state, Status.CERTAIN, 0, everything, None)
        if not state.plug_in.pulls.any():
            return self._say(state, Status.OPEN, 0, everything, None, "There is no answer in a complete stage yet.")
        leader = state.leader
        others = np.array([item for item in range(len(problem.items)) if item != leader])
        decided = self._decides(state)
        weighed = self._weigh(state, leader, others, thorough=decided)
        passes = self._passes(state, leader, weighed)
        if decided:
            status = Status.CERTAIN if self.epsilon == 0 else Status.WITHIN_EPSILON
            alive = np.array([leader]) if self.epsilon == 0 else everything
            return self._say(state, status, leader, alive, weighed)
        alive = everything
        if self.epsilon == 0:
            alive = np.sort(np.append(others[~passes], leader))
        reason = (
            f"{len(alive)} items are not excluded; the anytime-valid p-value of the weakest rival is "
            f"{self._p_value(state, leader, weighed):.2g}."
        )
        return self._say(state, Status.OPEN, leader, alive, weighed, reason)

    def p_value(self, state: State) -> float:
        """Anytime-valid p-value of "the leader is not (epsilon-)best": the least delta at which it would have stopped.

        Valid at levels alpha ≥ delta for directional evidence, whose localiser is that of delta, and at all levels for
        plug-in evidence (docs/anytime.md, section 5).
        """
        state = state.settled
        if self._impossible(state) or not state.plug_in.pulls.any():
            return 1.0
        others = np.array([item for item in range(len(state.problem.items)) if item != state.leader])
        return self._p_value(state, state.leader, self._weigh(state, state.leader, others, thorough=True))

    def _p_value(self, state: State, leader: int, weighed: Weighed) -> float:
        process = state.process_of(leader)
        share = weight(0 if process is None else process.number) * (1 - LOCALISER)
        plain = np.exp(-np.maximum(weighed.plug_in, -500.0)) / LOCALISER  # far below zero it is one, and no overflow
        tilted = np.maximum(np.exp(-np.maximum(weighed.directional, -500.0)) / share, self.delta)
        return float(min(1.0, np.max(np.minimum(plain, tilted))))

    def certificate(self, state: State) -> dict[str, Any]:
        """All that `surepick.certificate.verify_certificate` needs to prove the verdict again, as plain data.

        Vectors are in the coordinates of the features. Raises InvalidInput where there is no proved verdict.
        """
        state = state.settled
        if self.stop != "proved" or self._impossible(state) or not self._decides(state):
            raise InvalidInput("There is no proved verdict to certify; ask until the status is certain.")
        problem, leader = state.problem, state.leader
        others = np.array([item for item in range(len(problem.items)) if item != leader])
        weighed = self._weigh(state, leader, others, thorough=True)
        embed = problem.span.embed
        far = localiser(state.evidence, self._threshold)
        process = state.process_of(leader)
        rivals = []
        for item, proof, nats in zip(
            others, weighed.proofs, np.fmax(weighed.plug_in, weighed.directional), strict=True
        ):
            points: dict[str, Any] = {
                name: embed(proof[name]).tolist() for name in ("theta", "centre") if name in proof
            }
            if "passes" in proof:
                points["passes"] = [
                    {"theta": embed(theta).tolist(), "penalty": penalty, "bend": bend}
                    for theta, penalty, bend in proof["passes"]
                ]
            rivals.append({"item": int(item), "nats": float(nats)} | proof | points)
        tilted = {int(each["item"]) for each in rivals if each["rule"] == "directional"}
        content = {
            "format": FORMAT,
            "policy": self.name,
            "problem": problem.to_json(),
            "best": leader,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "missing": self.missing,
            "process": None if process is None else process.number,
            "far": {"theta": embed(far.centre).tolist(), "shares": far.shares.tolist()},
            "stages": [certified_stage(each, embed, process, tilted) for each in state.filed[: state.sealed]],
            "rivals": rivals,
        }
        return content | {"digest": digest(content)}

    def _out_of_budget(self, verdict: Verdict) -> Verdict:
        reason = (
            f"The budget of {self.budget:,} questions is spent. {verdict.reason} "
            "Raise the budget, or accept an item that is nearly best with epsilon."
        )
        return replace(verdict, status=Status.BUDGET_SPENT, reason=reason)

    def _say(
        self, state: State, status: Status, leader: int, alive: Integers, weighed: Weighed | None, reason: str = ""
    ) -> Verdict:
        problem = state.problem
        rivals: tuple[Rival, ...] = ()
        if weighed is not None:
            nats = np.maximum(weighed.plug_in, weighed.directional)
            order = np.argsort(nats, kind="stable")
            # Where a rival is passed, "at least as good as the leader" (by more than epsilon) is refuted, and no more.
            passed = self._passes(state, leader, weighed) | (status.decided and self.stop == "posterior")
            low = np.where(passed, -self.epsilon, -np.inf) + 0.0
            rivals = tuple(
                Rival(
                    problem.names[weighed.items[n]],
                    float(low[n]),
                    math.inf,
                    None if np.isinf(nats[n]) else float(nats[n]),
                )
                for n in order
            )
        return Verdict(
            status=status,
            best=problem.names[leader],
            surviving=tuple(problem.names[item] for item in alive),
            delta=self.delta,
            epsilon=self.epsilon,
            questions_by_stage=tuple(int(each.pulls.sum()) for each in state.filed[: state.sealed]),
            policy=self.name,
            guarantee=self.guarantee,
            statement=self.statement,
            assumptions=self.assumptions,
            rivals=rivals,
            reason=reason,
            also=problem.aliases[leader][1:],
        )

    def to_json(self) -> dict[str, Any]:
        """The configuration, with which `policy_from_json` builds an equal one."""
        return {"name": self.name} | {each.name: getattr(self, each.name) for each in fields(self)}


def _with(state: State, stage: int, filed: Filed) -> State:
    return replace(state, filed=(*state.filed[:stage], filed, *state.filed[stage + 1 :]))


def _stage(state: State, stage: int) -> Filed:
    if not 0 <= stage < len(state.filed):
        raise InvalidInput(f"There is no stage {stage}; {len(state.filed)} were planned, counted from 0.")
    return state.filed[stage]
