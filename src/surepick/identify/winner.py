"""Winner: the best item without any model of the answers; docs/assumptions.md has the proof.

until one item is left, and it loses to none of the others:
    evaluate    multiply the process of each item shown by its factor, in planning order      evidence.betting
    exclude     every item whose process ever reached 1/delta
    choose      the likeliest best item and a rival that may be as good                       `_pair`
    fix         what is predicted for both, before the answer                                 `Winner.stage_of`

With epsilon > 0 it also ends with a leader that no winner beats by more than epsilon. Leaders are named one after the
other, before the answers that count for them; they share half of delta by the weights .6·.4^j in the order of naming.

Features and past answers guide the search and size the bets (`glm.item_scores`); the proof needs neither to be right.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from surepick import validate
from surepick._arrays import Integers
from surepick.certificate import FORMAT, digest
from surepick.errors import InvalidInput
from surepick.evidence.betting import Predicted, WinnerEvidence
from surepick.glm import Tally
from surepick.glm.item_scores import ItemScores
from surepick.guarantee import Guarantee
from surepick.identify.policy import (
    ENOUGH,
    Partial,
    Plan,
    StageRecord,
    Wait,
    checked_answers,
    checked_limits,
    checked_partial,
    exhausted,
    numbered,
)
from surepick.identify.problem import NOTHING, Problem
from surepick.identify.verdict import Rival, Status, Verdict
from surepick.identify.winner_sampling import choose_questions

ASSUMPTION = (
    "One item wins each of its comparisons with probability at least one half, whatever happened before; nothing is "
    "assumed about features, about the other items, or about judges being alike."
)

SAME_FEATURES = "Items that were given with the same features are equally good: they are asked about as one item."
"""Also assumed where a problem merged items. (W) itself would tell them apart."""

WITHIN = (
    "The winner beats the item named by more than epsilon with probability at most delta, at any time "
    "(docs/assumptions.md, Theorem 2)."
)

NAMED_SHARE = 0.5
"""Share of delta for named leaders, if epsilon > 0; the rest is for excluding items outright."""

NAMING_CHANCE = 0.5
"""A leader is named when it is within epsilon of the best with about this probability: each naming costs weight."""

MOST_ETA = 0.49
"""Largest margin of the epsilon form; an epsilon above 4.6 is taken as 4.6."""

CONFIRMING = 30
"""Answers after which the last item may be a little behind in its comparison with an excluded one."""

SPREAD_PRIOR = 1.0
"""Weight of the usual variance, of wins and losses, in the estimate from scores: about that of four answers."""

ONE_BY_ONE = 1000
"""Questions that are planned one at a time ..."""

GROWTH = 0.02
"""... and how a stage grows with those beyond: beliefs change little within a fiftieth of the answers."""


@dataclass(frozen=True, kw_only=True)
class Winner:
    """Excludes every item that loses too often; proved at any sampling rule, any delay and any stopping time.

    `epsilon` allows a leader that the winner beats by at most this much, in log-odds: exact ties end this way only.
    `budget` ends the search with the best guess. `missing` says what a question without an answer means: "ignorable",
    that whether an answer comes does not depend on what it would have been, or "charged", that it may, and the worst
    is assumed. It takes at least five questions per item, however good the features are.
    """

    delta: float = 0.05
    epsilon: float = 0.0
    budget: int = ENOUGH
    missing: Literal["ignorable", "charged"] = "ignorable"

    name = "winner"
    guarantee = Guarantee.PROVED
    statement = "Excludes the winner with probability at most delta, at any time (docs/assumptions.md, Theorem 1)."
    assumptions = (ASSUMPTION,)

    def __post_init__(self) -> None:
        checked_limits(self.delta, self.epsilon, self.budget)
        validate.one_of("missing", self.missing, ("ignorable", "charged"))

    def start(self, problem: Problem) -> "WinnerState":
        """The state before the first question; refuses problems that ask anything but comparisons."""
        if (
            problem.obstacle is None
            and len(problem.items) > 1
            and (problem.position or np.any(problem.about[: problem.listed] == NOTHING))
        ):
            raise InvalidInput(
                "The winner of comparisons needs questions that compare two items, without a position coordinate; "
                "use Problem.from_pairs(items), or the policy Anytime for other questions."
            )
        items = len(problem.items)
        return WinnerState(
            problem,
            self.delta,
            self.epsilon,
            self.missing == "charged",
            WinnerEvidence.of(items),
            ItemScores.of(problem.guide, items),
        )

    def plan(
        self, state: "WinnerState", rng: np.random.Generator, without: Collection[int] | None = None
    ) -> Plan | Wait | Verdict:
        """The next question, whether or not earlier ones are open; or the final verdict.

        Measurements in `without` are not asked, because whoever answers has had them; with it, even if it is empty, no
        measurement is asked twice in one stage.
        """
        state = state.evaluated
        status, best, reason = self._conclusion(state)
        if status.final:
            return self._say(state, status, best, reason)
        if state.asked >= self.budget:
            if state.evaluated_stages < len(state.stages):
                return Wait("The budget is spent; answers to questions handed out are still to come.")
            spent = f"The budget of {self.budget:,} questions is spent. {reason} Raise the budget."
            return self._say(state, Status.BUDGET_SPENT, best, spent)
        # Early a stage is one question, which saves people's time; later a share of those before, which saves ours.
        size = max(1, int(GROWTH * (state.asked - ONE_BY_ONE)))
        counts = choose_questions(state, min(size, self.budget - state.asked), rng, without)
        if counts is None:
            return Wait("What is asked already may decide; its answers are still to come.")
        if counts:
            return self._stage(state, counts)
        if len(state.alive) == 1:  # proved; whether it loses to an excluded item can no longer be asked
            return self._say(state, Status.CERTAIN, int(state.alive[0]), "")
        return exhausted(without or (), len(state.alive))

    def stage_of(self, state: "WinnerState", counts: Integers, *, prove: bool = True) -> Plan:
        """A stage that asks each measurement `counts` times, whoever chose them; there is nothing to `prove` later."""
        state = state.evaluated  # the answers that are in, counted once
        return self._stage(state, {int(row): int(counts[row]) for row in np.flatnonzero(counts)})

    def _stage(self, state: "WinnerState", counts: Mapping[int, int]) -> Plan:
        """A stage with its predictions.

        They are fixed here, from the answers that are in: factors may depend on answers to questions planned before,
        and on nothing later. Questions of one stage are predicted alike.
        """
        where = np.array(sorted(counts), dtype=np.int64)
        memo: dict[str, Any] = {"shares": [list(state.predict(int(measurement))) for measurement in where]}
        if state.spread < 1:
            memo["spread"] = state.spread
        if state.names_leader:
            memo["leader"] = state.leader
        return Plan(len(state.stages), where, np.array([counts[row] for row in where.tolist()]), memo)

    def apply(self, state: "WinnerState", plan: Plan) -> "WinnerState":
        """The state after this stage was planned; stages answered by then are evaluated for good."""
        state = state.evaluated
        return replace(state, stages=(*state.stages, StageRecord.unanswered(plan)), asked=state.asked + plan.total)

    def update(self, state: "WinnerState", stage: int, tally: Tally, partial: Partial = ()) -> "WinnerState":
        """Record all answers to a stage that there are by now; stages already evaluated stay as they are.

        `partial` are scores between 0 and 1, such as ½ for a tie.
        """
        record = numbered(state.stages, stage)
        pulls, wins = checked_answers(record.plan, tally)
        partial = checked_partial(record.plan, tally, partial)
        return state.with_stage(stage, replace(record, pulls=pulls, wins=wins, partial=partial))

    def close(self, state: "WinnerState", stage: int) -> "WinnerState":
        """Take the answers a stage has as all it will get."""
        return state.with_stage(stage, replace(numbered(state.stages, stage), closed=True))

    def verdict(self, state: "WinnerState") -> Verdict:
        """What the evaluated stages say: final where they decide, otherwise `open`."""
        state = state.evaluated
        return self._say(state, *self._conclusion(state))

    def _conclusion(self, state: "WinnerState") -> tuple[Status, int, str]:
        """Status, best item and reason of the verdict, without what takes time with the number of stages."""
        problem, alive = state.problem, state.alive
        if problem.obstacle is not None:
            return Status.NOT_IDENTIFIABLE, 0, problem.obstacle
        if len(alive) == 1:
            # Already proved under (W); a spent budget must not take that back.
            if not len(state.unconfirmed) or state.asked >= self.budget:
                return Status.CERTAIN, int(alive[0]), ""
            return (
                Status.OPEN,
                int(alive[0]),
                "One item is left; whether it loses to an excluded one, as in a circle, is still being asked.",
            )
        if len(alive) == 0:
            # Under (W) this has probability at most delta: the assumption itself is refuted.
            return (
                Status.NO_WINNER,
                state.leader,
                "Every item was excluded: no item wins each of its comparisons at least half the time. Preferences may "
                "go in a circle, or judges may answer from different tastes.",
            )
        # A leader that was excluded may be within epsilon as well, but it would be odd to name an item that lost.
        good_enough = [
            named.against for named in state.named if named.against in alive and not len(state.rivals_of(named))
        ]
        if good_enough:
            return Status.WITHIN_EPSILON, good_enough[0], ""
        leader = state.leader
        return (
            Status.OPEN,
            leader,
            f"{len(alive)} of {len(problem.items)} items are not excluded; the leader is the best of them with "
            f"probability about {state.beliefs.chance_of_best(leader, alive[alive != leader]):.2f} (heuristic).",
        )

    def _say(self, state: "WinnerState", status: Status, best: int, reason: str) -> Verdict:
        """The verdict; rivals that are not excluded first, those of the highest estimated score before others."""
        problem, reached = state.problem, state.evidence.reached
        # Not by the evidence: it also depends on how often an item was asked about, and of many it is nothing yet.
        excluded = ~np.isin(np.arange(len(problem.items)), state.alive)
        order = [item for item in np.lexsort((-state.scores.scores(), excluded)).tolist() if item != best]
        # A winner has log-odds of at least 0 against everybody. A leader within epsilon is bounded against the winner
        # only, and which item that is stays open.
        low = 0.0 if status is Status.CERTAIN else -math.inf
        evaluated = state.stages[: state.evaluated_stages]
        return Verdict(
            status=status,
            best=problem.names[best],
            surviving=tuple(problem.names[item] for item in state.alive),
            delta=self.delta,
            epsilon=self.epsilon,
            questions_by_stage=tuple(stage.answers for stage in evaluated),
            policy=self.name,
            guarantee=self.guarantee,
            statement=WITHIN if status is Status.WITHIN_EPSILON else self.statement,
            assumptions=(
                *self.assumptions,
                *((SAME_FEATURES,) if any(len(names) > 1 for names in problem.aliases) else ()),
                *self._about_missing(sum(stage.missing for stage in evaluated)),
            ),
            rivals=tuple(Rival(problem.names[item], low, math.inf, float(reached[item])) for item in order),
            reason=reason,
            also=problem.aliases[best][1:],
        )

    def _about_missing(self, unanswered: int) -> tuple[str, ...]:
        if self.missing == "charged" or not unanswered:
            return ()
        return (
            f"{unanswered:,} questions were closed without an answer: whether an answer comes does not depend on what "
            "it would have been.",
        )

    def predict(self, state: "WinnerState", measurement: int) -> float:
        """Probability that an answer to this comparison is for its first item, by the beliefs; a heuristic."""
        return state.predict(measurement)[0]

    def certificate(self, state: "WinnerState") -> dict[str, Any]:
        """All that `surepick.certificate.verify_certificate` needs to prove the verdict again, as plain data.

        Raises InvalidInput where there is no proved verdict.
        """
        state = state.evaluated
        verdict = self.verdict(state)
        if not verdict.status.decided and len(state.alive) != 1:  # the last one alive is proved, met by all or not
            raise InvalidInput("There is no proved verdict to certify; ask until the status is certain.")
        content = {
            "format": FORMAT,
            "claim": "winner",
            "policy": self.name,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "missing": self.missing,
            "problem": state.problem.to_json(),
            "best": state.problem.names.index(verdict.best),
            "stages": [_certified(state.problem, stage) for stage in state.stages[: state.evaluated_stages]],
        }
        return content | {"digest": digest(content)}

    def to_json(self) -> dict[str, Any]:
        """The configuration, with which `policy_from_json` builds an equal one."""
        return {"name": self.name} | {option.name: getattr(self, option.name) for option in fields(self)}


@dataclass(frozen=True, eq=False)
class WinnerState:
    """All stages with their answers, the processes after the first `evaluated_stages` of them, and the beliefs."""

    problem: Problem
    delta: float
    epsilon: float
    charge: bool
    """Whether missing answers are charged the worst."""
    evidence: WinnerEvidence
    scores: ItemScores
    """Beliefs after the evaluated stages."""
    named: tuple[WinnerEvidence, ...] = ()
    """The epsilon form for each leader named so far, in the order of naming."""
    record: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    """Answers to each measurement in the evaluated stages, and the sum of their scores."""
    squares: tuple[float, float] = (0.0, 0.0)
    """Sums over these answers of (score − predicted)², and of what it is expected to be for wins and losses."""
    has_partial: bool = False
    """Whether some answer was neither a win nor a loss."""
    stages: tuple[StageRecord, ...] = ()
    asked: int = 0
    """Questions of all stages."""
    evaluated_stages: int = 0

    @cached_property
    def evaluated(self) -> "WinnerState":
        """With the longest prefix of answered stages evaluated, in planning order: delays then do no harm."""
        state = self
        while state.evaluated_stages < len(state.stages) and state.stages[state.evaluated_stages].answered:
            state = state._after(state.stages[state.evaluated_stages])
        return state

    def _after(self, stage: StageRecord) -> "WinnerState":
        """One more stage evaluated: O(scales·items²) per answer, for the beliefs."""
        memo, record, scores = stage.plan.memo, dict(self.record), self.scores
        seen, usual = self.squares
        processes = [self.evidence, *self.named]
        if "leader" in memo:
            processes.append(WinnerEvidence.of(len(self.problem.items), memo["leader"], self.eta))
        for place, measurement in enumerate(stage.plan.measurements.tolist()):
            first, second = self.problem.about[measurement].tolist()
            answers = stage_answers(stage, place)
            pulls, wins = (column[place] for column in stage.scored)
            if self.charge:
                answers.append(((1.0, 1.0), int(stage.plan.pulls[place] - pulls)))
            shares = _both(memo["shares"][place])
            spread = memo.get("spread", 1.0)
            processes = [process.update((first, second), shares, answers, spread) for process in processes]
            if pulls:
                scores = scores.update(first, second, wins, pulls)
            w = memo["shares"][place][0]
            seen += sum(times * (score[0] - w) ** 2 for score, times in answers if sum(score) == 1)
            usual += pulls * w * (1 - w)
            before = record.get(measurement, (0.0, 0.0))
            record[measurement] = before[0] + pulls, before[1] + wins
        evidence, *named = processes
        return replace(
            self,
            evidence=evidence,
            named=tuple(named),
            scores=scores,
            record=record,
            squares=(seen, usual),
            has_partial=self.has_partial or bool(stage.partial),
            evaluated_stages=self.evaluated_stages + 1,
        )

    def with_stage(self, stage: int, record: StageRecord) -> "WinnerState":
        """With what a stage has by now; evidence that was counted for good does not change."""
        if stage < self.evaluated_stages:
            return self
        return replace(self, stages=(*self.stages[:stage], record, *self.stages[stage + 1 :]))

    @property
    def spread(self) -> float:
        """The variance of scores, as a share of that of wins and losses: 1 until one of them was neither.

        Scores that vary less carry more evidence: it takes larger bets to collect it.
        """
        if not self.has_partial:
            return 1.0
        seen, usual = self.squares
        return round(min((seen + SPREAD_PRIOR) / (usual + SPREAD_PRIOR), 1.0), 4)

    @property
    def eta(self) -> float:
        """The share beyond one half that epsilon is worth in a comparison: μ(epsilon) − ½ = tanh(epsilon/2)/2."""
        # A fair share of 1 leaves nothing to bet on. A smaller eta only claims more, so the proof allows the cap.
        return min(math.tanh(self.epsilon / 2) / 2, MOST_ETA)

    @property
    def outright_delta(self) -> float:
        """The part of delta for excluding items outright."""
        return self.delta * (1 - NAMED_SHARE if self.epsilon > 0 else 1)

    @property
    def needed(self) -> float:
        """Nats at which an item is excluded outright."""
        return math.log(1 / self.outright_delta)

    @cached_property
    def alive(self) -> Integers:
        """Items that are not excluded."""
        return self.evidence.surviving(self.outright_delta)

    @cached_property
    def unconfirmed(self) -> Integers:
        """Items that the last survivor has not met, or that beat it more often than not.

        The proof does not need them. But at most one item loses a comparison, so items are excluded one after the
        other, and in a circle a > b > c > a the last one would be named although the first that was excluded beats it.
        Asking for it ends such a search with "no winner". It costs little: a winner has met nearly everybody by then.
        """
        survivor = int(self.alive[0])
        return np.array(
            [
                item
                for item in range(len(self.problem.items))
                if self.problem.comparison[survivor, item] != NOTHING and not self._is_confirmed(survivor, item)
            ],
            dtype=np.int64,
        )

    def _is_confirmed(self, survivor: int, item: int) -> bool:
        measurement = int(self.problem.comparison[survivor, item])
        asked, wins = self.record.get(measurement, (0, 0))
        if self.problem.about[measurement, 0] != survivor:
            wins = asked - wins
        behind = asked - 2 * wins
        # A pair of equals would take as long as a random walk takes to return to zero, which is too long on average.
        # So after some answers two standard deviations behind are near enough; whoever is further behind is asked on.
        return asked > 0 and (behind <= 0 or (asked >= CONFIRMING and behind <= 2 * math.sqrt(asked)))

    def rivals_of(self, named: WinnerEvidence) -> Integers:
        """Items that may be better than a named leader by more than epsilon."""
        weight = 0.6 * 0.4 ** next(place for place, other in enumerate(self.named) if other is named)
        needed = math.log(1 / (self.delta * NAMED_SHARE * weight))
        return np.asarray(self.alive[(self.alive != named.against) & (named.reached[self.alive] < needed)])

    @property
    def names_leader(self) -> bool:
        """Whether the next stage begins a process for the leader: if it has none, and is likely good enough."""
        open_stages = self.stages[self.evaluated_stages :]
        begun = [named.against for named in self.named] + [stage.plan.memo.get("leader") for stage in open_stages]
        if self.epsilon == 0 or self.leader in begun or len(self.alive) < 2:
            return False
        others = self.alive[self.alive != self.leader]
        return self.beliefs.chance_of_best(self.leader, others, self.epsilon) >= NAMING_CHANCE

    @cached_property
    def beliefs(self) -> ItemScores:
        """Beliefs after every answer that is in, also to stages that are not evaluated yet."""
        scores = self.scores
        for stage in self.stages[self.evaluated_stages :]:
            for place, measurement in enumerate(stage.plan.measurements):
                first, second = self.problem.about[measurement].tolist()
                if stage.pulls[place]:
                    scores = scores.update(first, second, int(stage.wins[place]), int(stage.pulls[place]))
        return scores

    @property
    def leader(self) -> int:
        """The likeliest best item among those alive, or of all if none is."""
        candidates = self.alive if len(self.alive) else np.arange(len(self.problem.items))
        return int(candidates[np.argmax(self.beliefs.scores()[candidates])])

    def predict(self, measurement: int) -> tuple[float, float]:
        """Expected score of the first item of a question: by the beliefs, and by the past answers to it."""
        first, second = self.problem.about[measurement].tolist()
        asked, wins = self.record.get(measurement, (0, 0))
        return self.beliefs.predict(first, second), (wins + 0.5) / (asked + 1)  # Krichevsky and Trofimov


def _certified(problem: Problem, stage: StageRecord) -> dict[str, Any]:
    """A stage as a certificate has it (`surepick.certificate.winner`): with its memo, and its answers as scores."""
    return {
        "measurements": stage.plan.measurements.tolist(),
        "shown": problem.about[stage.plan.measurements].tolist(),
        "planned": stage.plan.pulls.tolist(),
        **stage.plan.memo,
        "shares": [list(shares) for shares in stage.plan.memo["shares"]],
        "answers": [
            [[list(scores), times] for scores, times in stage_answers(stage, place)]
            for place in range(len(stage.plan.pulls))
        ],
    }


def stage_answers(stage: StageRecord, place: int) -> list[tuple[tuple[float, float], int]]:
    """The answers to one question of a stage: scores of both items, and how often they occurred."""
    pulls, wins = int(stage.pulls[place]), int(stage.wins[place])
    partial = Counter(stage.partial[place]) if stage.partial else {}
    return [
        ((1.0, 0.0), wins),
        ((0.0, 1.0), pulls - wins),
        *(((score, 1 - score), times) for score, times in sorted(partial.items())),
    ]


def _both(shares: Sequence[float]) -> Predicted:
    """Predictions for the first item of a comparison as predictions for both."""
    model, own = shares
    return (model, 1 - model), (own, 1 - own)
