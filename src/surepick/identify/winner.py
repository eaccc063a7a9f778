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
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from surepick import validate
from surepick._arrays import Integers
from surepick.certificate import FORMAT, digest
from surepick.errors import InvalidInput
from surepick.evidence.betting import WinnerEvidence
from surepick.glm import Tally
from surepick.glm.item_scores import ItemScores
from surepick.guarantee import Guarantee
from surepick.identify.policy import (
    ENOUGH,
    LAST_ANSWERS,
    MAY_DECIDE,
    OldAnswers,
    Partial,
    Plan,
    StageRecord,
    Wait,
    budget_spent,
    checked_answers,
    checked_limits,
    checked_orders,
    checked_partial,
    exhausted,
    numbered,
    old_counts,
    stage_size,
)
from surepick.identify.population import Population, given_population
from surepick.identify.problem import NOTHING, Problem
from surepick.identify.set_sampling import choose_rankings, choose_sets
from surepick.identify.set_stages import counted_orders, predict_set
from surepick.identify.sets import Orders
from surepick.identify.verdict import Rival, Status, Verdict
from surepick.identify.winner_sampling import choose_questions
from surepick.identify.winner_state import WinnerState, stage_answers

ASSUMPTION = (
    "One item wins each of its comparisons at least half the time, whatever the features and whatever happened before."
)

SETS_ASSUMPTION = (
    "Whenever it is one of the items to pick from, one item is at least as likely to be picked as any other, whatever "
    "happened before; a ranking is picks one after the other. Nothing is assumed about features, about the other "
    "items, or about judges being alike."
)

PLACES_ASSUMPTION = (
    "In the rankings that show it one item is placed above each other one shown at least as often as below it, on "
    "average over the inputs and whatever happened before. Nothing is assumed about features, about the other items, "
    "or about judges being alike."
)
"""For rankings of systems, which show an input."""

SAME_FEATURES = "Items that were given with the same features are equally good: they are asked about as one item."
"""Also assumed where a problem merged items. (W) itself would tell them apart."""

WITHIN = (
    "The winner beats the item named by more than epsilon with probability at most delta, at any time "
    "(docs/assumptions.md, Theorem 2)."
)

ALL_DRAWN = (
    "Every {} that could decide was made on every input, in both orders, and {} systems are left: they are as good as "
    "equal on these inputs. Add inputs, or accept an epsilon."
)

ONE_BY_ONE = 1000
"""Questions that are planned one at a time; beliefs change little within a fiftieth of more answers than these."""


