"""What was asked and answered in a session: a fold over the events of its log about questions.

The session owns it and changes it with every event; the policy sees of it what `Session._evaluate` tells.
"""

from surepick.errors import InvalidInput
from surepick.identify import Plan, Problem
from surepick.session.journal import Event
from surepick.session.question import Question, StageProgress
from surepick.session.repeats import JudgeHistory, Repeats


class Record:
    """Questions, answers and stages so far.

    An answer may be left out of the evidence: it came late, or it repeats an earlier one of the same judge.
    """

    def __init__(self, problem: Problem, repeats: Repeats, *, ties_count: bool) -> None:
        self.problem = problem
        self.ties_count = ties_count
        """Whether a tie is an answer of one half, and other scores are taken; else a tie is a missing answer."""
        self.stages: list[StageProgress] = []
        self.questions: dict[int, Question] = {}
        self.answers: dict[int, float] = {}
        self.tied: set[int] = set()
        self.late: set[int] = set()
        self.void: set[int] = set()
        """Questions whose answer repeats one of the same judge and does not count."""
        self.history = JudgeHistory(repeats, len(problem.about), len(problem.inputs))
        self.changed: set[int] = set()
        """Stages with answers that the policy has not been told of."""
        self._counted: dict[int, float] = {}

    @property
    def outstanding(self) -> list[Question]:
        """Questions handed out that have no answer, skip or tie yet, in the order asked."""
        return [self.questions[number] for stage in self.stages for number in sorted(stage.outstanding)]

    def question(self, number: int) -> Question:
        """The question of this number, or a sentence that there is none."""
        known = self.questions.get(number)
        if known is None:
            raise InvalidInput(f"There is no question {number!r}; {len(self.questions)} were asked, numbered from 1.")
        return known

    def given(self, number: int) -> float | None:
        """The answer to a question, one half for a tie that counts; None if there is none."""
        return 0.5 if number in self.tied else self.answers.get(number)

    def checked_score(self, number: int, answer: float) -> float:
        """The answer as 1, 0 or a score between them, or a sentence why it is none."""
        if not isinstance(answer, str) and answer in (0, 1):
            return int(answer)
        scores = self.ties_count and self.questions[number].second is not None
        if not (scores and isinstance(answer, float) and 0 < answer < 1):
            wanted = "from 0 to 1" if scores else "0 or 1"
            raise InvalidInput(
                f"The answer to question {number} must be {wanted}, got {answer!r}; use skip or tie for no answer."
            )
        return float(answer)

    def add_stage(self, plan: Plan) -> None:
        """A stage was planned."""
        self.stages.append(StageProgress.of(plan))

    def on_question(self, event: Event) -> None:
        """A question was handed out."""
        stage = self.stages[event["stage"]]
        measurement, swapped = event["measurement"], event["swapped"]
        stage.unasked[stage.place(measurement)] -= 1
        stage.outstanding.add(event["id"])
        first, second = (None if item < 0 else self.problem.names[item] for item in self.problem.about[measurement])
        if swapped:
            first, second = second, first
        vector = self.problem.vectors(measurement)
        self.questions[event["id"]] = Question(
            event["id"],
            event["stage"],
            measurement,
            -vector if swapped else vector,
            first,
            second,
            swapped,
            event.get("input"),
        )

    def on_answer(self, event: Event) -> None:
        """It was answered."""
        self._file(event, event["answer"])
        self.answers[event["id"]] = event["answer"]

    def _file(self, event: Event, answer: float) -> None:
        """Count an answer, unless it is late or repeats an earlier one of the same judge."""
        answer = event.get("stands", answer)
        if not event.get("late"):
            known = self.questions[event["id"]]
            self.history.add(
                known.id,
                event.get("judge"),
                known.asked,
                1 - answer if known.swapped else answer,
                counted=not event.get("void", False),
                expected=event.get("expected"),
            )
        if event.get("late") or event.get("void"):  # no longer waited for, and missing in the evidence
            (self.late if event.get("late") else self.void).add(event["id"])
            stage = self.stages[self.questions[event["id"]].stage]
            stage.outstanding.discard(event["id"])
            stage.without_answer.add(event["id"])
        else:
            self._counted[event["id"]] = answer
            self._count(event["id"], answer, 1)

    def on_undo(self, event: Event) -> None:
        """An answer, tie or skip was taken back: the question is open again."""
        question = event["id"]
        answer = 0.5 if question in self.tied else self.answers.pop(question, None)
        self.tied.discard(question)
        self.history.take_back(question)
        if answer is not None and question not in self.late | self.void:
            self._count(question, self._counted.pop(question), -1)
        else:
            self.late.discard(question)
            self.void.discard(question)
            stage = self.stages[self.questions[question].stage]
            stage.without_answer.discard(question)
            stage.outstanding.add(question)

    def _count(self, question: int, answer: float, by: int) -> None:
        known = self.questions[question]
        stage = self.stages[known.stage]
        place = stage.place(known.measurement)
        score = 1 - answer if known.swapped else answer
        if score in (0, 1):
            stage.pulls[place] += by
            stage.wins[place] += by * int(score)
        elif by > 0:
            stage.scores.setdefault(place, []).append(score)
        else:
            stage.scores[place].remove(score)
        stage.without_answer.discard(question)
        (stage.outstanding.discard if by > 0 else stage.outstanding.add)(question)
        self.changed.add(known.stage)

    def on_skip(self, event: Event) -> None:
        """No answer is expected any more."""
        self.history.pass_over(event.get("judge"), self.questions[event["id"]].asked)
        stage = self.stages[self.questions[event["id"]].stage]
        stage.outstanding.discard(event["id"])
        stage.without_answer.add(event["id"])
        self.changed.add(stage.plan.stage)

    def on_tie(self, event: Event) -> None:
        """The judge saw no difference."""
        if not self.ties_count:
            self.on_skip(event)
            return
        self._file(event, 0.5)
        self.tied.add(event["id"])
