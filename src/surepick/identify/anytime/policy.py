"""Anytime: the best item with nothing known beforehand but delta; docs/anytime.md has the proof.

until decided:
    evaluate    multiply both evidence processes by the factors of answered stages, in planning order     state
    stop        when for every rival one of them is proven large wherever that rival is as good            stopping
    choose      the questions that best separate the leader from its closest rivals                        sampling
    fix         predictions (ridge fits), and bets against every rival of the leader, before any answer    state
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput
from surepick.evidence.likelihood_ratio import RIDGES, PlugIn
from surepick.glm import Tally, probability_of_yes
from surepick.guarantee import Guarantee
from surepick.identify.anytime import claims
from surepick.identify.anytime.sampling import ask_early, ask_for_proof, ask_late, ask_uncovered
from surepick.identify.anytime.state import AnytimeMemo, State
from surepick.identify.anytime.stopping import (
    QUICK,
    THOROUGH,
    RivalBounds,
    all_rival_bounds,
    chance_of_best,
    evaluate,
    passed_rivals,
)
from surepick.identify.anytime.tuning import TUNING
from surepick.identify.policy import (
    ENOUGH,
    LAST_ANSWERS,
    LOGISTIC,
    MAY_DECIDE,
    OldAnswers,
    Partial,
    Plan,
    StageRecord,
    Wait,
    checked_answers,
    checked_limits,
    checked_partial,
    exhausted,
    missing_if_logistic,
    numbered,
    old_counts,
    out_of_budget,
)
from surepick.identify.problem import Problem
from surepick.identify.verdict import Rival, Status, Verdict


@dataclass(frozen=True, kw_only=True)
class Anytime:
    """Proved at any sampling, any delay and any time of stopping; needs neither kappa nor a norm bound.

    `epsilon` allows a leader that is worse than the best by at most this much (in log-odds); `budget` ends the search
    with the best guess. `missing` says what a question without an answer means: "ignorable", that whether an answer
    comes depends neither on what it would have been nor on answers to later questions, or "charged", that it may, and
    the worst is assumed.

    `warm` are old answers as (measurement, pulls, wins): half of the experts know them and no evidence counts them, so
    they make a search shorter where they are right and a little longer where they are not.
    """

    delta: float = 0.05
    epsilon: float = 0.0
    budget: int = ENOUGH
    missing: Literal["ignorable", "charged"] = "ignorable"
    warm: OldAnswers = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "warm", tuple((int(row), int(asked), int(ones)) for row, asked, ones in self.warm))
        checked_limits(self.delta, self.epsilon, self.budget)
        validate.one_of("missing", self.missing, ("ignorable", "charged"))

    @property
    def name(self) -> str:
        """Kebab-case name, as on the command line."""
        return "anytime"

    @property
    def guarantee(self) -> Guarantee:
        """What stands behind its verdicts."""
        return Guarantee.PROVED

    @property
    def statement(self) -> str:
        """What is claimed, and where it is proved."""
        return "Wrong with probability at most delta at any time of stopping (docs/anytime.md, Theorem 1)."

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the guarantee, in sentences."""
        return (LOGISTIC,)

    def start(self, problem: Problem) -> State:
        """The state before the first question."""
        nothing = np.zeros(len(problem.measurements))
        return State(
            problem,
            self.delta,
            self.epsilon,
            charge=self.missing == "charged",
            stopping_rule=evaluate,
            plug_in=PlugIn(nothing, nothing),
            experts=np.zeros((len(RIDGES), problem.span.rank)),
            old=old_counts(self.warm, len(nothing)),
        )

    def plan(
        self, state: State, rng: np.random.Generator, without: Collection[int] | None = None
    ) -> Plan | Wait | Verdict:
        """The next stage, whether or not earlier ones are open; or the final verdict.

        Measurements in `without` are not asked, because whoever answers has had them; with it, even if it is empty, no
        measurement is asked twice in one stage.
        """
        state = state.evaluated
        if _impossible(state) or state.evaluation.decided:
            return self.verdict(state)
        # Any stage sizes keep the guarantee (Theorem 1): they tune cost, and the budget may cut the last one.
        size = min(self._size(state), self.budget - state.asked)
        if size < 1:
            # Open questions count against the budget, and their answers may still decide.
            if state.evaluated_stages < len(state.stages):
                return LAST_ANSWERS
            return out_of_budget(self.verdict(state), self.budget)
        if state.early and state.waiting and _open_questions_suffice(state):
            return MAY_DECIDE
        if without is None:
            return self.stage_of(state, _choose_questions(state, size, rng))
        counts = _choose_new_questions(state, size, rng, without)
        return self.stage_of(state, counts) if counts.any() else exhausted(len(self.verdict(state).surviving))

    def _size(self, state: State) -> int:
        """Questions of the next stage: early one, which saves people's time; later more, which saves ours."""
        if state.early:
            return 1
        least = 1 + state.problem.span.rank // TUNING.dimensions_per_question
        return max(least, int(TUNING.growth * state.asked))

    def stage_of(self, state: State, counts: Integers, *, prove: bool = True) -> Plan:
        """A stage that asks each measurement `counts` times.

        Whoever chooses them, the proof holds as long as they depend on no answer that is not in the state. Without
        `prove` no proof is tried now, which saves most of the cost; it may be tried after any later stage. Predictions
        and bets are fixed now, or, where answers of earlier stages are still to come, when they are all in: they may
        depend on these, and on nothing later (docs/anytime.md, section 4).
        """
        where = np.flatnonzero(counts)
        begun = sum(memo.restart for memo in state.memos)
        # With charged answers nothing is assumed about which of them come, and one might be withheld for what a later
        # question's answer was: then factors are always fixed when the stage is planned.
        now = state.charge or state.evaluated.evaluated_stages == len(state.stages)
        memo = AnytimeMemo(
            restart=state.plug_in.wants_restart(begun, state.asked, state.problem.span.rank),
            passed=state.evaluation.passed if prove else (),
            tried=state.evaluation.tried if prove else (),
            examined=state.evaluation.examined if prove else state.proof_log.examined,
            rehearsed=state.evaluation.rehearsed if prove else state.proof_log.rehearsed,
            factors=state.fix_factors(where, counts[where]) if now else None,
        )
        return Plan(len(state.stages), where, counts[where], memo.to_json())

    def apply(self, state: State, plan: Plan) -> State:
        """The state after this stage was planned; stages answered by then are evaluated for good."""
        # From here on the answers evaluated can no longer be undone: the next stage depends on them.
        state = state.evaluated
        memo = AnytimeMemo.from_json(plan.memo)
        return replace(
            state,
            stages=(*state.stages, StageRecord.unanswered(replace(plan, memo={}))),  # which is in `memos`
            memos=(*state.memos, memo),
            experts=state.experts if memo.factors is None else memo.factors.experts,
            proof_log=state.proof_log.after(memo),
        )

    def update(self, state: State, stage: int, tally: Tally, partial: Partial = ()) -> State:
        """Record all answers to a stage that there are by now; stages already evaluated stay as they are.

        `partial` are scores between 0 and 1, such as ½ for a tie; their mean is then assumed to be logistic.
        """
        record = numbered(state.stages, stage)
        pulls, wins = checked_answers(record.plan, tally)
        partial = checked_partial(record.plan, tally, partial)
        return state.with_stage(stage, replace(record, pulls=pulls, wins=wins, partial=partial))

    def close(self, state: State, stage: int) -> State:
        """Take the answers a stage has as all it will get."""
        return state.with_stage(stage, replace(numbered(state.stages, stage), closed=True))

    def verdict(self, state: State) -> Verdict:
        """What the evaluated stages say: final where they decide, otherwise `open`."""
        state = state.evaluated
        problem = state.problem
        everything = np.arange(len(problem.items))
        if problem.obstacle is not None:
            return self._say(state, Status.NOT_IDENTIFIABLE, 0, everything, None, problem.obstacle)
        if len(problem.items) == 1:
            return self._say(state, Status.CERTAIN, 0, everything, None)
        if not state.plug_in.pulls.any():
            guess = state.leader if state.arrived[0].any() else 0
            return self._say(state, Status.OPEN, guess, everything, None, "No answer has been evaluated yet.")
        # A verdict may be asked for after every answer, so quick strategies must do; p-value and certificate use all.
        leader, bounds = state.leader, all_rival_bounds(state, QUICK)
        if state.evaluation.decided:
            status = Status.CERTAIN if self.epsilon == 0 else Status.WITHIN_EPSILON
            alive = np.array([leader]) if self.epsilon == 0 else everything
            return self._say(state, status, leader, alive, bounds)
        alive = everything
        if self.epsilon == 0:  # otherwise a passed rival may still be the best
            alive = np.sort(np.append(bounds.items[~bounds.passed(state)], leader))
        reason = (
            f"{len(alive)} of {len(problem.items)} items are not excluded; the leader is the best with probability "
            f"about {chance_of_best(state):.2f} (heuristic)."
        )
        return self._say(state, Status.OPEN, leader, alive, bounds, reason)

    def p_value(self, state: State) -> float:
        """Anytime-valid p-value of "the leader is not (epsilon-)best": the least delta at which it would have stopped.

        Valid at levels alpha ≥ delta for directional evidence, whose localiser is that of delta, and at all levels for
        plug-in evidence (docs/anytime.md, section 5).
        """
        state = state.evaluated
        if _impossible(state) or not state.plug_in.pulls.any():
            return 1.0
        return claims.p_value(state, all_rival_bounds(state, THOROUGH))

    def certificate(self, state: State) -> dict[str, Any]:
        """All that `surepick.certificate.verify_certificate` needs to prove the verdict again, as plain data.

        Vectors are in the coordinates of the features. Raises InvalidInput where there is no proved verdict.
        """
        state = state.evaluated
        if _impossible(state) or not state.evaluation.decided:
            raise InvalidInput("There is no proved verdict to certify; ask until the status is certain.")
        # Far rivals are not in the proof log: they are proved again here, at O(d²) each.
        claim = {"policy": self.name, "delta": self.delta, "epsilon": self.epsilon, "missing": self.missing}
        return claims.write_certificate(claim, state, all_rival_bounds(state, THOROUGH))

    def predict(self, state: State, measurement: int) -> float:
        """Probability that an answer to this measurement is 1, by the estimate; a heuristic."""
        return float(probability_of_yes(state.problem.rows[measurement] @ state.theta))

    def _say(
        self, state: State, status: Status, leader: int, alive: Integers, bounds: RivalBounds | None, reason: str = ""
    ) -> Verdict:
        """The verdict; rivals that are not excluded first, those of the highest estimated score before others."""
        problem = state.problem
        rivals: tuple[Rival, ...] = ()
        if bounds is not None:
            nats = bounds.nats
            # Where a rival is passed, "at least as good as the leader" (by more than epsilon) is refuted, and no more.
            passed = bounds.passed(state)
            low = np.where(passed, -self.epsilon, -np.inf) + 0.0
            rivals = tuple(
                Rival(
                    problem.names[bounds.items[n]],
                    float(low[n]),
                    math.inf,
                    None if np.isinf(nats[n]) else float(nats[n]),
                )
                for n in np.lexsort((-(problem.points[bounds.items] @ state.theta), passed))
            )
        evaluated = state.stages[: state.evaluated_stages]
        return Verdict(
            status=status,
            best=problem.names[leader],
            surviving=tuple(problem.names[item] for item in alive),
            delta=self.delta,
            epsilon=self.epsilon,
            questions_by_stage=tuple(stage.answers for stage in evaluated),
            policy=self.name,
            guarantee=self.guarantee,
            statement=self.statement,
            assumptions=(
                *self.assumptions,
                *missing_if_logistic(self.missing, sum(stage.missing for stage in evaluated)),
            ),
            rivals=rivals,
            reason=reason,
            also=problem.aliases[leader][1:],
        )

    def to_json(self) -> dict[str, Any]:
        """The configuration, with which `policy_from_json` builds an equal one."""
        return {"name": self.name} | {option.name: getattr(self, option.name) for option in fields(self)}


