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
from scipy.special import ndtr

from surepick import validate
from surepick._arrays import Booleans, Floats, Integers
from surepick.errors import InvalidInput
from surepick.evidence.process import RIDGES, PlugIn
from surepick.glm import Tally
from surepick.guarantee import Guarantee
from surepick.identify.anytime.certificate import write_certificate
from surepick.identify.anytime.proof_log import Pass
from surepick.identify.anytime.rival_bounds import QUICK, THOROUGH, Way, Weighed, weigh
from surepick.identify.anytime.sampling import choose, closeness, cover, steady, tell_apart
from surepick.identify.anytime.state import LOCALISER, State, old_counts
from surepick.identify.anytime.stopping import Findings, examine
from surepick.identify.policy import Plan, Wait, checked_answers, checked_limits
from surepick.identify.problem import Problem
from surepick.identify.stages import ENOUGH, LOGISTIC, StageRecord
from surepick.identify.verdict import Rival, Status, Verdict

SPARE = 1.0
"""Nats beyond what a rival needs, after which it is no longer asked about."""

WAITING = 0.3
"""Share of questions without an answer, above which what to ask is chosen for drawn estimates."""

GROWTH = 0.05
"""Early a stage is one question, which saves people's time; later this share of all before it, which saves ours."""


@dataclass(frozen=True, kw_only=True)
class Anytime:
    """Proved at any sampling, any delay and any time of stopping; needs neither kappa nor a norm bound.

    `epsilon` allows a leader that is worse than the best by at most so much (in log-odds); `budget` ends the search
    with the best guess. `missing` says what a question without an answer means: "ignorable", that whether an answer
    comes depends neither on what it would have been nor on answers to later questions, or "charged", that it may, and
    the worst is assumed. With stop="posterior" it stops where the Laplace posterior probability of the leader is
    1 − delta: heuristic.

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
        return State(
            problem,
            (),
            0,
            PlugIn(nothing, nothing),
            (),
            experts,
            self.missing == "charged",
            self.delta,
            self.epsilon,
            old=old_counts(self.warm, len(nothing)),
        )

    def plan(self, state: State, rng: np.random.Generator) -> Plan | Wait | Verdict:
        """The next stage, whether or not earlier ones are open; or the final verdict."""
        state = state.settled
        if self._impossible(state) or self._decides(state):
            return self.verdict(state)
        size = min(self._size(state), self.budget - state.asked)
        if size < 1:
            if state.sealed < len(state.filed):
                return Wait("The budget is spent; answers to questions handed out are still to come.")
            return self._out_of_budget(self.verdict(state))
        if state.early and state.waiting and self._suffices(state):
            return Wait("What is asked already may decide; its answers are still to come.")
        return self._draft(state, size, rng)

    def apply(self, state: State, plan: Plan) -> State:
        """The state after this stage was planned; what was complete by then is evaluated for good."""
        nothing = np.zeros(len(plan.pulls), dtype=np.int64)
        return replace(
            state.settled,
            filed=(*state.settled.filed, StageRecord(plan, nothing, nothing)),
            experts=np.array(plan.memo.get("experts", state.settled.experts)),
            ledger=state.ledger.with_entries(plan.memo),
        )

    def update(self, state: State, stage: int, tally: Tally) -> State:
        """File all answers to a stage that there are by now; stages already evaluated stay as they are."""
        filed = _stage(state, stage)
        pulls, wins = checked_answers(filed.plan, tally)
        return state if stage < state.sealed else _with(state, stage, replace(filed, pulls=pulls, wins=wins))

    def close(self, state: State, stage: int) -> State:
        """Take the answers a stage has as all it will get."""
        filed = _stage(state, stage)
        return state if stage < state.sealed else _with(state, stage, replace(filed, closed=True))

    def _size(self, state: State) -> int:
        return 1 if state.early else max(1 + state.problem.span.rank // 10, int(GROWTH * state.asked))

    def _draft(self, state: State, size: int, rng: np.random.Generator) -> Plan:
        """Choose the questions."""
        leader, guess = state.leader, state.theta
        if state.waiting > WAITING * state.asked:
            # Many answers are still to come: what they may say is drawn, so that questions out at once differ.
            guess = state.guess(rng)
            leader = int(np.argmax(state.problem.points @ guess))
        choice = self._early_choice if state.early else self._choice
        return self.stage_of(state, choice(state, leader, guess, size))

    def _known(self, state: State) -> Floats:
        """Nats that a proof may come to against each rival of the leader; infinite where it is passed."""
        found = self._found(state)
        known = state.evidence_about(state.leader)[1].copy()
        known[list(self._passed(state))] = np.inf
        # Where the estimate says that all are passed and the proof does not, the proof says what is lacking.
        known[found.doubted] = np.minimum(known[found.doubted], np.maximum(found.proved, -50.0))
        return known

    def _enough(self, state: State) -> float:
        """Nats after which a rival is no longer asked about."""
        return state.needed(state.leader) + SPARE

    def _early_choice(self, state: State, leader: int, guess: Floats, size: int) -> Integers:
        """What says most against the likeliest θ with which rivals have caught up, all open questions answered."""
        against = state.later_alternatives(leader, guess)
        nats = against.nats
        if leader == state.leader:
            known = self._known(state)[against.items]
            nats = np.where(np.isinf(known), np.inf, np.minimum(nats, known + against.coming))
        if np.isinf(nats.min()):  # all of the closest are passed, but not all
            nats = against.nats
        return tell_apart(state.problem.rows, guess, against.ahead, nats, size, enough=self._enough(state))

    def _suffices(self, state: State) -> bool:
        """Whether the questions asked already are expected to decide."""
        against = state.later_alternatives(state.leader, state.theta)
        known = self._known(state)[against.items]
        return bool(np.all(np.isinf(known) | (np.minimum(against.nats, known + against.coming) > self._enough(state))))

    def _choice(self, state: State, leader: int, guess: Floats, size: int) -> Integers:
        """What best separates leader and rivals; a share for what a proof lacks besides evidence."""
        rows, points, theta = state.problem.rows, state.problem.points, state.theta
        found = self._found(state)
        doubtful = len(found.doubted) > 0
        wanting = known = self._known(state) + state.expected
        if guess is not theta:
            wanting = closeness(points, leader, guess, state.inverse, self.epsilon)
            if leader == state.leader:
                wanting = np.minimum(wanting, known)
        process = state.process_of(state.leader)
        steadying = size // 3 if doubtful and process is not None else 0
        covering = size // 3 if found.unbounded else 0
        counts = choose(
            rows,
            points,
            leader,
            guess,
            state.information,
            state.ridge,
            size - steadying - covering,
            wanting,
            enough=self._enough(state),
            doubtful=doubtful,
        )
        if process is not None and steadying:
            weakest = int(found.doubted[np.argmin(found.proved)])
            bent = process.bending(weakest, rows, theta)
            counts += steady(rows, theta, state.information, state.ridge, bent, steadying)
        if covering:
            counts += cover(rows, theta, state.recent_information, state.ridge, covering)
        return counts

    def stage_of(self, state: State, counts: Integers) -> Plan:
        """A stage that asks each measurement so often.

        Whoever chooses them, the proof holds as long as they depend on no answer that is not in the state. Predictions
        and bets are fixed now, or, where answers of earlier stages are still to come, when they are all there: they may
        depend on these, and on nothing later.
        """
        where = np.flatnonzero(counts)
        begun = sum(bool(each.plan.memo["restart"]) for each in state.filed)
        memo = {
            "restart": state.plug_in.wants_restart(begun, state.asked, state.problem.span.rank),
            **self._found(state).entries(),
        }
        if state.charge or state.settled.sealed == len(state.filed):
            memo |= state.wagers(where, counts[where])
        return Plan(len(state.filed), where, counts[where], memo)

    def _impossible(self, state: State) -> bool:
        return state.problem.obstacle is not None or len(state.problem.items) == 1

    def _decides(self, state: State) -> bool:
        """Whether the answers so far end the search."""
        return self._found(state).decided

    def _found(self, state: State) -> Findings:
        """What can be proved after the complete stages."""
        found: dict[Any, Findings] = state.settled.found
        if self not in found:
            found[self] = self._examine(state.settled)
        return found[self]

    def _examine(self, state: State) -> Findings:
        if not state.plug_in.pulls.any():
            return Findings()
        if self.stop == "posterior":
            nats = state.nats(state.leader)
            return Findings(decided=bool(np.sum(ndtr(-np.sqrt(2 * nats[np.isfinite(nats)]))) <= self.delta))
        return examine(state)

    def _passed(self, state: State) -> dict[int, Pass]:
        """Rivals of the leader that were proved passed, now or before."""
        return state.ledger.passed(state.leader) | {each.item: each for each in self._found(state).passed}

    def _passes(self, state: State, weighed: Weighed) -> Booleans:
        return np.asarray((weighed.plug_in >= state.threshold) | (weighed.directional >= state.needed(state.leader)))

    def _weigh(self, state: State, ways: tuple[Way, ...]) -> Weighed:
        """Proven nats against all rivals: of those passed once, by the proof that passed them."""
        passed = self._passed(state)
        left = np.array([item for item in state.rivals if int(item) not in passed], dtype=np.int64)
        return weigh(state, state.leader, left, ways).joined(passed.values())

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
        decided = self._decides(state)
        weighed = self._weigh(state, QUICK)
        passes = self._passes(state, weighed)
        if decided:
            status = Status.CERTAIN if self.epsilon == 0 else Status.WITHIN_EPSILON
            alive = np.array([leader]) if self.epsilon == 0 else everything
            return self._say(state, status, leader, alive, weighed)
        alive = everything
        if self.epsilon == 0:
            alive = np.sort(np.append(weighed.items[~passes], leader))
        reason = (
            f"{len(alive)} items are not excluded; the anytime-valid p-value of the weakest rival is "
            f"{self._p_value(state, weighed):.2g}."
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
        return self._p_value(state, self._weigh(state, THOROUGH))

    def _p_value(self, state: State, weighed: Weighed) -> float:
        plain = np.exp(-np.maximum(weighed.plug_in, -500.0)) / LOCALISER  # far below zero it is one, and no overflow
        tilted = np.maximum(np.exp(-np.maximum(weighed.directional, -500.0)) / state.share_of(state.leader), self.delta)
        return float(min(1.0, np.max(np.minimum(plain, tilted))))

    def certificate(self, state: State) -> dict[str, Any]:
        """All that `surepick.certificate.verify_certificate` needs to prove the verdict again, as plain data.

        Vectors are in the coordinates of the features. Raises InvalidInput where there is no proved verdict.
        """
        state = state.settled
        if self.stop != "proved" or self._impossible(state) or not self._decides(state):
            raise InvalidInput("There is no proved verdict to certify; ask until the status is certain.")
        weighed = self._weigh(state, THOROUGH)
        claim = {"policy": self.name, "delta": self.delta, "epsilon": self.epsilon, "missing": self.missing}
        return write_certificate(claim, state, weighed, state.localiser)

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
            passed = self._passes(state, weighed) | (status.decided and self.stop == "posterior")
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
            assumptions=(*self.assumptions, *self._ignored(state)),
            rivals=rivals,
            reason=reason,
            also=problem.aliases[leader][1:],
        )

    def _ignored(self, state: State) -> tuple[str, ...]:
        """What is assumed about answers that did not come, if any did not."""
        unanswered = sum(each.missing for each in state.filed[: state.sealed])
        if self.missing == "charged" or not unanswered:
            return ()
        return (
            f"{unanswered:,} questions were closed without an answer: whether an answer comes depends neither on what "
            "it would have been nor on answers to later questions, and decisive answers are logistic.",
        )

    def to_json(self) -> dict[str, Any]:
        """The configuration, with which `policy_from_json` builds an equal one."""
        return {"name": self.name} | {each.name: getattr(self, each.name) for each in fields(self)}


def _with(state: State, stage: int, filed: StageRecord) -> State:
    return replace(state, filed=(*state.filed[:stage], filed, *state.filed[stage + 1 :]))


def _stage(state: State, stage: int) -> StageRecord:
    if not 0 <= stage < len(state.filed):
        raise InvalidInput(f"There is no stage {stage}; {len(state.filed)} were planned, counted from 0.")
    return state.filed[stage]
