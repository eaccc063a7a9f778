"""Contextual decisions over HTTP: which arm to take now, and its reward. docs/production.md has an example."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from surepick.errors import InvalidInput, SurepickError
from surepick.registry import policy_by_name
from surepick.service.dependencies import (
    Admin,
    AdminMember,
    GuardedRoute,
    OwnerMember,
    Service,
    ServiceDep,
    StreamClient,
    chosen_project,
    require_room,
)
from surepick.service.models import (
    Consequence,
    DecideIn,
    DecisionOut,
    Id,
    NewToken,
    RewardIn,
    RewardOut,
    StreamIn,
    StreamMade,
    StreamOut,
)
from surepick.service.replies import IdempotencyKey, digest, first_reply, give_back, keep_reply
from surepick.service.views import Json
from surepick.session.contextual import Decision, policy_of
from surepick.store import Database, operating, streams

StreamId = Annotated[Id, Path(description="Id of a stream.")]

PATIENCE_SECONDS = 7 * 86_400.0
"""Of a stream with order="decision" that names none."""

DELETED = "The stream and its log are gone, and its token is of no more use."

_Request = tuple[str, str, str]
"""Stream, key and digest."""

router = APIRouter(tags=["streams"], route_class=GuardedRoute)


@router.post("/streams", status_code=201)
def create_stream(body: StreamIn, member: AdminMember, service: ServiceDep) -> StreamMade:
    """Create a stream; the response has the token with which programs ask for decisions."""
    if body.dimension > service.settings.features:
        raise InvalidInput(f"Arms may have at most {service.settings.features:,} features, got {body.dimension:,}.")
    known: Any = {"horizon": body.horizon, "arms": body.most_arms, "norm_bound": body.norm_bound, "delta": body.delta}
    policy = policy_by_name(body.policy, **known)  # raises if an option is missing
    seed = secrets.randbits(31) if body.seed is None else body.seed
    # Rewards in the order of decisions wait for each other, so one that never comes must not be waited for for ever.
    patience = PATIENCE_SECONDS if body.patience is None and body.order == "decision" else body.patience
    project = chosen_project(member, body.project)
    with service.database.writing() as connection:
        require_room("streams", len(streams.every(connection, project)), service.settings.streams)
        made = streams.create(
            connection, body.title, policy, body.dimension, body.order, seed, service.clock(), patience, project
        )
    return StreamMade(id=made, token=service.credentials.stream_token(made))


@router.get("/streams")
def list_streams(member: AdminMember, service: ServiceDep) -> list[StreamOut]:
    """All streams of your project, the newest first."""
    with service.database.reading() as connection:
        rows = streams.every(connection, member.project)
        return [_shown(row, streams.start_of(connection, row["id"])) for row in rows]


@router.get("/streams/{stream}", dependencies=[Admin])
def show_stream(stream: StreamId, service: ServiceDep) -> StreamOut:
    """The present state of a stream."""
    with service.database.reading() as connection:
        return _shown(streams.get(connection, stream), streams.start_of(connection, stream))


@router.post("/streams/{stream}/token")
def rotate_stream_token(stream: StreamId, member: OwnerMember, service: ServiceDep) -> NewToken:
    """Give a stream a new token; the old one is refused from then on, by other processes within a second."""
    with service.database.writing() as connection:
        number = streams.rotate_token(connection, stream)
    return NewToken(token=service.credentials.stream_token(stream, number))


@router.delete("/streams/{stream}")
def delete_stream(stream: StreamId, member: OwnerMember, service: ServiceDep) -> Consequence:
    """Delete a stream with its log."""
    with service.database.writing() as connection:
        operating.delete_stream(connection, stream)
    return Consequence(consequence=DELETED)


@router.get("/streams/{stream}/log", dependencies=[Admin], response_class=Response)
def stream_log(stream: StreamId, service: ServiceDep) -> Response:
    """The log as JSON lines, as `ContextualSession.replay` and `read_decisions` take it."""
    with service.database.reading() as connection:
        streams.get(connection, stream)
        lines = [event["body"] for event in streams.events_of(connection, stream)]
    name = f'attachment; filename="{stream}.jsonl"'
    content = "".join(line + "\n" for line in lines)
    return Response(content, media_type="application/jsonl", headers={"Content-Disposition": name})


@router.post("/streams/{stream}/decide", dependencies=[StreamClient])
async def decide(
    stream: StreamId, body: DecideIn, service: ServiceDep, idempotency_key: IdempotencyKey = None
) -> DecisionOut:
    """Which of these arms to take. The decision is stored before it is answered."""
    if len(body.arms) > service.settings.items:
        raise InvalidInput(f"At most {service.settings.items:,} arms can be offered, got {len(body.arms):,}.")
    wanted = streams.Decide(stream, body.arms, body.context)
    if idempotency_key is None:
        return _decision(await _act(service, wanted), body.context)
    await run_in_threadpool(service.streams.read, stream)
    reply: Json = await service.write(
        _decide_once, _DecideOnce(stream, wanted, idempotency_key, digest(body), service.streams)
    )
    return DecisionOut(**reply)


@dataclass(frozen=True)
class _DecideOnce(streams.StreamRequest):
    """A request for a decision with a key."""

    wanted: streams.Decide
    key: str
    digest: str
    sessions: streams.Streams

    @property
    def place(self) -> tuple[str, str]:
        return self.stream, self.key


def _decide_once(
    database: Database, connection: sa.Connection, requests: Sequence[_DecideOnce]
) -> list[Json | SurepickError]:
    """Decide for requests with a key, unless that was done before; a handler for `GroupCommit`."""
    results: dict[_Request, Json | SurepickError] = {}
    fresh: dict[tuple[str, str], _DecideOnce] = {}
    now = database.now(connection)
    for request in requests:  # their streams are locked, so no other process has one of these keys in its hands
        try:
            before = first_reply(database, connection, *request.place, request.digest, now)
        except InvalidInput as refused:
            results[*request.place, request.digest] = refused
            continue
        if before is not None:
            results[*request.place, request.digest] = before
        else:
            fresh.setdefault(request.place, request)
    chosen = requests[0].sessions.act(database, connection, [request.wanted for request in fresh.values()])
    for (place, request), made in zip(fresh.items(), chosen, strict=True):
        if isinstance(made, Decision):
            reply = _decision(made, request.wanted.context).model_dump()
            keep_reply(connection, *place, reply)
            results[*place, request.digest] = reply
        else:
            assert isinstance(made, SurepickError)
            give_back(connection, *place)
            results[*place, request.digest] = made
    return [results[*request.place, request.digest] for request in requests]


def _decision(made: Decision, context: str | None) -> DecisionOut:
    return DecisionOut(decision=made.id, arm=made.index, propensity=made.propensity, context=context)


@router.post("/streams/{stream}/reward", dependencies=[StreamClient])
async def reward(stream: StreamId, body: RewardIn, service: ServiceDep) -> RewardOut:
    """The reward of a decision: 1, 0, or null to give up on it. The same again changes nothing, another is refused."""
    told: streams.Reward = await _act(service, streams.Reward(stream, body.decision, body.reward))
    return RewardOut(decision=told.decision, reward=told.reward)


async def _act(service: Service, request: streams.Decide | streams.Reward) -> Any:
    await run_in_threadpool(service.streams.read, request.stream)
    return await service.write(service.streams.act, request)


def _shown(row: Any, start: streams.Line) -> StreamOut:
    policy = policy_of(start)
    return StreamOut(
        id=row["id"],
        title=row["title"],
        created=row["created"],
        policy=policy.name,
        configuration=start["configuration"],
        dimension=start["dimension"],
        order=start["order"],
        patience=row["patience"],
        seed=start["seed"],
        guarantee=str(policy.facts.guarantee),
        statement=policy.facts.statement,
        assumptions=list(policy.facts.assumptions),
        decisions=row["decisions"],
        waiting=row["decisions"] - row["answered"],
    )
