"""What the log of a session shows: evidence over time, how often each item was shown, and the scores of all items."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np

from surepick._arrays import Booleans, Floats, Integers
from surepick.answer import Places
from surepick.confidence import ConfidenceSet, in_given_order, interval_anytime
from surepick.glm import Tally
from surepick.glm.loss import Vectors
from surepick.identify import Verdict
from surepick.identify.anytime.claims import proven_better
from surepick.identify.anytime.state import State
from surepick.identify.forecast import OpenStage
from surepick.identify.policy import updated
from surepick.identify.sets import Order, neighbours_decided
from surepick.linalg import span_of
from surepick.report.sentences import intervals_note
from surepick.session import Session

CURVE_POINTS = 40
"""Points of the curve of evidence."""

MOST_ITEMS = 80
"""Intervals are computed for this many leading items at most: each takes a few convex programs."""


def verdicts_over_time(session: Session, points: int = CURVE_POINTS) -> Iterator[tuple[int, Verdict]]:
    """Questions answered so far and what could be said then, at times evenly spread over the logarithm."""
    stages = _answered(session)
    policy, problem = session.policy, session.problem
    totals = np.cumsum([int(stage.answers.sum()) for stage in stages])
    if not len(totals) or totals[-1] == 0:
        return
    marks = np.unique(np.searchsorted(totals, np.geomspace(max(1, totals[0]), totals[-1], points)))
    state = policy.start(problem)
    for number, stage in enumerate(stages):
        plan = stage.plan
        tally = plan.tally(problem, stage.wins, stage.pulls)
        state = updated(policy, policy.apply(state, plan), plan.stage, tally, stage.partial, stage.orders)
        if (stage.answers < plan.pulls).any():
            state = policy.close(state, plan.stage)
        if number in marks:
            yield int(totals[number]), policy.verdict(state)


def appearances(session: Session) -> Integers:
    """Number of answers about each item."""
    counts = np.zeros(len(session.problem.items), dtype=np.int64)
    for stage in session.progress()[1]:
        for measurement, answers in zip(stage.plan.measurements.tolist(), stage.answers.tolist(), strict=True):
            counts[list(session.problem.shown(measurement))] += answers
    return counts


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of the leading items against the mean of all, with the ranks that are still possible.

    All intervals hold at once, at all times, with probability 1 − delta (docs/theory.md, section 5). So do all
    ranks: with Anytime together with its verdict (`identify.anytime.claims`), with others together with the intervals.
    These are two claims, which hold together with probability 1 − 2·delta; `note` says so, and on what condition.
    """

    items: Integers
    """By number, the highest score first."""
    score: Floats
    """Estimates in log-odds: what the answers refute least."""
    low: Floats
    high: Floats
    better: Booleans
    """Whether the item of the row is proven better than that of the column."""
    count: int
    """Number of all items, of which `items` are the leading ones."""
    delta: float
    refuted: bool
    """Whether the answers refute every logistic model; then the intervals mean nothing."""
    note: str
    """What intervals and ranks claim, together and each, and what is assumed of missing answers."""

    @property
    def best_rank(self) -> Integers:
        """The highest rank still possible: one more than the number of items proven better."""
        return np.asarray(1 + self.better.sum(axis=0))

    @property
    def worst_rank(self) -> Integers:
        """The lowest rank still possible: the number of all items less those proven worse."""
        return np.asarray(self.count - self.better.sum(axis=1))

    def top(self, k: int) -> Integers | None:
        """The k best items in any order, where each is proven better than all others; else None."""
        inside = self.worst_rank <= k
        return self.items[inside] if inside.sum() == k else None

    def to_json(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """One entry per item; an unbounded end is null."""
        return [
            {
                "item": names[item],
                "score": float(self.score[place]),
                "interval": [float(end) if np.isfinite(end) else None for end in (self.low[place], self.high[place])],
                "rank": [int(self.best_rank[place]), int(self.worst_rank[place])],
            }
            for place, item in enumerate(self.items)
        ]


def score_table(session: Session, *, delta: float, most: int = MOST_ITEMS) -> ScoreTable | None:
    """Scores of the leading items; None before the first answer. O(items) convex programs, a few milliseconds each."""
    problem = session.problem
    batches = _in_the_order_asked(session)
    if not batches or len(problem.items) < 2:
        return None
    state, _ = session.progress()
    is_anytime = isinstance(state, State)
    # Chosen by the option alone: to choose by whether an answer is missing would be to choose between two confidence
    # sets after seeing the answers.
    charged = is_anytime and state.charge
    known = _charged_set(state) if charged else ConfidenceSet.of(batches)
    centred = problem.items - problem.items.mean(axis=0)
    score = known.span.coordinates(centred) @ known.least.point
    order = np.argsort(-score, kind="stable")[:most]
    intervals = interval_anytime(batches, centred[order], delta=delta, confidence_set=known)
    low, high = intervals.low, intervals.high
    better = proven_better(state, session.verdict(), order) if is_anytime else low[:, None] > high[None, :]
    note = intervals_note(delta, session.policy.guarantee, charged=charged, ranks_by_intervals=not is_anytime)
    return ScoreTable(order, score[order], low, high, better, len(centred), delta, known.is_empty(delta=delta), note)


def _in_the_order_asked(session: Session) -> list[Tally]:
    """Decisive answers of the answered stages, stage by stage in the order in which the questions were drawn.

    This order depends on no answer, so nothing need be shuffled again. Late answers and repeated ones that do not count
    are left out, as in the evidence.
    """
    stages, answers = len(_answered(session)), session.answers
    uncounted = session.late | session.uncounted
    known = sorted(
        (
            question
            for question in session.questions.values()
            if question.stage < stages and _is_decisive(answers.get(question.id)) and question.id not in uncounted
        ),
        key=lambda question: (question.stage, question.id),
    )
    if not known:
        return []
    if session.problem.show > 2:  # picks and rankings as the comparisons that they decide
        decided = [
            (question.vector[first] - question.vector[second], won)
            for question in known
            for first, second, won in neighbours_decided(_places(answers[question.id]), len(question.items))
        ]
        return in_given_order(Tally.from_answers(*zip(*decided, strict=True)))
    rows = session.problem.vectors([question.measurement for question in known])
    ones = np.array([int(answers[question.id] == 1) ^ question.swapped for question in known], dtype=np.int64)
    return in_given_order(Tally.from_answers(rows, ones))


def _is_decisive(answer: float | Places | None) -> bool:
    """Whether an answer is 1 or 0, or an order."""
    return isinstance(answer, tuple) or answer in (0, 1)


def _places(answer: float | Places) -> Order:
    """Places from 0 of an answer to a question about a set."""
    return tuple(place - 1 for place in answer) if isinstance(answer, tuple) else ()


def _charged_set(state: State) -> ConfidenceSet:
    """The confidence set of the policy's own plug-in process, in which every missing answer is charged the worst.

    Its predictions were fixed when each stage was planned. Predictions made afterwards from the answers that came would
    not do: which of them came may depend on answers to later questions (docs/anytime.md, section 4).
    """
    evidence = state.evaluated.evidence
    asked = state.problem.measurements[evidence.where]
    span = span_of(asked)
    # log E depends on θ through the logits of asked vectors only, so it may be written in coordinates of their span.
    return ConfidenceSet(span, replace(evidence, vectors=Vectors(span.coordinates(asked))))


def _answered(session: Session) -> list[OpenStage]:
    """The answered stages from the first on. In an open stage, which answers come first may depend on what they are."""
    return list(takewhile(lambda stage: not stage.left.any(), session.progress()[1]))
