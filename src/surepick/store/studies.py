"""Studies: begin one, read it, change its state or its items."""

import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sqlalchemy as sa

from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.io.items import Kind
from surepick.registry import policy_named
from surepick.session import Session
from surepick.store import log
from surepick.store.errors import Conflict, NotFound
from surepick.store.schema import events, images, items, looks, questions, studies

State = Literal["running", "paused", "closed", "archived"]

CHANGES: dict[State, tuple[State, ...]] = {
    "running": ("paused", "closed"),
    "paused": ("running", "closed"),
    "closed": ("archived",),
    "archived": ("closed",),
}
"""What a study's state can become."""


@dataclass(frozen=True)
class Item:
    """A candidate: its features, and what a judge sees of it."""

    name: str
    label: str = ""
    text: str = ""
    colour: str = ""
    image: str = ""
    """Name of an uploaded image."""
    features: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Image:
    """An uploaded picture."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Settings:
    """What a study is asked to do. `policy` has a name and that policy's options."""

    title: str
    kind: Kind = "pairs"
    policy: dict[str, Any] = field(default_factory=lambda: {"name": "anytime"})
    lease: float = 120.0
    """Seconds a judge has for a question before it is no longer waited for."""
    seed: int | None = None
    """Drawn at random unless given."""


def problem_of(kind: Kind, candidates: Sequence[Item]) -> Problem:
    """The problem these items and this kind of question make."""
    if len(candidates) < 2:
        raise InvalidInput(f"A study needs at least two items to choose from, got {len(candidates)}.")
    lengths = {None if item.features is None else len(item.features) for item in candidates}
    if len(lengths) > 1:
        raise InvalidInput("All items must have the same features, or none any; some have more than others.")
    names = [item.name for item in candidates]
    bare = lengths == {None} or lengths == {0}
    given: Any = names if bare else [list(item.features or ()) for item in candidates]
    build: dict[Kind, Callable[..., Problem]] = {
        "pairs": Problem.from_pairs,
        "items": Problem.from_items,
        "both": Problem.from_pairs_and_items,
    }
    problem = build[kind](given, names=None if bare else names)
    problem.require_identifiable()
    return problem


def create(
    connection: sa.Connection, wanted: Settings, candidates: Sequence[Item], pictures: Iterable[Image], now: float
) -> str:
    """Begin a study; its id."""
    study = secrets.token_urlsafe(9)
    options = dict(wanted.policy)
    policy = policy_named(options.pop("name", "anytime"), **options)
    seed = secrets.randbits(31) if wanted.seed is None else wanted.seed
    session = Session(problem_of(wanted.kind, candidates), policy, seed=seed)
    connection.execute(
        sa.insert(studies).values(
            id=study,
            title=wanted.title,
            settings=json.dumps({"kind": wanted.kind, "policy": policy.to_json(), "seed": seed, "lease": wanted.lease}),
            state="running",
            created=now,
            phase=0,
            head=len(session.log),
            sealed=0,
            answered=0,
            demand=0,
            insight_head=0,
            insight_from=0.0,
            forecast_from=0.0,
            notice="",
            planner_until=0.0,
            term=0,
        )
    )
    connection.execute(
        sa.insert(items),
        [_item_row(study, place, item) for place, item in enumerate(candidates)],
    )
    _keep_pictures(connection, study, pictures)
    log.append(connection, study, 0, 0, session.log, now)
    return study


def get(connection: sa.Connection, study: str) -> sa.RowMapping:
    """The row of a study."""
    row = connection.execute(sa.select(studies).where(studies.c.id == study)).mappings().first()
    if row is None:
        raise NotFound(f"There is no study {study!r}.")
    return row


def every(connection: sa.Connection, *, archived: bool = False) -> list[sa.RowMapping]:
    """All studies, the newest first."""
    wanted = sa.select(studies).order_by(studies.c.created.desc())
    if not archived:
        wanted = wanted.where(studies.c.state != "archived")
    return list(connection.execute(wanted).mappings())


def items_of(connection: sa.Connection, study: str) -> list[Item]:
    """The items of a study as it is now."""
    wanted = sa.select(items).where(items.c.study == study, items.c.removed.is_(False)).order_by(items.c.place)
    return [_item(row) for row in connection.execute(wanted).mappings()]


def shown(connection: sa.Connection, study: str, names: Iterable[str]) -> dict[str, Item]:
    """What judges see of these items, by name; removed ones too, since their questions may be open."""
    wanted = sa.select(items).where(items.c.study == study, items.c.name.in_(list(names)))
    return {row["name"]: _item(row) for row in connection.execute(wanted).mappings()}


def image(connection: sa.Connection, study: str, name: str) -> Image:
    """An uploaded picture."""
    row = connection.execute(sa.select(images).where(images.c.study == study, images.c.name == name)).first()
    if row is None:
        raise NotFound(f"This study has no image {name!r}.")
    return Image(row.name, row.media_type, bytes(row.content))


