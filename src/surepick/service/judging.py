"""What judges do over HTTP: get questions, answer, undo."""

import asyncio
import json
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool

from surepick.service import views
from surepick.service.dependencies import GuardedRoute, InvitedJudge, Service, ServiceDep, StudyId
from surepick.service.markdown import render
from surepick.service.models import AnswerIn, AnswerOut, CommentIn, InvitationOut, QuestionsOut, UndoIn, UndoOut
from surepick.store import Forbidden, studies
from surepick.store.answers import items_shown
from surepick.store.comments import write_comment
from surepick.store.question_queue import (
    LeasedQuestions,
    LeaseQuestions,
    RecordedMessage,
    SubmitAnswer,
    UndoAnswer,
    lease_questions,
    submit_answers,
    undo_answers,
)
from surepick.store.systems import SystemOutputs, texts_shown

RETRY_SECONDS = 0.1
"""Between two attempts to lease a question that is not ready yet."""

MOST_AT_ONCE = 100

router = APIRouter(tags=["judges"], route_class=GuardedRoute)


@router.get("/judge/invitation")
def invitation(judge: InvitedJudge, service: ServiceDep) -> InvitationOut:
    """What a judge's link, sent as bearer token, is for."""
    with service.database.reading() as connection:
        row = studies.get(connection, judge.study)
        person = studies.judge_of(connection, judge.study, judge.judge)
        answers = studies.standing_answers(connection, judge.study, judge.judge)
    if person["revoked"]:
        raise Forbidden("This judge's link was revoked.")
    asked = row["decided"] is None and row["state"] in ("running", "paused")
    return InvitationOut(
        study=judge.study,
        title=row["title"],
        state=row["state"] if asked else "over",
        name=person["name"],
        answers=answers,
        instructions=render(json.loads(row["settings"])["instructions"]),
    )


@router.post("/studies/{study}/questions")
async def take_questions(
    study: StudyId,
    judge: InvitedJudge,
    service: ServiceDep,
    n: Annotated[int, Query(ge=1, le=MOST_AT_ONCE, description="Questions to hold.")] = 1,
) -> QuestionsOut:
    """Questions to answer: those handed out to you and still open first, then new ones, up to n in all.

    Fewer or none come back where none are ready, and never more than one judge may hold; ask again as long as `open` is
    true. With `exhausted` you have had every question that would help now; answers of others may bring new ones.
    """
    now = asyncio.get_running_loop().time
    end = now() + service.patience
    while True:
        wanted = LeaseQuestions(study, judge.judge, min(n, service.settings.held))
        taken: LeasedQuestions = await service.write(lease_questions, wanted)
        if taken.questions or not taken.open or taken.exhausted or now() >= end:
            names = {name for row in taken.questions for name in items_shown(row)}
            items = await service.items.get(study, names)
            settings = json.loads(taken.study["settings"]) if taken.questions else {}
            inputs = sorted({row["input"] for row in taken.questions if row["input"] is not None})
            systems = await run_in_threadpool(_outputs, service, study, inputs) if inputs else SystemOutputs((), {})
            return QuestionsOut(
                questions=[
                    views.question(study, question, until, items, settings, systems)
                    for question, until in zip(taken.questions, taken.until, strict=True)
                ],
                open=taken.open,
                exhausted=taken.exhausted,
                answered=taken.study["answers"],
                remaining=views.remaining(taken.study),
            )
        # Every attempt is a transaction of its own, so a request that waits holds no lock. The first one has told the
        # planner how many questions are wanted.
        await asyncio.sleep(RETRY_SECONDS)


def _outputs(service: Service, study: str, inputs: list[str]) -> SystemOutputs:
    with service.database.reading() as connection:
        return texts_shown(connection, study, inputs)


@router.post("/studies/{study}/answers")
async def answer(study: StudyId, body: AnswerIn, judge: InvitedJudge, service: ServiceDep) -> AnswerOut:
    """Answer a question, skip it, or say that it is a tie. Acknowledged when it is stored; the same again is the same.

    Something else than before is refused (409) until the first answer is undone, except an answer after a skip, which
    counts unless it is late.
    """
    given = SubmitAnswer(study, judge.judge, body.question, body.answer, body.turn)
    recorded: RecordedMessage = await service.write(submit_answers, given)
    return AnswerOut(question=recorded.question, answer=recorded.said, turn=recorded.turn, late=recorded.late)


@router.post("/studies/{study}/undo")
async def undo(study: StudyId, body: UndoIn, judge: InvitedJudge, service: ServiceDep) -> UndoOut:
    """Take back your last answer, skip or tie, until its stage has been evaluated; answer again with `turn`."""
    wanted = UndoAnswer(study, judge.judge, body.question)
    undone: RecordedMessage = await service.write(undo_answers, wanted)
    return UndoOut(question=undone.question, turn=undone.turn + 1)


@router.post("/studies/{study}/comments", status_code=204)
def comment(study: StudyId, body: CommentIn, judge: InvitedJudge, service: ServiceDep) -> None:
    """Say something about a question that you got, besides the answer; the admin reads it with your name."""
    write_comment(service.database, study, judge.judge, body.question, body.text)