def _impossible(state: State) -> bool:
    """Whether there is nothing to ask: the questions cannot tell, or there is one item only."""
    return state.problem.obstacle is not None or len(state.problem.items) == 1


def _choose_questions(state: State, size: int, rng: np.random.Generator, rows: Floats | None = None) -> Integers:
    """How often to ask each measurement, `size` questions in all (docs/anytime.md, section 7).

    `rows` are the measurements to choose among, by default those of the problem.
    """
    leader, theta = state.leader, state.theta
    if state.waiting > TUNING.waiting_share * state.asked:
        # Many answers are still to come: what they may say is drawn, so that questions out at once differ.
        theta = state.draw_theta(rng)
        leader = int(np.argmax(state.problem.points @ theta))
    choose = _early_questions if state.early else _late_questions
    return choose(state, leader, theta, size, state.problem.rows if rows is None else rows)


def _choose_new_questions(state: State, size: int, rng: np.random.Generator, without: Collection[int]) -> Integers:
    """The same among measurements not in `without`, each at most once; all zero where none of them tells anything."""
    # A vector of zeros is worth nothing to every rule of choice, so measurements that may not be asked become zeros.
    new = np.ones(len(state.problem.measurements), dtype=np.bool_)
    new[list(without)] = False
    rows = state.problem.rows * new[:, None]
    counts = _choose_questions(state, size, rng, rows)
    return np.asarray(np.minimum(counts, new & state.problem.rows.any(axis=1)))


