"""What operators and owners do over HTTP: readiness, metrics, members of projects, the record of what admins did."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse, Response

from surepick.service.dependencies import GuardedRoute, Operator, OwnerMember, ServiceDep
from surepick.service.models import (
    AuditOut,
    Consequence,
    Id,
    MemberIn,
    MemberMade,
    MemberOut,
    NewToken,
    Readiness,
    Text,
)
from surepick.store import Forbidden, members
from surepick.store.members import AuditFilter
from surepick.store.operating import counts

LATE_SECONDS = 60.0
"""A message that has waited longer for its log is an alarm: usually it takes less than a second."""

REVOKED = "The member's token and log-ins no longer let anybody in; what the member did stays on record."

MOST_ENTRIES = 1_000

ACTIONS = {
    "POST /studies": "created a study",
    "POST /studies/upload": "created a study from a table",
    "POST /studies/systems": "created a study of systems",
    "DELETE /studies/{study}": "deleted a study",
    "POST /studies/{study}/state": "changed the state of a study",
    "POST /studies/{study}/items": "changed the items of a study",
    "POST /studies/{study}/judges": "invited a judge",
    "POST /studies/{study}/judges/upload": "invited judges from a file",
    "POST /studies/{study}/judges/{judge}/revoke": "revoked the link of a judge",
    "DELETE /studies/{study}/judges/{judge}": "deleted the data of a judge",
    "PUT /studies/{study}/shared-link": "opened or changed the shared link",
    "DELETE /studies/{study}/shared-link": "closed the shared link",
    "POST /streams": "created a stream",
    "POST /streams/{stream}/token": "changed the token of a stream",
    "DELETE /streams/{stream}": "deleted a stream",
    "POST /members": "added a member",
    "POST /members/{member_id}/token": "changed the token of a member",
    "DELETE /members/{member_id}": "revoked a member",
}
"""Actions on record, in words; a test compares them with the routes."""

router = APIRouter(tags=["operating"], route_class=GuardedRoute)


@router.get("/ready", responses={503: {"model": Readiness, "description": "Not ready; a proxy should ask others."}})
def ready(service: ServiceDep) -> Response:
    """Whether judges are served: the database can be read, and planners keep up with judges' messages."""
    with service.database.reading() as connection:
        found = counts(service.database, connection)
    state = Readiness(ready=found.lag < LATE_SECONDS, planner_lag_seconds=found.lag, waiting=found.waiting)
    return JSONResponse(state.model_dump(), 200 if state.ready else 503)


@router.get("/metrics", dependencies=[Operator], response_class=Response)
def metrics(service: ServiceDep) -> Response:
    """Numbers for Prometheus, in its text format."""
    with service.database.reading() as connection:
        found = counts(service.database, connection)
    return Response(service.metrics.text(found), media_type=service.metrics.content_type)


@router.get("/members")
def list_members(member: OwnerMember, service: ServiceDep) -> list[MemberOut]:
    """Members of your project; of all projects if you belong to all."""
    with service.database.reading() as connection:
        return [
            MemberOut(**{name: row[name] for name in MemberOut.model_fields})
            for row in members.every(connection, member.project)
        ]


@router.post("/members", status_code=201)
def add_member(body: MemberIn, member: OwnerMember, service: ServiceDep) -> MemberMade:
    """Add a member to a project; the response has the token, which is shown once."""
    if not member.belongs_to(body.project):
        raise Forbidden(f"You can add members to the project {member.project!r} only; name that one.")
    with service.database.writing() as connection:
        made, token = members.add(
            connection, project=body.project, name=body.name, email=body.email, role=body.role, now=service.clock()
        )
    return MemberMade(id=made, token=token)


@router.post("/members/{member_id}/token")
def rotate_token(member_id: Id, member: OwnerMember, service: ServiceDep) -> NewToken:
    """Give a member a new token; the old one and log-ins with it no longer let anybody in."""
    with service.database.writing() as connection:
        return NewToken(token=members.rotate_token(connection, member_id, member.project))


@router.delete("/members/{member_id}")
def revoke_member(member_id: Id, member: OwnerMember, service: ServiceDep) -> Consequence:
    """End all access of a member."""
    with service.database.writing() as connection:
        members.revoke(connection, member_id, member.project)
    return Consequence(consequence=REVOKED)


def audit_filter(
    who: Annotated[Text, Query(max_length=200, description="Part of the name of who acted.")] = "",
    action: Annotated[Text, Query(max_length=200, description="Method and route.")] = "",
    study: Annotated[Text, Query(max_length=40, description="Id of a study.")] = "",
) -> AuditFilter:
    """Which entries are asked for."""
    return AuditFilter(who.strip(), action, study.strip())


@router.get("/audit")
def audit(
    member: OwnerMember,
    service: ServiceDep,
    before: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only entries older than this one.")] = None,
    n: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = 100,
    wanted: Annotated[AuditFilter, Depends(audit_filter)] = AuditFilter(),
) -> list[AuditOut]:
    """What admins of your project did, the newest first: who, when, what, and how it ended."""
    with service.database.reading() as connection:
        return [
            AuditOut(**{name: row[name] for name in AuditOut.model_fields})
            for row in members.record(connection, member.project, before, n, wanted)
        ]