def change_state(connection: sa.Connection, study: str, state: State) -> None:
    """Pause, resume, close or archive; the same state again does nothing."""
    before: State = get(connection, study)["state"]
    if state == before:
        return
    if state not in CHANGES[before]:
        raise Conflict(f"A study that is {before} cannot become {state}; it can become {' or '.join(CHANGES[before])}.")
    connection.execute(sa.update(studies).where(studies.c.id == study).values(state=state))


def begin_phase(
    connection: sa.Connection,
    study: str,
    added: Sequence[Item],
    pictures: Iterable[Image],
    removed: Sequence[str],
    now: float,
) -> int:
    """Add and remove items: a new session on the new items, whose evidence begins from nothing. The phase's number.

    Evidence about one set of items says nothing of another, and choosing anew after looking at it would break the
    guarantee; so what was asked before is kept and exported but not counted.
    """
    locked = connection.execute(sa.select(studies).where(studies.c.id == study).with_for_update()).mappings().first()
    if locked is None:
        raise NotFound(f"There is no study {study!r}.")
    if locked["state"] not in ("running", "paused"):
        raise Conflict(f"A study that is {locked['state']} keeps its items.")
    present = {item.name: item for item in items_of(connection, study)}
    known = set(connection.scalars(sa.select(items.c.name).where(items.c.study == study)))
    for name in removed:
        if present.pop(name, None) is None:
            raise NotFound(f"This study has no item {name!r}.")
    for item in added:
        if item.name in known:
            raise Conflict(f"This study has or had an item {item.name!r}; choose another name.")
        present[item.name] = item
    settings = json.loads(locked["settings"])
    options = dict(settings["policy"])
    phase, head = locked["phase"] + 1, locked["head"]
    session = Session(
        problem_of(settings["kind"], list(present.values())),
        policy_named(options.pop("name"), **options),
        seed=settings["seed"] + phase,
    )
    if removed:
        connection.execute(
            sa.update(items).where(items.c.study == study, items.c.name.in_(list(removed))).values(removed=True)
        )
    if added:
        connection.execute(
            sa.insert(items), [_item_row(study, len(known) + place, item) for place, item in enumerate(added)]
        )
    _keep_pictures(connection, study, pictures)
    # Questions that nobody has seen are withdrawn; those in judges' hands may still be answered, into their own phase.
    connection.execute(
        sa.delete(questions).where(
            questions.c.study == study, questions.c.judge.is_(None), questions.c.phase == locked["phase"]
        )
    )
    log.append(connection, study, phase, head, session.log, now)
    connection.execute(
        sa.update(studies)
        .where(studies.c.id == study)
        .values(
            phase=phase,
            head=head + len(session.log),
            sealed=0,
            answered=0,
            verdict=None,
            decided=None,
            certificate=None,
            insight=None,
            insight_head=0,
            insight_from=0.0,
            forecast=None,
            forecast_from=0.0,
            notice="",
            planner=None,
            term=studies.c.term + 1,
        )
    )
    return int(phase)


def history(connection: sa.Connection, study: str, phase: int) -> list[dict[str, Any]]:
    """What earlier looks at the evidence showed, oldest first."""
    wanted = sa.select(looks).where(looks.c.study == study, looks.c.phase == phase).order_by(looks.c.seq)
    return [{"at": row.at, "answers": row.answered, **json.loads(row.body)} for row in connection.execute(wanted)]


def events_of(connection: sa.Connection, study: str, after: int = -1) -> list[sa.RowMapping]:
    """The log from an event on, all phases."""
    wanted = sa.select(events).where(events.c.study == study, events.c.seq > after).order_by(events.c.seq)
    return list(connection.execute(wanted).mappings())


def _keep_pictures(connection: sa.Connection, study: str, pictures: Iterable[Image]) -> None:
    """Pictures are named by their content, so one that is there already is the same."""
    there = set(connection.scalars(sa.select(images.c.name).where(images.c.study == study)))
    for each in pictures:
        if each.name not in there:
            connection.execute(
                sa.insert(images).values(study=study, name=each.name, media_type=each.media_type, content=each.content)
            )


def _item_row(study: str, place: int, item: Item) -> dict[str, Any]:
    return {
        "study": study,
        "name": item.name,
        "place": place,
        "label": item.label,
        "text": item.text,
        "colour": item.colour,
        "image": item.image,
        "features": None if item.features is None else json.dumps(list(item.features)),
        "removed": False,
    }


def _item(row: sa.RowMapping) -> Item:
    features = None if row["features"] is None else tuple(json.loads(row["features"]))
    return Item(row["name"], row["label"], row["text"], row["colour"], row["image"], features)