def _known_nats(state: State) -> Floats:
    """Nats that a proof may come to against each rival of the leader; infinite where it is passed."""
    evaluation = state.evaluation
    known = evaluation.promised.copy()
    known[list(passed_rivals(state))] = np.inf
    # Where the estimate says that all are passed and the proof does not, the proof says what is lacking.
    proved = np.maximum(evaluation.unproved_nats, TUNING.worst_proof)
    known[evaluation.unproved] = np.minimum(known[evaluation.unproved], proved)
    return known


def _enough(state: State) -> float:
    """Nats after which a rival is no longer asked about."""
    return state.needed + TUNING.spare_nats


def _open_questions_suffice(state: State) -> bool:
    """Whether the questions asked already are expected to decide: then judges wait instead of answering in vain."""
    rivals = state.caught_up_later(state.leader, state.theta)
    known = _known_nats(state)[rivals.items]
    return bool(np.all(np.isinf(known) | (np.minimum(rivals.nats, known + rivals.coming) > _enough(state))))


def _early_questions(state: State, leader: int, theta: Floats, size: int, rows: Floats) -> Integers:
    """What says most against the likeliest theta with which rivals have caught up, all open questions answered."""
    rivals = state.caught_up_later(leader, theta)
    nats = rivals.nats
    if leader == state.leader:
        # The likelihood ratio forgets what the processes paid for prediction; what a proof may come to does not.
        known = _known_nats(state)[rivals.items]
        nats = np.where(np.isinf(known), np.inf, np.minimum(nats, known + rivals.coming))
    if np.isinf(nats.min()):  # all of the closest are passed, but not all
        nats = rivals.nats
    return ask_early(rows, theta, rivals.ahead, nats, size, enough=_enough(state))


