"""Several questions out at once: the loops of judges who work on more than one."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait

from surepick.session import Question, Reply

Submit = Callable[[Question], "Future[Reply]"]
NextQuestion = Callable[[], Question | None]


def as_they_come(submit: Submit, next_question: NextQuestion, at_once: int) -> Iterator[tuple[Question, Reply]]:
    """Submit questions while fewer than `at_once` are out, and yield replies in the order in which they arrive.

    It ends when there is no question and none is out. What a submitted call raises is raised here.
    """
    out: dict[Future[Reply], Question] = {}
    while True:
        while len(out) < at_once and (question := next_question()) is not None:
            out[submit(question)] = question
        if not out:
            return
        done, _ = wait(out, return_when=FIRST_COMPLETED)
        for future in done:
            yield out.pop(future), future.result()


def in_order(submit: Submit, next_question: NextQuestion, at_once: int) -> Iterator[tuple[Question, Reply]]:
    """The same with replies in the order of the questions, so that a search does not depend on how fast each came.

    With the same replies a second run asks the same questions. A slow reply holds up the next questions: with eight out
    and exponential times 3.7 calls are under way on average (5.2 where the times vary less, lognormal with σ = ½). The
    first question goes out alone: its reply shows what the others will cost.
    """
    out: deque[tuple[Question, Future[Reply]]] = deque()
    room = 1
    while True:
        while len(out) < room and (question := next_question()) is not None:
            out.append((question, submit(question)))
        if not out:
            return
        question, future = out.popleft()
        yield question, future.result()
        room = at_once