@dataclass(frozen=True, kw_only=True)
class Winner:
    """Excludes every item that loses too often; proved at any sampling rule, any delay and any stopping time.

    `epsilon` allows a leader that the winner beats by at most this much, in log-odds: exact ties end this way only.
    `budget` ends the search with the best guess. `missing` says what a question without an answer means: "ignorable",
    that whether an answer comes does not depend on what it would have been, or "charged", that it may, and the worst
    is assumed. It takes at least five questions per item, however good the features are.

    `warm` are answers of another judge or time as (measurement, pulls, wins), for instance of a language model: they
    predict and no evidence counts them, so they save questions where they are right and cost few where they are not.
    So does `population`, the tastes of earlier people on the same items (`Population.learn`): it predicts, and the
    proof does not need the judge to be one of them.
    """

    delta: float = 0.05
    epsilon: float = 0.0
    budget: int = ENOUGH
    missing: Literal["ignorable", "charged"] = "ignorable"
    warm: OldAnswers = ()
    population: Population | None = None

    name = "winner"
    guarantee = Guarantee.PROVED
    statement = "Excludes the winner with probability at most delta, at any time (docs/assumptions.md, Theorem 1)."
    assumptions = (ASSUMPTION,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "warm", tuple((int(row), int(asked), int(ones)) for row, asked, ones in self.warm))
        checked_limits(self.delta, self.epsilon, self.budget)
        validate.one_of("missing", self.missing, ("ignorable", "charged"))
        object.__setattr__(self, "population", given_population(self.population))

    def start(self, problem: Problem) -> WinnerState:
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
            self._first_beliefs(problem),
        )

    def _first_beliefs(self, problem: Problem) -> ItemScores:
        """What is believed before the first answer."""
        beliefs = ItemScores.of(problem.guide, len(problem.items))
        old = old_counts(self.warm, len(problem.about))
        if old is not None:
            pulls, wins = old
            rows = np.flatnonzero(pulls)
            beliefs = beliefs.advised((*problem.about[row].tolist(), wins[row], pulls[row]) for row in rows)
        if self.population is None:
            return beliefs
        self.population.require_items(problem)
        prior = self.population.prior
        return beliefs.with_components(prior.mean, prior.covariance, prior.log_weights)

    def plan(
        self, state: WinnerState, rng: np.random.Generator, without: Collection[int] | None = None
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
                return LAST_ANSWERS
            return self._say(state, Status.BUDGET_SPENT, best, budget_spent(self.budget, reason or _how_far(state)))
        size = stage_size(state.asked, self.budget, ONE_BY_ONE)
        if state.problem.once:
            without = state.used_up.union(without or ())
        problem = state.problem
        choose = choose_rankings if problem.by_places else choose_sets if problem.show > 2 else choose_questions
        counts = choose(state, size, rng, without)
        if counts is None:
            return MAY_DECIDE
        if counts:
            return self.stage_asking(state, counts)
        if len(state.alive) == 1:  # proved; whether it loses to an excluded item can no longer be asked
            return self._say(state, Status.CERTAIN, int(state.alive[0]), "")
        if state.problem.once:
            kind = "ranking" if problem.by_places else "comparison"
            return Wait(ALL_DRAWN.format(kind, len(state.alive)), exhausted=True)
        return exhausted(len(state.alive))

    def stage_of(self, state: WinnerState, counts: Integers, *, prove: bool = True) -> Plan:
        """A stage that asks each measurement `counts` times, whoever chose them; there is nothing to `prove` later."""
        state = state.evaluated  # the answers that are in, counted once
        return self.stage_asking(state, {int(row): int(counts[row]) for row in np.flatnonzero(counts)})

    def stage_asking(self, state: WinnerState, counts: Mapping[int, int]) -> Plan:
        """A stage with its predictions.

        They are fixed here, from the answers that are in: factors may depend on answers to questions planned before,
        and on nothing later. Questions of one stage are predicted alike.
        """
        where = np.array(sorted(counts), dtype=np.int64)
        memo: dict[str, Any]
        if state.problem.by_places:
            memo = {"stakes": [state.bets_on_ranking(row) for row in where.tolist()]}
        elif state.problem.show > 2:
            memo = {"shares": [predict_set(state.beliefs, state.problem.shown(row)) for row in where.tolist()]}
        else:
            memo = {"shares": [list(state.predict(int(measurement))) for measurement in where]}
            bets = state.bets(int(where[0])) if list(counts.values()) == [1] else None
            memo |= {} if bets is None else {"stakes": bets}
        if state.spread < 1:
            memo["spread"] = state.spread
        if state.names_leader:
            memo["leader"] = state.leader
        return Plan(len(state.stages), where, np.array([counts[row] for row in where.tolist()]), memo)

    def apply(self, state: WinnerState, plan: Plan) -> WinnerState:
        """The state after this stage was planned; stages answered by then are evaluated for good."""
        state = state.evaluated
        return replace(state, stages=state.stages.planned(plan), asked=state.asked + plan.total)

    def update(
        self, state: WinnerState, stage: int, tally: Tally, partial: Partial = (), orders: Orders = ()
    ) -> WinnerState:
        """Record all answers to a stage that there are by now; stages already evaluated stay as they are.

        `partial` are scores between 0 and 1, such as ½ for a tie; `orders` answer questions about sets.
        """
        record = numbered(state.stages, stage)
        pulls, wins = checked_answers(record.plan, tally)
        partial = checked_partial(record.plan, tally, partial)
        orders = checked_orders(record.plan, state.problem, orders)
        return state.with_stage(stage, replace(record, pulls=pulls, wins=wins, partial=partial, orders=orders))

    def close(self, state: WinnerState, stage: int) -> WinnerState:
        """Take the answers a stage has as all it will get."""
        return state.with_stage(stage, replace(numbered(state.stages, stage), closed=True))

    def verdict(self, state: WinnerState) -> Verdict:
        """What the evaluated stages say: final where they decide, otherwise `open`."""
        state = state.evaluated
        status, best, reason = self._conclusion(state)
        return self._say(state, status, best, reason or ("" if status.final else _how_far(state)))

    def _conclusion(self, state: WinnerState) -> tuple[Status, int, str]:
        """Status, best item and reason of the verdict, without what takes time; "" where `_how_far` says it."""
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
        return Status.OPEN, state.leader, ""

    def _say(self, state: WinnerState, status: Status, best: int, reason: str) -> Verdict:
        """The verdict; rivals that are not excluded first, those of the highest estimated score before others."""
        problem, reached = state.problem, state.evidence.reached
        # Not by the evidence: it also depends on how often an item was asked about, and of many it is nothing yet.
        excluded = ~np.isin(np.arange(len(problem.items)), state.alive)
        order = [item for item in np.lexsort((-state.scores.scores(), excluded)).tolist() if item != best]
        # A winner has log-odds of at least 0 against everybody. A leader within epsilon is bounded against the winner
        # only, and which item that is stays open.
        low = 0.0 if status is Status.CERTAIN else -math.inf
        return Verdict(
            status=status,
            best=problem.names[best],
            surviving=tuple(problem.names[item] for item in state.alive),
            delta=self.delta,
            epsilon=self.epsilon,
            questions_by_stage=state.stages.answers(state.evaluated_stages),
            policy=self.name,
            guarantee=self.guarantee,
            statement=WITHIN if status is Status.WITHIN_EPSILON else self.statement,
            assumptions=(
                *assumed_of(problem),
                *((SAME_FEATURES,) if any(len(names) > 1 for names in problem.aliases) else ()),
                *self._about_missing(state.stages.missing(state.evaluated_stages)),
            ),
            rivals=tuple(Rival(problem.names[item], low, math.inf, float(reached[item])) for item in order),
            reason=reason,
            also=problem.aliases[best][1:],
        )

    def _about_missing(self, unanswered: int) -> tuple[str, ...]:
        if self.missing == "charged" or not unanswered:
            return ()
        closed = "1 question was" if unanswered == 1 else f"{unanswered:,} questions were"
        return (
            f"{closed} closed without an answer: whether an answer comes does not depend on what it would have been.",
        )

    def predict(self, state: WinnerState, measurement: int) -> float:
        """Probability that an answer to this comparison is for its first item, by the beliefs; a heuristic."""
        return state.predict(measurement)[0]

    def certificate(self, state: WinnerState) -> dict[str, Any]:
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
        known = {option.name: getattr(self, option.name) for option in fields(self)}
        del known["warm"], known["population"]
        warm = {"warm": [list(row) for row in self.warm]} if self.warm else {}
        population = {} if self.population is None else {"population": self.population.to_json()}
        return {"name": self.name} | known | warm | population


def assumed_of(problem: Problem) -> tuple[str, ...]:
    """The form of (W) that the questions of a problem need."""
    if problem.by_places:
        return (PLACES_ASSUMPTION,)
    return (SETS_ASSUMPTION if problem.show > 2 else ASSUMPTION,)


def _how_far(state: WinnerState) -> str:
    """What an open verdict with several items left says."""
    others = state.alive[state.alive != state.leader]
    return (
        f"{len(state.alive)} of {len(state.problem.items)} items are not excluded; the leader is the best of them with "
        f"probability about {state.beliefs.chance_of_best(state.leader, others):.2f} (heuristic)."
    )


def _certified(problem: Problem, stage: StageRecord) -> dict[str, Any]:
    """A stage as a certificate has it (`surepick.certificate.winner`): with its memo, and its answers as scores."""
    asked = {
        "measurements": stage.plan.measurements.tolist(),
        "shown": [list(problem.shown(measurement)) for measurement in stage.plan.measurements.tolist()],
        "planned": stage.plan.pulls.tolist(),
        **stage.plan.memo,
    }
    if problem.show > 2:
        return asked | {"orders": [counted_orders(orders) for orders in stage.orders or [()] * len(stage.plan.pulls)]}
    return asked | {
        "answers": [
            [[list(scores), times] for scores, times in stage_answers(stage, place)]
            for place in range(len(stage.plan.pulls))
        ],
    }