def _late_questions(state: State, leader: int, theta: Floats, size: int, rows: Floats) -> Integers:
    """What best separates leader and rivals; a share for what a proof lacks besides evidence."""
    evaluation = state.evaluation
    nats = known = _known_nats(state) + state.coming_nats
    if theta is not state.theta:
        # What is known is about the leader by the estimate; against that of a draw only the draw says something.
        nats = state.nats(leader, theta)
        if leader == state.leader:
            nats = np.minimum(nats, known)
    process = state.evaluated.process
    failing = len(evaluation.unproved) > 0
    for_proof = size // TUNING.proof_share if failing and len(process.rivals) else 0
    uncovered = size // TUNING.proof_share if evaluation.unbounded else 0
    counts = ask_late(
        rows,
        state.problem.points,
        leader,
        theta,
        state.information,
        state.ridge,
        size - for_proof - uncovered,
        nats,
        enough=_enough(state),
        optimistic=failing,
    )
    if for_proof:
        # The rival whose proof comes to least: the curvature of its bets says along which directions the proof loses.
        weakest = int(evaluation.unproved[np.argmin(evaluation.unproved_nats)])
        curvature = process.curvature(weakest, rows, state.theta)
        counts += ask_for_proof(rows, state.theta, state.information, state.ridge, curvature, for_proof)
    if uncovered:
        counts += ask_uncovered(rows, state.theta, state.recent_information, state.ridge, uncovered)
    return counts
