"""The state of `Winner`: all stages with their answers, the processes of the items, and the beliefs about them."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from surepick._arrays import Integers
from surepick._cached import cached_property
from surepick.evidence.betting import Drawn, Predicted, WinnerEvidence
from surepick.glm.item_scores import ItemScores
from surepick.identify.policy import StageRecord, has_more
from surepick.identify.problem import NOTHING, Problem
from surepick.identify.set_stages import bets_on_ranking, evidence_after, pairs_after, placed, scores_after
from surepick.identify.stage_list import StageList

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
    unanswered: Mapping[int, int] = field(default_factory=dict)
    """Questions of each measurement in the evaluated stages that got no answer."""
    rankings: Mapping[int, Drawn] = field(default_factory=dict)
    """What was drawn of the rankings of each set in the evaluated stages, if they are drawn without replacement."""
    squares: tuple[float, float] = (0.0, 0.0)
    """Sums over these answers of (score − predicted)², and of what it is expected to be for wins and losses."""
    has_partial: bool = False
    """Whether some answer was neither a win nor a loss."""
    stages: StageList = field(default_factory=StageList)
    asked: int = 0
    """Questions of all stages."""
    evaluated_stages: int = 0

    @property
    def evaluated(self) -> "WinnerState":
        """With the longest prefix of answered stages evaluated, in planning order: delays then do no harm."""
        return self._evaluated if has_more(self.stages, self.evaluated_stages) else self

    @cached_property
    def _evaluated(self) -> "WinnerState":
        state = self
        while has_more(state.stages, state.evaluated_stages):
            state = state._after(state.stages[state.evaluated_stages])
        return state

    def _after(self, stage: StageRecord) -> "WinnerState":
        """One more stage evaluated: O(scales·items²) per answer, for the beliefs."""
        memo, record, unanswered, scores = stage.plan.memo, dict(self.record), dict(self.unanswered), self.scores
        seen, usual = self.squares
        rankings = dict(self.rankings)
        processes = [self.evidence, *self.named]
        if "leader" in memo:
            processes.append(self._named(memo["leader"]))
        for place, measurement in enumerate(stage.plan.measurements.tolist()):
            if measurement >= len(self.problem.about):
                shown, orders = self.problem.shown(measurement), stage.orders[place] if stage.orders else ()
                missing = int(stage.plan.pulls[place]) - len(orders)
                charged = missing if self.charge else None
                if self.problem.by_places:
                    answers, drawn = placed(orders, self.problem, charged), self._drawn(measurement)
                    processes = [
                        process.after_rankings(shown, bets, answers, drawn)
                        for process, bets in zip(processes, memo["stakes"][place], strict=True)
                    ]
                    if drawn is not None:
                        rankings[measurement] = drawn.after(placed(orders, self.problem, charged, missing=missing))
                else:
                    processes = [
                        evidence_after(process, self.problem, shown, memo["shares"][place], orders, charged=charged)
                        for process in processes
                    ]
                scores = scores_after(scores, self.problem, shown, orders)
                record = pairs_after(record, self.problem, shown, orders)
                continue
            first, second = self.problem.about[measurement].tolist()
            scored = stage_answers(stage, place)
            pulls, wins = (column[place] for column in stage.scored)
            missing = int(stage.plan.pulls[place] - pulls)
            if self.charge:
                scored.append(((1.0, 1.0), missing))
            shares = _both(memo["shares"][place])
            spread = memo.get("spread", 1.0)
            drawn = self._drawn(measurement)
            outright, *named = processes
            processes = [
                outright.update((first, second), shares, scored, spread, drawn, memo.get("stakes")),
                *(process.update((first, second), shares, scored, spread, drawn) for process in named),
            ]
            if missing:
                unanswered[measurement] = unanswered.get(measurement, 0) + missing
            if pulls:
                scores = scores.update(first, second, wins, pulls)
            w = memo["shares"][place][0]
            seen += sum(times * (score[0] - w) ** 2 for score, times in scored if sum(score) == 1)
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
            unanswered=unanswered,
            rankings=rankings,
            squares=(seen, usual),
            has_partial=self.has_partial or bool(stage.partial),
            stages=self.stages.pack(self.evaluated_stages + 1),
            evaluated_stages=self.evaluated_stages + 1,
        )

    def _drawn(self, measurement: int) -> Drawn | None:
        """What the evaluated stages drew of the answers to a question, if each is drawn at most once."""
        if not self.problem.once:
            return None
        if self.problem.by_places:
            k = self.problem.show
            return self.rankings.get(measurement, Drawn(self.problem.cells, 0, np.zeros((k, k))))
        asked, wins = self.record.get(measurement, (0.0, 0.0))
        missing = self.unanswered.get(measurement, 0)
        return Drawn(self.problem.cells, int(asked) + missing, (wins + missing, asked - wins + missing))

    @property
    def used_up(self) -> frozenset[int]:
        """Questions of which every answer was drawn, those of questions that are out included."""
        if self.problem.by_places:
            drawn = Counter({row: past.before for row, past in self.rankings.items()})
        else:
            drawn = Counter({row: int(asked) for row, (asked, _) in self.record.items()})
            drawn.update(self.unanswered)
        for stage in self.stages[self.evaluated_stages :]:
            drawn.update(dict(zip(stage.plan.measurements.tolist(), stage.plan.pulls.tolist(), strict=True)))
        return frozenset(row for row, times in drawn.items() if times >= self.problem.cells)

    def bets(self, measurement: int) -> list[float] | None:
        """What both items bet on the next answer to a comparison, to be fixed in its plan.

        None where the experts' mixture counts instead: where questions are out, a bet that depends on their answers
        could not be fixed now; and where scores lie between 0 and 1, losses are not the steps that lead to the
        threshold.
        """
        if self.evaluated_stages < len(self.stages) or self.spread < 1:
            return None
        shown = self.problem.about[measurement].tolist()
        return self.evidence.aimed_bets(shown, _both(self.predict(measurement)), self.needed, self._drawn(measurement))

    def bets_on_ranking(self, measurement: int) -> list[list[list[float]]]:
        """What the items of a ranking of systems bet on it, in every process that will count it; fixed in its plan."""
        begun = [*self.begun, *([self.leader] if self.names_leader else [])]
        processes = [self.evidence, *(self._named(leader) for leader in begun)]
        shown = self.problem.shown(measurement)
        drawn = self._drawn(measurement)
        return [
            bets_on_ranking(process, self.problem, self.beliefs, self.record, shown, self.epsilon, drawn)
            for process in processes
        ]

    def _named(self, leader: int) -> WinnerEvidence:
        """The epsilon form for a leader, before the first answer."""
        return WinnerEvidence.of(len(self.problem.items), leader, self.eta)

    def with_stage(self, stage: int, record: StageRecord) -> "WinnerState":
        """With what a stage has by now; evidence that was counted for good does not change."""
        if stage < self.evaluated_stages:
            return self
        return replace(self, stages=self.stages.told(stage, record))

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
    def rivals(self) -> Integers:
        """Items that must be excluded before the search ends with the leader, outright or within epsilon."""
        for named in self.named:
            if named.against == self.leader:
                return self.rivals_of(named)
        return np.asarray(self.alive[self.alive != self.leader])

    @property
    def begun(self) -> list[int]:
        """Leaders that have a process, in the order of naming; also those of stages that are not evaluated yet."""
        open_memos = [stage.plan.memo for stage in self.stages[self.evaluated_stages :]]
        return [named.against for named in self.named] + [memo["leader"] for memo in open_memos if "leader" in memo]

    @property
    def names_leader(self) -> bool:
        """Whether the next stage begins a process for the leader: if it has none, and is likely good enough."""
        if self.epsilon == 0 or self.leader in self.begun or len(self.alive) < 2:
            return False
        others = self.alive[self.alive != self.leader]
        return self.beliefs.chance_of_best(self.leader, others, self.epsilon) >= NAMING_CHANCE

    @cached_property
    def beliefs(self) -> ItemScores:
        """Beliefs after every answer that is in, also to stages that are not evaluated yet."""
        scores = self.scores
        for stage in self.stages[self.evaluated_stages :]:
            for place, measurement in enumerate(stage.plan.measurements.tolist()):
                if stage.orders:
                    shown = self.problem.shown(measurement)
                    scores = scores_after(scores, self.problem, shown, stage.orders[place])
                pulls, wins = (column[place] for column in stage.scored)
                if pulls:
                    first, second = self.problem.about[measurement].tolist()
                    scores = scores.update(first, second, wins, pulls)
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
