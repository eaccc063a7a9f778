"""What the admin does over HTTP: create studies, change them, invite judges, export."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Request, UploadFile
from fastapi.responses import Response
from pydantic import ValidationError
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from surepick.errors import InvalidInput
from surepick.io.items import Preparation
from surepick.service import uploads, views
from surepick.service.dependencies import (
    Admin,
    AdminMember,
    GuardedRoute,
    OwnerMember,
    Service,
    ServiceDep,
    StudyId,
    chosen_project,
    require_room,
)
from surepick.service.models import (
    CommentOut,
    Consequence,
    Created,
    Id,
    ItemsIn,
    JudgeIn,
    JudgeOut,
    JudgeRow,
    PhaseOut,
    StateIn,
    StudyIn,
    StudySettings,
)
from surepick.service.replies import IdempotencyKey, digest, first_reply, keep_reply
from surepick.service.views import MEDIA_TYPES, Format, What, export
from surepick.store import operating, studies
from surepick.store.database import UNAVAILABLE
from surepick.store.members import Member
from surepick.store.systems import SystemOutputs

LIVE_SECONDS = 0.5
"""How often a live view asks for changes."""

NEW_PHASE = (
    "A new phase starts: evidence about the items is gathered from the start, and its verdict is wrong with "
    "probability at most delta by itself. Earlier answers are kept and exported, but no longer count."
)
DELETED = "The study and everything about it is gone; a certificate that was downloaded before stays valid."
REVOKED = "The link no longer works; answers given with it stay."
FORGOTTEN = (
    "The judge's name and id are replaced by a random word everywhere, the link no longer works, and the answers stay "
    "without a name. They cannot be removed without choosing the data after seeing it; verdict and certificate use "
    "counts only and stay valid."
)

router = APIRouter(tags=["admin"], dependencies=[Admin], route_class=GuardedRoute)


@router.post("/studies", status_code=201)
def create_study(
    body: StudyIn, member: AdminMember, service: ServiceDep, idempotency_key: IdempotencyKey = None
) -> Created:
    """Create a study from items in JSON; it runs at once."""
    items, images = uploads.items_from_json(body.items, service.settings)
    return _create(service, member, body, items, images, None, idempotency_key, digest(body))


def _create(
    service: Service,
    member: Member,
    wanted: StudySettings,
    items: list[studies.Item],
    images: list[studies.Image],
    prepared: Preparation | None,
    key: str | None,
    what: str,
    outputs: SystemOutputs | None = None,
) -> Created:
    """Create a study, unless this key has created it before."""
    project, now = chosen_project(member, wanted.project), service.clock()
    options = uploads.study_options(wanted, systems=outputs is not None)
    scope = f"studies {project}"
    with service.database.reading() as connection:
        people = studies.people_of(connection, project, options.population, [item.name for item in items])
    session = studies.new_session(options, items, outputs, people)
    done = prepared or uploads.preparation(items, session.problem)
    with service.database.writing() as connection:
        before = None if key is None else first_reply(service.database, connection, scope, key, what, now)
        if before is not None:
            return Created.model_validate(before)
        require_room("studies", studies.open_studies(connection, project), service.settings.studies)
        options = replace(options, prepared=done.sentences)
        made = studies.create(connection, options, items, images, now, outputs, session=session, project=project)
        created = Created(id=made, prepare=done.to_json())
        if key is not None:
            keep_reply(connection, scope, key, created.model_dump())
    return created


@router.post("/studies/upload", status_code=201)
def upload_study(
    member: AdminMember,
    service: ServiceDep,
    items: Annotated[UploadFile, File(description="CSV or Parquet: column item, display columns, features.")],
    settings: Annotated[str, Form(description="The fields of POST /studies but items, as JSON.")],
    images: Annotated[list[UploadFile] | None, File(description="Images named in the column image.")] = None,
    idempotency_key: IdempotencyKey = None,
) -> Created:
    """Create a study from a table and images."""
    wanted = _settings(settings)
    files = {file.filename or "": file.file.read() for file in images or []}
    table = items.file.read()
    rows, prepared = uploads.items_from_table(items.filename or "items.csv", table, service.settings)
    found, pictures = uploads.items_from_json(rows, service.settings, files)
    what = digest(settings.encode() + table)
    return _create(service, member, wanted, found, pictures, prepared, idempotency_key, what)


@router.post("/studies/systems", status_code=201)
def upload_systems(
    member: AdminMember,
    service: ServiceDep,
    outputs: Annotated[
        UploadFile, File(description="CSV or JSON lines: system, input, output; or input and a column per system.")
    ],
    settings: Annotated[str, Form(description="The fields of POST /studies but items, as JSON.")],
    inputs: Annotated[UploadFile | None, File(description="CSV or JSON lines: input, text, and maybe weight.")] = None,
    idempotency_key: IdempotencyKey = None,
) -> Created:
    """Create a study that compares systems on a test set, blind unless it says otherwise."""
    wanted = _settings(settings)
    table = outputs.file.read()
    given = None if inputs is None else (inputs.filename or "inputs.csv", inputs.file.read())
    tables = (outputs.filename or "outputs.csv", table), given
    items, texts, prepared = uploads.systems_from_tables(*tables, service.settings)
    what = digest(settings.encode() + table + (b"" if given is None else given[1]))
    return _create(service, member, wanted, items, [], prepared, idempotency_key, what, texts)


def _settings(given: str) -> StudySettings:
    """The settings of an uploaded study."""
    try:
        return StudySettings.model_validate_json(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "settings"
        raise InvalidInput(f"settings: {where} cannot be used ({first['msg']}).") from None


@router.get("/studies")
def list_studies(member: AdminMember, service: ServiceDep, archived: bool = False) -> list[dict[str, Any]]:
    """All studies of your project, the newest first."""
    with service.database.reading() as connection:
        rows = studies.every(connection, archived=archived, project=member.project)
        return [views.summary(connection, row) for row in rows]


@router.get("/studies/{study}")
def show_study(study: StudyId, service: ServiceDep) -> dict[str, Any]:
    """A study as it stands."""
    studies.look_at(service.database, study)
    with service.database.reading() as connection:
        found = views.summary(connection, studies.get(connection, study))
        items = studies.items_of(connection, study)
    return found | {"items": [views.item(study, item).model_dump() for item in items]}


@router.delete("/studies/{study}")
def delete_study(study: StudyId, member: OwnerMember, service: ServiceDep) -> Consequence:
    """Delete a study that is closed or archived, with its items, judges, answers, log and certificate."""
    with service.database.writing() as connection:
        operating.delete_study(connection, study)
    return Consequence(consequence=DELETED)


@router.post("/studies/{study}/state")
def change_state(study: StudyId, body: StateIn, service: ServiceDep) -> StateIn:
    """Pause (no new questions, answers still count), resume, close (for good) or archive a study."""
    with service.database.writing() as connection:
        studies.change_state(connection, study, body.state)
    return body


@router.post("/studies/{study}/items")
def change_items(study: StudyId, body: ItemsIn, service: ServiceDep) -> PhaseOut:
    """Add and remove items during a study; the response says what that means for the guarantee."""
    if not body.add and not body.remove:
        raise InvalidInput("There is nothing to change: name items to add or to remove.")
    added, images = uploads.items_from_json(body.add, service.settings)
    with service.database.writing() as connection:
        phase = studies.begin_phase(connection, study, added, images, body.remove, service.clock())
    return PhaseOut(phase=phase, consequence=NEW_PHASE)


@router.get("/studies/{study}/result")
def show_result(study: StudyId, service: ServiceDep) -> dict[str, Any]:
    """The verdict so far, or the final one with its certificate."""
    with service.database.reading() as connection:
        return views.result(studies.get(connection, study), service.clock())


@router.get("/studies/{study}/history")
def show_history(study: StudyId, service: ServiceDep) -> list[dict[str, Any]]:
    """How the evidence grew: one entry per evaluation."""
    with service.database.reading() as connection:
        return studies.history(connection, study, studies.get(connection, study)["phase"])


@router.get("/studies/{study}/events", response_class=EventSourceResponse)
async def live(study: StudyId, request: Request, service: ServiceDep) -> EventSourceResponse:
    """Server-sent events: the study as in GET /studies/{study}, now and whenever it changes."""
    first = await run_in_threadpool(_summary, service, study)  # before the response begins: it may be a 404

    # Changes come from planners in other processes, so the database is asked. PostgreSQL could notify, SQLite cannot.
    async def news() -> AsyncIterator[dict[str, str]]:
        shown = None
        current = first
        while not await request.is_disconnected():
            if current != shown:
                shown = current
                yield {"event": "study", "data": json.dumps(current)}
            await asyncio.sleep(LIVE_SECONDS)
            with suppress(*UNAVAILABLE):  # the database will be back; until then there is nothing new to show
                current = await run_in_threadpool(_summary, service, study)

    return EventSourceResponse(news())


def _summary(service: Service, study: str) -> dict[str, Any]:
    studies.look_at(service.database, study)
    with service.database.reading() as connection:
        return views.summary(connection, studies.get(connection, study))


@router.get("/studies/{study}/comments")
def list_comments(study: StudyId, service: ServiceDep) -> list[CommentOut]:
    """What judges wrote about questions, the newest first."""
    with service.database.reading() as connection:
        studies.get(connection, study)
        return views.written_comments(connection, study)


@router.get("/studies/{study}/export", response_class=Response)
def export_study(
    study: StudyId,
    service: ServiceDep,
    what: Annotated[What, Query(description="Which table.")] = "answers",
    format: Annotated[Format, Query(description="How it is written.")] = "csv",
) -> Response:
    """A table to download. In CSV, text that a spreadsheet would run as a formula has an apostrophe in front."""
    with service.database.reading() as connection:
        content = export(connection, study, what, format, service.clock())
    name = f'attachment; filename="{study}-{what}.{format}"'
    return Response(content, media_type=MEDIA_TYPES[format], headers={"Content-Disposition": name})


@router.post("/studies/{study}/judges", status_code=201)
def add_judge(study: StudyId, body: JudgeIn, request: Request, service: ServiceDep) -> JudgeOut:
    """Invite a judge: the response has the link to send."""
    now = service.clock()
    until = now + 86_400 * (service.settings.link_days if body.days is None else body.days)
    with service.database.writing() as connection:
        require_room("judges", len(studies.judges_of(connection, study)), service.settings.judges)
        judge = studies.add_judge(connection, study, body.name, now, until=until)
    token = service.credentials.link(study, judge, until)
    return JudgeOut(
        id=judge, name=body.name, token=token, link=f"{service.address(request)}/judge#{token}", until=until
    )


@router.get("/studies/{study}/judges")
def list_judges(study: StudyId, service: ServiceDep) -> list[JudgeRow]:
    """All judges of a study."""
    with service.database.reading() as connection:
        studies.get(connection, study)
        return [
            JudgeRow(**{name: row[name] for name in JudgeRow.model_fields})
            for row in studies.judges_of(connection, study)
        ]


@router.post("/studies/{study}/judges/{judge}/revoke")
def revoke_judge(study: StudyId, judge: Id, service: ServiceDep) -> Consequence:
    """End a judge's link."""
    with service.database.writing() as connection:
        studies.revoke_judge(connection, study, judge)
    return Consequence(consequence=REVOKED)


@router.delete("/studies/{study}/judges/{judge}")
def forget_judge(study: StudyId, judge: Id, service: ServiceDep) -> Consequence:
    """Delete a judge's data; the response says what that means for the certificate."""
    with service.database.writing() as connection:
        studies.forget_judge(connection, study, judge)
    return Consequence(consequence=FORGOTTEN)
