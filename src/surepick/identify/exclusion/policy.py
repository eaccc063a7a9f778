"""Exclusion: the claim "features" for comparisons at human scale, by one summed process per item (docs/exclusion.md).

until one item is left:
    evaluate    multiply the wealth against every item by the factors of answered stages, in planning order     state
    exclude     an item when the wealth is proven large under every theta that makes it the best      evidence.stakes
    choose      the question that says most against the likeliest theta with which rivals have caught up
    fix         what is predicted, and staked against every rival, before the answer                            state

With epsilon > 0 it ends with a leader that no item beats by more than epsilon.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.certificate import FORMAT, digest
from surepick.errors import InvalidInput
from surepick.evidence.likelihood_ratio import RIDGES, PlugIn
from surepick.evidence.stakes import StakedEvidence
from surepick.glm import Tally, probability_of_yes
from surepick.guarantee import Guarantee
from surepick.identify.anytime.sampling import ask_early, ask_late
from surepick.identify.exclusion.state import SPARE, Excluded, ExclusionEvaluation, ExclusionMemo, ExclusionState
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
from surepick.identify.problem import NOTHING, Problem
from surepick.identify.verdict import Rival, Status, Verdict

EARLY_PER_DIMENSION = 30
"""Questions per dimension planned one at a time, to refute the likeliest theta with which rivals caught up ..."""

GROWTH = 0.02
"""... later stages have this share of all questions before, chosen by the quadratic approximation."""

EARLY_TEMPERATURE = 0.5
"""A rival with this many nats more counts 1/e; with 1 a person with gap 1.5 was asked 118 questions on average, with
0.5 109 (30 development seeds)."""

WAITING_SHARE = 0.3
"""With a larger share of questions unanswered, theta is drawn, so that questions out at once differ."""


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """Excludes every item that no credible taste makes the best; proved at any sampling, delay and time of stopping.

    `epsilon` allows a leader that is worse than the best by at most this much (in log-odds); `budget` ends the search
    with the best guess. `missing` says what a question without an answer means: "ignorable", that whether an answer
    comes depends neither on what it would have been nor on answers to later questions, or "charged", that it may, and
    the worst is assumed. `warm` are old answers as (measurement, pulls, wins): half of the experts know them and no
    evidence counts them.

    For comparisons of up to about a hundred items with up to about twelve features; its cost per question grows with
    the answers, the items and the square of the features.
    """

    delta: float = 0.05
    epsilon: float = 0.0
    budget: int = ENOUGH
    missing: Literal["ignorable", "charged"] = "ignorable"
    warm: OldAnswers = ()

    name = "exclusion"
    guarantee = Guarantee.PROVED
    statement = "Excludes the best item with probability at most delta, at any time (docs/exclusion.md, Theorem 1)."
    assumptions = (LOGISTIC,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "warm", tuple((int(row), int(asked), int(ones)) for row, asked, ones in self.warm))
        checked_limits(self.delta, self.epsilon, self.budget)
        validate.one_of("missing", self.missing, ("ignorable", "charged"))

    def start(self, problem: Problem) -> ExclusionState:
        """The state before the first question; refuses problems that ask anything but comparisons."""
        if (
            problem.obstacle is None
            and len(problem.items) > 1
            and (problem.position or np.any(problem.about[: problem.listed] == NOTHING))
        ):
            raise InvalidInput(
                "The policy exclusion needs questions that compare two items, without a position coordinate; use "
                "Problem.from_pairs(items), or the policy Anytime for other questions."
            )
        nothing = np.zeros(len(problem.measurements))
        return ExclusionState(
            problem,
            self.delta,
            self.epsilon,
            charge=self.missing == "charged",
            evidence=StakedEvidence.of(len(problem.items)),
            plug_in=PlugIn(nothing, nothing),
            experts=np.zeros((len(RIDGES), problem.span.rank)),
            old=old_counts(self.warm, len(nothing)),
        )

    def plan(
        self, state: ExclusionState, rng: np.random.Generator, without: Collection[int] | None = None
    ) -> Plan | Wait | Verdict:
        """The next stage, whether or not earlier ones are open; or the final verdict.

        Measurements in `without` are not asked, because whoever answers has had them; with it, even if it is empty, no
        measurement is asked twice in one stage.
        """
        status, _, _ = self._conclusion(state)
        if status.final:
            return self.verdict(state)
        state = state.evaluated
        early = state.asked < EARLY_PER_DIMENSION * state.problem.span.rank
        size = min(1 if early else max(1, int(GROWTH * state.asked)), self.budget - state.asked)
        if size < 1:
            if state.evaluated_stages < len(state.stages):
                return LAST_ANSWERS
            return out_of_budget(self.verdict(state), self.budget)
        evaluation, now = state.evaluation, state.concluded
        if early and now.waiting and _open_questions_suffice(now, evaluation.nats):
            return MAY_DECIDE
        rows = state.problem.rows
        if without is not None:
            # A vector of zeros is worth nothing to every rule of choice.
            new = np.ones(len(rows), dtype=np.bool_)
            new[list(without)] = False
            rows = rows * new[:, None]
        counts = _choose_questions(now, evaluation, size, rng, rows, early=early)
        if without is not None:
            counts = np.minimum(counts, rows.any(axis=1))
            if not counts.any():
                return exhausted(len(self.verdict(state).surviving))
        return self.stage_of(state, counts)

    def stage_of(self, state: ExclusionState, counts: Integers, *, prove: bool = True) -> Plan:
        """A stage that asks each measurement `counts` times.

        Whoever chooses them, the proof holds as long as they depend on no answer that is not in the state. Without
        `prove` nothing is excluded now; it may be after any later stage.
        """
        where, state = np.flatnonzero(counts), state.evaluated
        excluded = state.evaluation.excluded if prove else ()
        state = state.concluded if prove else state
        # With charged answers nothing is assumed about which of them come, and one might be withheld for what a later
        # question's answer was: then factors are always fixed when the stage is planned.
        now = state.charge or state.evaluated_stages == len(state.stages)
        memo = ExclusionMemo(
            excluded=excluded,
            factors=state.fix_factors(where) if now else None,
        )
        return Plan(len(state.stages), where, counts[where], memo.to_json())

    def apply(self, state: ExclusionState, plan: Plan) -> ExclusionState:
        """The state after this stage was planned; stages answered by then are evaluated for good."""
        memo = ExclusionMemo.from_json(plan.memo)
        state = state.evaluated.excluding(memo.excluded)
        return replace(
            state,
            stages=(*state.stages, StageRecord.unanswered(plan)),
            memos=(*state.memos, memo),
            experts=state.experts if memo.factors is None else memo.factors.experts,
        )

    def update(self, state: ExclusionState, stage: int, tally: Tally, partial: Partial = ()) -> ExclusionState:
        """Record all answers to a stage that there are by now; stages already evaluated stay as they are.

        `partial` are scores between 0 and 1, such as ½ for a tie; their mean is then assumed to be logistic.
        """
        record = numbered(state.stages, stage)
        pulls, wins = checked_answers(record.plan, tally)
        partial = checked_partial(record.plan, tally, partial)
        return state.with_stage(stage, replace(record, pulls=pulls, wins=wins, partial=partial))

    def close(self, state: ExclusionState, stage: int) -> ExclusionState:
        """Take the answers a stage has as all it will get."""
        return state.with_stage(stage, replace(numbered(state.stages, stage), closed=True))

    def verdict(self, state: ExclusionState) -> Verdict:
        """What the evaluated stages say: final where they decide, otherwise `open`."""
        status, best, reason = self._conclusion(state)
        state = state.evaluated
        problem = state.problem
        everything = np.arange(len(problem.items))
        left, rivals = everything, list[Rival]()
        if not _impossible(problem):
            nats, now = state.evaluation.nats, state.concluded
            # With epsilon > 0 an item that is passed may still be the best.
            left = everything if self.epsilon > 0 else now.left(best)
            passed = ~np.isin(everything, now.left(best))
            proved = {one.item: one.nats for one in now.excluded.values() if one.leader == now.whose(best)}
            low = 0.0 if status is Status.CERTAIN else -self.epsilon if status is Status.WITHIN_EPSILON else -math.inf
            order = np.lexsort((-(problem.points @ now.theta), passed)).tolist() if state.evaluated_stages else ()
            for item in order:
                found = float(proved.get(item, nats[item]))
                if item != best:
                    rivals.append(Rival(problem.names[item], low, math.inf, found if math.isfinite(found) else None))
        evaluated = state.stages[: state.evaluated_stages]
        return Verdict(
            status=status,
            best=problem.names[best],
            surviving=tuple(problem.names[item] for item in left),
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
            rivals=tuple(rivals),
            reason=reason,
            also=problem.aliases[best][1:],
        )

    def _conclusion(self, state: ExclusionState) -> tuple[Status, int, str]:
        """Status, best item and reason of the verdict."""
        problem = state.problem
        if problem.obstacle is not None:
            return Status.NOT_IDENTIFIABLE, 0, problem.obstacle
        if len(problem.items) == 1:
            return Status.CERTAIN, 0, ""
        now = state.concluded
        left = now.left(now.leader)
        if not len(left):
            # If the model holds this has probability at most delta: the assumption itself is refuted.
            return (
                Status.NO_WINNER,
                now.leader,
                "Every item was excluded: no taste explains the answers by these features. Search with "
                "assume='winner', which does not need the features to be right.",
            )
        if self.epsilon == 0 and len(left) == 1:
            return Status.CERTAIN, int(left[0]), ""
        if self.epsilon > 0 and not len(now.rivals):
            return Status.WITHIN_EPSILON, now.leader, ""
        if not state.evaluated.evaluated_stages:
            return Status.OPEN, now.leader if now.arrived[0].any() else 0, "No answer has been evaluated yet."
        return Status.OPEN, now.leader, f"{len(left)} of {len(problem.items)} items are not excluded."

    def predict(self, state: ExclusionState, measurement: int) -> float:
        """Probability that an answer to this measurement is 1, by the estimate; a heuristic."""
        return float(probability_of_yes(state.problem.rows[measurement] @ state.theta))

    def certificate(self, state: ExclusionState) -> dict[str, Any]:
        """All that `surepick.certificate.verify_certificate` needs to prove the verdict again, as plain data.

        Raises InvalidInput where there is no proved verdict.
        """
        status, best, _ = self._conclusion(state)
        if not status.decided or _impossible(state.problem):
            raise InvalidInput("There is no proved verdict to certify; ask until the status is certain.")
        now = state.concluded
        proofs = [one for one in now.excluded.values() if one.leader == now.whose(best) and one.item != best]
        evaluated = zip(now.stages[: now.evaluated_stages], now.memos[: now.evaluated_stages], strict=True)
        content = {
            "format": FORMAT,
            "claim": "features",
            "policy": self.name,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "missing": self.missing,
            "problem": now.problem.to_json(),
            "best": best,
            "stages": [_stage(stage, memo) for stage, memo in evaluated],
            "rivals": [_proof(now.problem, one) for one in sorted(proofs, key=lambda one: one.item)],
        }
        return content | {"digest": digest(content)}

    def to_json(self) -> dict[str, Any]:
        """The configuration, with which `policy_from_json` builds an equal one."""
        known = {option.name: getattr(self, option.name) for option in fields(self) if option.name != "warm"}
        return {"name": self.name} | known | ({"warm": [list(row) for row in self.warm]} if self.warm else {})


def _choose_questions(
    state: ExclusionState,
    evaluation: ExclusionEvaluation,
    size: int,
    rng: np.random.Generator,
    rows: Floats,
    *,
    early: bool,
) -> Integers:
    """How often to ask each measurement, `size` questions in all; those in zero rows may not be asked."""
    leader, theta, nats = state.leader, state.theta, evaluation.nats
    # More evidence of any other kind would not end the search: a loss proves something whatever theta is.
    against = state.problem.comparison[leader, evaluation.unproved]
    against = against[(against != NOTHING) & rows[against].any(axis=1)]
    if len(against):
        counts = np.zeros(len(rows), dtype=np.int64)
        counts[against[0]] = size
        return counts
    if state.waiting > WAITING_SHARE * state.asked:
        # Many answers are still to come: what they may say is drawn, so that questions out at once differ.
        theta = state.draw_theta(rng)
        left = state.left(leader) if state.epsilon == 0 else np.arange(len(nats))
        leader = int(left[np.argmax(state.problem.points[left] @ theta)])
    enough = state.needed + SPARE
    if early:
        caught = state.caught_up_later(leader, theta)
        known = np.where(np.isfinite(nats[caught.items]), nats[caught.items], 0.0)
        return ask_early(
            rows, theta, caught.ahead, known + caught.coming, size, enough=enough, temperature=EARLY_TEMPERATURE
        )
    known = np.full(len(nats), np.inf)
    rivals = state.left(leader)
    rivals = rivals[rivals != leader]
    known[rivals] = np.where(np.isfinite(nats[rivals]), nats[rivals], 0.0)
    return ask_late(
        rows, state.problem.points, leader, theta, state.information, state.ridge, size, known, enough=enough
    )


def _open_questions_suffice(state: ExclusionState, nats: Floats) -> bool:
    """Whether the questions asked already are expected to decide: then judges wait instead of answering in vain."""
    caught = state.caught_up_later(state.leader, state.theta)
    return bool(np.all(np.minimum(caught.nats, nats[caught.items] + caught.coming) > state.needed))


def _impossible(problem: Problem) -> bool:
    """Whether there is nothing to ask: the questions cannot tell, or there is one item only."""
    return problem.obstacle is not None or len(problem.items) == 1


def _stage(stage: StageRecord, memo: ExclusionMemo) -> dict[str, Any]:
    """A stage as a certificate holds it."""
    assert memo.factors is not None  # they are fixed before a stage is evaluated
    return {
        "measurements": stage.plan.measurements.tolist(),
        "planned": stage.plan.pulls.tolist(),
        "pulls": stage.pulls.tolist(),
        "wins": stage.wins.tolist(),
        **({"partial": [list(scores) for scores in stage.partial]} if stage.partial else {}),
        "predictions": memo.factors.to_json()["predictions"],
    }


def _proof(problem: Problem, one: Excluded) -> dict[str, Any]:
    """What excludes an item, in the coordinates of the features."""
    claim = {"item": one.item, "nats": one.nats, "stages": one.stages}
    if not one.theta:
        return claim | {"rule": "losses"}
    return claim | {
        "rule": "cone",
        "theta": problem.span.embed(np.array(one.theta)).tolist(),
        "shares": one.shares,
        "multipliers": one.multipliers,
    }
