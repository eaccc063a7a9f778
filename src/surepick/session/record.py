"""What was asked and answered in a session: a fold over the events of its log about questions.

The session owns it and changes it with every event; the policy sees of it what `Session._evaluate` tells.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from surepick.answer import Places, read_places
from surepick.errors import InvalidInput
from surepick.identify import Plan, Problem
from surepick.identify.sets import Order, checked_order
from surepick.session.columns import AnswerColumns, NumberSet, QuestionColumns, StageColumns
from surepick.session.journal import Event
from surepick.session.question import Question
from surepick.session.repeats import JudgeHistory, Repeats


class Record:
    """Questions, answers and stages so far.

    An answer may be left out of the evidence: it came late, or it repeats an earlier one of the same judge.
    """

    def __init__(self, problem: Problem, repeats: Repeats, *, ties_count: bool) -> None:
        self.problem = problem
        self.ties_count = ties_count
        """Whether a tie is an answer of one half, and other scores are taken; else a tie is a missing answer."""
        self.stages = StageColumns()
        self.questions = QuestionColumns(problem)
        self.answers = AnswerColumns()
        self.tied = NumberSet()
        self.late = NumberSet()
        self.void = NumberSet()
        """Questions whose answer repeats one of the same judge and does not count."""
        self.without_answer = NumberSet()
        """Questions that were skipped, or whose answer does not count: the evidence lacks them."""
        shown = problem.shown if problem.show > 2 else None
        self.history = JudgeHistory(repeats, len(problem.about), problem.inputs, shown)
        self.changed: set[int] = set()
        """Stages with answers that the policy has not been told of."""
        self._counted: dict[int, float | Order] = {}
        """Answers to questions of stages that are not settled."""
        self._settled = 0
        """Questions of settled stages."""
        self._reopened = NumberSet()
        """Questions of settled stages that an earlier phase of a study has taken an answer back of: they count as open,
        and no answer to them counts."""
        self._drawn: defaultdict[int, dict[tuple[str, bool], list[int] | None]] = defaultdict(dict)
        """Inputs and orders on which each pair was compared, in a problem that asks nothing twice."""

    @property
    def outstanding(self) -> list[Question]:
        """Questions handed out that have no answer, skip or tie yet, in the order asked."""
        numbers = [*self._reopened, *(number for stage in self.stages.open for number in sorted(stage.outstanding))]
        return [self.questions[number] for number in numbers]

    def settle(self, stages: int) -> None:
        """The first stages were evaluated for good: nothing of them can be undone, so less of them is kept."""
        planned = self.stages.settle(stages)
        done = range(self._settled + 1, self._settled + planned + 1)  # a stage is planned when those before were asked
        self.questions.settle(done)
        self.history.settle(done)
        for number in done:
            self._counted.pop(number, None)
        self._settled += planned

    def question(self, number: int) -> Question:
        """The question of this number, or a sentence that there is none."""
        known = self.questions.get(number)
        if known is None:
            raise InvalidInput(f"There is no question {number!r}; {len(self.questions)} were asked, numbered from 1.")
        return known

    def given(self, number: int) -> float | Places | None:
        """The answer to a question, one half for a tie that counts; None if there is none."""
        return 0.5 if number in self.tied else self.answers.get(number)

    def checked(self, number: int, answer: float | str | Sequence[int | str]) -> float | Places:
        """The answer as 1, 0 or a score between them, or as places; or a sentence why it is none."""
        question = self.questions[number]
        if question.about_set:
            return _checked_places(question, answer)
        if not isinstance(answer, str) and answer in (0, 1):
            return int(answer)
        scores = self.ties_count and question.kind == "compare"
        if not (scores and isinstance(answer, float) and 0 < answer < 1):
            wanted = "from 0 to 1" if scores else "0 or 1"
            raise InvalidInput(
                f"The answer to question {number} must be {wanted}, got {answer!r}; use skip or tie for no answer."
            )
        return float(answer)

    def add_stage(self, plan: Plan) -> None:
        """A stage was planned."""
        self.stages.add(plan)

    def on_question(self, event: Event) -> None:
        """A question was handed out."""
        stage, problem = self.stages[event["stage"]], self.problem
        measurement = event["measurement"]
        stage.unasked[stage.place(measurement)] -= 1
        stage.outstanding.add(event["id"])
        if problem.once:
            drawn = self._drawn[measurement]
            swapped = event.get("swapped", (event["input"], False) in drawn)
            drawn[event["input"], swapped] = event.get("order")
        self.questions.add(event)

    def draw_cell(self, measurement: int, rng: np.random.Generator) -> tuple[str, bool]:
        """An input, and whether the items are shown in reverse order, of those that were not drawn for them before."""
        drawn = self._drawn[measurement]
        left = [(name, swapped) for name in self.problem.inputs for swapped in (False, True)]
        left = [cell for cell in left if cell not in drawn]
        return left[int(rng.integers(len(left)))]

    def first_order(self, measurement: int, given: str) -> list[int] | None:
        """The order in which a set was shown with an input; None if it was not."""
        return self._drawn[measurement].get((given, False))

    def on_answer(self, event: Event) -> None:
        """It was answered."""
        answer = event["answer"]
        answer = tuple(answer) if isinstance(answer, list) else answer
        self._file(event, answer)
        self.answers[event["id"]] = answer

    def _file(self, event: Event, answer: float | Places) -> None:
        """Count an answer, unless it is late or repeats an earlier one of the same judge."""
        standing = event.get("stands", answer)
        standing = tuple(standing) if isinstance(standing, list) else standing
        answer = _in_order_of_problem(self.questions[event["id"]], standing)
        if not event.get("late"):
            known = self.questions[event["id"]]
            self.history.add(
                known.id,
                event.get("judge"),
                known.asked,
                answer,
                counted=not event.get("void", False),
                expected=event.get("expected"),
                swapped=known.swapped,
            )
        if event.get("late") or event.get("void"):  # no longer waited for, and missing in the evidence
            (self.late if event.get("late") else self.void).add(event["id"])
            self._expect_none(event["id"])
        elif event["id"] <= self._settled:
            self._reopened.discard(event["id"])
        else:
            self._counted[event["id"]] = answer
            self._count(event["id"], answer, 1)

    def on_undo(self, event: Event) -> None:
        """An answer, tie or skip was taken back: the question is open again."""
        question = event["id"]
        answer = 0.5 if question in self.tied else self.answers.pop(question, None)
        self.tied.discard(question)
        self.history.take_back(question)
        if answer is not None and question not in self.late and question not in self.void and question in self._counted:
            self._count(question, self._counted.pop(question), -1)
            return
        self.late.discard(question)
        self.void.discard(question)
        self.without_answer.discard(question)
        if question <= self._settled:
            self._reopened.add(question)
        else:
            self.stages[self.questions[question].stage].outstanding.add(question)

    def _expect_none(self, question: int) -> int:
        """No answer to the question is waited for, and the evidence lacks it; its stage."""
        stage = self.stages[self.questions[question].stage]
        stage.outstanding.discard(question)
        self._reopened.discard(question)
        self.without_answer.add(question)
        return stage.plan.stage

    def _count(self, question: int, score: float | Order, by: int) -> None:
        """Add an answer to its stage (by = 1) or take it out; it is in the order of the problem."""
        known = self.questions[question]
        stage = self.stages[known.stage]
        place = stage.place(known.measurement)
        if not isinstance(score, tuple) and score in (0, 1):
            stage.pulls[place] += by
            stage.wins[place] += by * int(score)
        elif by > 0:
            kept = stage.told if isinstance(score, tuple) else stage.scores
            cast("dict[int, list[Any]]", kept).setdefault(place, []).append(score)
        else:
            kept = stage.told if isinstance(score, tuple) else stage.scores
            cast("dict[int, list[Any]]", kept)[place].remove(score)
        self.without_answer.discard(question)
        (stage.outstanding.discard if by > 0 else stage.outstanding.add)(question)
        self.changed.add(known.stage)

    def on_skip(self, event: Event) -> None:
        """No answer is expected any more."""
        self.history.pass_over(event.get("judge"), self.questions[event["id"]].asked)
        self.changed.add(self._expect_none(event["id"]))

    def on_tie(self, event: Event) -> None:
        """The judge saw no difference."""
        if not self.ties_count:
            self.on_skip(event)
            return
        known = self.questions[event["id"]]
        self._file(event, 0.5 if known.kind == "compare" else ())
        self.tied.add(event["id"])


def _checked_places(question: Question, answer: float | str | Sequence[int | str]) -> Places:
    """The places of an answer to a question about a set, or a sentence why it is none."""
    places = read_places(answer, question.items)
    if places is None or isinstance(places, str):
        raise InvalidInput(f"Question {question.id} was told {answer!r}; use skip or tie for no answer.")
    if len(places) > question.top and not len(places) == question.top + 1 == len(question.items):
        wanted = "one place" if question.top == 1 else f"at most {question.top} places"
        raise InvalidInput(f"Question {question.id} asks for {wanted}, the best first; got {len(places)}: {answer!r}.")
    return places


def _in_order_of_problem(question: Question, answer: float | Places) -> float | Order:
    """An answer as if the items had been shown in the order of the problem."""
    if isinstance(answer, tuple):
        return checked_order([question.order[place - 1] for place in answer], len(question.items))
    return 1 - answer if question.swapped else answer
