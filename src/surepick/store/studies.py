"""Studies and their judges: create a study, read it, change its state or items; add, revoke and forget judges."""

import json
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa

from surepick.errors import InvalidInput
from surepick.identify import Population, Problem
from surepick.identify.ladder import LADDER_POLICIES, Assumption, compares, default_assumption, policy_for
from surepick.io.items import Kind
from surepick.io.people import People, people_of_log
from surepick.registry import policy_named
from surepick.session import Session
from surepick.session.repeats import Repeats
from surepick.store import log, systems
from surepick.store.database import UNAVAILABLE, Conflict, Database, NotFound, lock_studies
from surepick.store.members import DEFAULT_PROJECT
from surepick.store.plannable import require_plannable, require_size
from surepick.store.schema import (
    QUESTION_LEASE,
    comments,
    evaluations,
    events,
    images,
    items,
    judges,
    messages,
    questions,
    studies,
)

State = Literal["running", "paused", "closed", "archived"]

AnswerForm = Literal["choose", "grade", "pick", "rank"]
"""How a question is answered: which of two (or yes/no), how much better, the best of several, or their order."""

CHANGES: dict[State, tuple[State, ...]] = {
    "running": ("paused", "closed"),
    "paused": ("running", "closed"),
    "closed": ("archived",),
    "archived": ("closed",),
}
"""What a study's state can become."""

WATCHED_SECONDS = 60.0
"""How long the insight of a study is kept up to date after somebody has looked at it."""

MOST_TO_LEARN = 3e7
"""Largest product of people and the cube of items from which a population is learned: about ten seconds."""

FORGOTTEN = "deleted-"
"""How pseudonyms of judges whose data were deleted begin; ids are shorter and drawn at random."""


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
class StudyOptions:
    """What a study is to find out and how.

    `policy` has a name and that policy's options; without a name it is that of the claim `assume`. By default
    comparisons end by the claim "winner", and only the first answer of a judge to a question counts.
    """

    title: str
    kind: Kind = "pairs"
    policy: dict[str, Any] = field(default_factory=dict)
    assume: Assumption | None = None
    repeats: Repeats | None = None
    lease: float = 120.0
    """Seconds a judge has for a question before it is skipped."""
    seed: int | None = None
    """Drawn at random unless given."""
    blind: bool = False
    """Whether names and labels are kept from judges."""
    show: int = 2
    """Items that a question shows."""
    answer: AnswerForm = "choose"
    instructions: str = ""
    """Markdown that judges can read beside the question."""
    prepared: tuple[str, ...] = ()
    """What was done to the items before the first question, in sentences (`surepick.io.items.Preparation`)."""
    population: tuple[str, ...] = ()
    """Ids of earlier studies on the same items, whose judges are the people to learn a population from."""


def problem_of(
    kind: Kind,
    candidates: Sequence[Item],
    *,
    show: int = 2,
    answer: AnswerForm = "choose",
    inputs: Sequence[systems.Input] = (),
) -> Problem:
    """The identification problem for these items, or systems on inputs, and this kind of question."""
    if inputs and (kind != "pairs" or answer in ("pick", "rank")):
        raise InvalidInput(
            "Systems are compared two at a time on an input; leave out kind and show, or ask for grades."
        )
    if answer in ("pick", "rank") and kind != "pairs":
        raise InvalidInput(f"A question that asks for a {answer} compares items, so kind must be pairs, got {kind!r}.")
    if show != 2 and answer not in ("pick", "rank"):
        raise InvalidInput(f"To show {show} items at once, answer must be pick or rank, got {answer!r}.")
    if answer == "grade" and kind != "pairs":
        raise InvalidInput(f"Grades compare two items, so kind must be pairs, got {kind!r}.")
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
    if inputs:
        weights = [one.weight for one in inputs]
        problem = Problem.from_systems(
            given,
            [one.name for one in inputs],
            names=None if bare else names,
            weights=None if None in weights else np.array(weights),
        )
    elif answer in ("pick", "rank"):
        form: Any = answer
        problem = Problem.from_sets(given, show=show, answer=form, names=None if bare else names)
    else:
        problem = build[kind](given, names=None if bare else names)
    problem.require_identifiable()
    return problem


def people_of(connection: sa.Connection, project: str, earlier: Sequence[str], names: Collection[str]) -> People:
    """What the judges of earlier studies of a project answered; refuses studies of other items than these."""
    people: People = {}
    for study in dict.fromkeys(earlier):
        row = get(connection, study)
        if row["project"] != project:  # in the words for one that does not exist
            raise NotFound(f"There is no study {study!r}.")
        if {item.name for item in items_of(connection, study)} != set(names):
            raise InvalidInput(
                f"The study {study!r} is about other items, and a population is about tastes for the same items; leave "
                "it out."
            )
        found = people_of_log(list(log.read(connection, study, row["phase"])), nobody="")
        people |= {f"{judge} of {study}": answers for judge, answers in found.items()}
    if len(people) * len(names) ** 3 > MOST_TO_LEARN:
        raise InvalidInput(
            f"Learning from {len(people):,} people about {len(names):,} items takes too long for a request; name fewer "
            "studies, or search by `surepick find --population`."
        )
    return people


def _policy(problem: Problem, wanted: StudyOptions, people: People) -> Any:
    options = dict(wanted.policy)
    if wanted.population:
        options["population"] = Population.learn(problem, people)
    name = options.pop("name", None)
    if name is not None and wanted.assume is not None:
        raise InvalidInput(f"assume chooses the policy, so it cannot go with the policy {name}; leave one out.")
    return policy_named(name or policy_for(problem, wanted.assume or default_assumption(problem)).name, **options)


def new_session(
    wanted: StudyOptions,
    candidates: Sequence[Item],
    outputs: systems.SystemOutputs | None = None,
    people: People | None = None,
) -> Session:
    """The session of a study to be created; may take seconds, so not inside a transaction.

    `people` are those of `people_of`. What is learned from them is in the session's log, and fixed by it.
    """
    if wanted.blind and outputs is None:
        _require_content(candidates)
    inputs = () if outputs is None else outputs.inputs
    problem = problem_of(wanted.kind, candidates, show=wanted.show, answer=wanted.answer, inputs=inputs)
    policy = _policy(problem, wanted, people or {})
    repeats = wanted.repeats or ("once" if policy.name in LADDER_POLICIES and compares(problem) else "independent")
    if repeats in ("spaced", "tested"):
        raise InvalidInput(
            f"repeats={repeats!r} is for one judge; a study with several judges takes once or independent."
        )
    require_size(problem, policy)
    seed = secrets.randbits(31) if wanted.seed is None else wanted.seed
    session = Session(problem, policy, repeats=repeats, seed=seed)
    if wanted.answer == "grade" and not session.takes_scores:
        raise InvalidInput(f"The policy {policy.name} takes no grades; leave out the policy, or ask for choices.")
    require_plannable(session)
    return session


def create(
    connection: sa.Connection,
    wanted: StudyOptions,
    candidates: Sequence[Item],
    pictures: Iterable[Image],
    now: float,
    outputs: systems.SystemOutputs | None = None,
    *,
    session: Session | None = None,
    project: str = DEFAULT_PROJECT,
) -> str:
    """Create a study, of items or of systems with their outputs; returns its id.

    `session` is that of `new_session`, where it was made before the transaction.
    """
    study = secrets.token_urlsafe(9)
    session = session or new_session(wanted, candidates, outputs)
    policy = dict(session.log[0]["policy"])
    learned = policy.pop("population", None)  # a matrix, which only the log needs to have
    settings = {
        "kind": wanted.kind,
        "policy": policy,
        "population": learned and {"studies": list(wanted.population), "source": learned["source"]},
        "repeats": session.repeats,
        "seed": session.seed,
        "lease": wanted.lease,
        "show": wanted.show,
        "answer": wanted.answer,
        "blind": wanted.blind,
        "instructions": wanted.instructions,
        "prepared": list(wanted.prepared),
    }
    connection.execute(
        sa.insert(studies).values(
            id=study,
            project=project,
            title=wanted.title,
            settings=json.dumps(settings),
            state="running",
            created=now,
            phase=0,
            head=len(session.log),
            evaluated_stages=0,
            answers=0,
            insight_head=0,
            insight_until=0.0,
            watched_until=0.0,
            forecast_until=0.0,
            notice="",
            planner_until=0.0,
            term=0,
        )
    )
    connection.execute(sa.insert(items), [_item_row(study, place, item) for place, item in enumerate(candidates)])
    _keep_pictures(connection, study, pictures)
    if outputs is not None:
        systems.keep(connection, study, [item.name for item in candidates], outputs)
    log.append(connection, study, 0, 0, session.log, now)
    return study


def _require_content(candidates: Sequence[Item]) -> None:
    """Where names are hidden, something else must be there to judge by."""
    for item in candidates:
        if not (item.text or item.image or item.colour):
            raise InvalidInput(
                f"The study is blind, and the item {item.name!r} has nothing to show but its name; give it a text, an "
                "image or a colour."
            )


def get(connection: sa.Connection, study: str) -> sa.RowMapping:
    """The row of a study."""
    row = connection.execute(sa.select(studies).where(studies.c.id == study)).mappings().first()
    if row is None:
        raise NotFound(f"There is no study {study!r}.")
    return row


def look_at(database: Database, study: str) -> None:
    """Somebody looks at the study: its insight is kept up to date for a while."""
    with database.reading() as connection:
        watched, now = get(connection, study)["watched_until"], database.now(connection)
    if watched < now + WATCHED_SECONDS / 2:  # dashboards ask every second; one write a while is enough
        with suppress(*UNAVAILABLE), database.writing(durable=False) as connection:
            looked = sa.update(studies).where(studies.c.id == study)
            connection.execute(looked.values(watched_until=now + WATCHED_SECONDS))


def titles(connection: sa.Connection, ids: Collection[str]) -> dict[str, str]:
    """The titles of studies by id; those that there are no more are left out."""
    wanted = sa.select(studies.c.id, studies.c.title).where(studies.c.id.in_(ids))
    return {row.id: row.title for row in connection.execute(wanted)}


def _locked(connection: sa.Connection, study: str) -> sa.RowMapping:
    """The row of a study, locked as the planner does: judges and planner see what is changed here all at once."""
    lock_studies(connection, [study], shared=False)
    wanted = sa.select(studies).where(studies.c.id == study).with_for_update(key_share=True)
    row = connection.execute(wanted).mappings().first()
    if row is None:
        raise NotFound(f"There is no study {study!r}.")
    return row


def every(connection: sa.Connection, *, archived: bool = False, project: str | None = None) -> list[sa.RowMapping]:
    """All studies of a project, or of all projects, the newest first."""
    wanted = sa.select(studies).order_by(studies.c.created.desc())
    if project is not None:
        wanted = wanted.where(studies.c.project == project)
    if not archived:
        wanted = wanted.where(studies.c.state != "archived")
    return list(connection.execute(wanted).mappings())


def open_studies(connection: sa.Connection, project: str) -> int:
    """How many studies of a project are not archived."""
    wanted = sa.select(sa.func.count()).where(studies.c.project == project, studies.c.state != "archived")
    return int(connection.execute(wanted).scalar_one())


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
    before: State = _locked(connection, study)["state"]
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
    """Add and remove items: a new session on the new items, whose evidence starts at zero. Returns the phase's number.

    The guarantee is about one set of items fixed in advance; choosing the items after seeing the evidence would break
    it. So what was asked before is kept and exported but not counted.
    """
    locked = _locked(connection, study)
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
    if settings.get("population"):
        raise Conflict("This study's population was learned for the items it has; begin a new study for other items.")
    inputs = systems.inputs_of(connection, study)
    if inputs and added:
        raise Conflict("A new system needs an output for every input; begin a new study with all outputs.")
    if settings["blind"]:
        _require_content(added)
    options = dict(settings["policy"])
    phase, head = locked["phase"] + 1, locked["head"]
    problem = problem_of(
        settings["kind"], list(present.values()), show=settings["show"], answer=settings["answer"], inputs=inputs
    )
    policy = policy_named(options.pop("name"), **options)
    require_size(problem, policy)
    session = Session(
        problem,
        policy,
        repeats=settings["repeats"],
        seed=settings["seed"] + phase,  # another random stream than in earlier phases
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
    # Questions that no judge has seen are withdrawn; those held by judges may still be answered, in their own phase.
    connection.execute(
        sa.delete(questions).where(
            questions.c.study == study, QUESTION_LEASE.never_claimed, questions.c.phase == locked["phase"]
        )
    )
    log.append(connection, study, phase, head, session.log, now)
    connection.execute(
        sa.update(studies)
        .where(studies.c.id == study)
        .values(
            phase=phase,
            head=head + len(session.log),
            evaluated_stages=0,
            answers=0,
            verdict=None,
            decided=None,
            certificate=None,
            insight=None,
            insight_head=0,
            insight_until=0.0,
            forecast=None,
            forecast_until=0.0,
            notice="",
            planner=None,
            term=studies.c.term + 1,  # a planner that has the old phase in memory is overtaken
        )
    )
    return int(phase)


def history(connection: sa.Connection, study: str, phase: int) -> list[dict[str, Any]]:
    """The verdict at every evaluation, oldest first."""
    wanted = (
        sa.select(evaluations)
        .where(evaluations.c.study == study, evaluations.c.phase == phase)
        .order_by(evaluations.c.seq)
    )
    return [{"at": row.at, "answers": row.answers, **json.loads(row.body)} for row in connection.execute(wanted)]


def add_judge(
    connection: sa.Connection, study: str, name: str, now: float, *, until: float = 0.0, visitor: bool = False
) -> str:
    """A new judge of a study, with a link that is valid until then; the id."""
    get(connection, study)
    judge = secrets.token_urlsafe(9)
    known = {"id": judge, "study": study, "name": name, "created": now, "until": until, "visitor": visitor}
    connection.execute(sa.insert(judges).values(**known, revoked=False))
    return judge


def judge_of(connection: sa.Connection, study: str, judge: str) -> sa.RowMapping:
    """The row of a judge."""
    wanted = sa.select(judges).where(judges.c.study == study, judges.c.id == judge)
    row = connection.execute(wanted).mappings().first()
    if row is None:
        raise NotFound(f"This study has no judge {judge!r}.")
    return row


def judges_of(connection: sa.Connection, study: str) -> list[dict[str, Any]]:
    """All judges of a study, with how many messages each sent."""
    count = (
        sa.select(sa.func.count())
        .where(messages.c.study == study, messages.c.judge == judges.c.id)
        .scalar_subquery()
        .label("messages")
    )
    wanted = sa.select(judges, count).where(judges.c.study == study).order_by(judges.c.created)
    return [dict(row) for row in connection.execute(wanted).mappings()]


def standing_answers(connection: sa.Connection, study: str, judge: str) -> int:
    """How many questions a judge has answered, ties included; undone and skipped ones do not count."""
    later = messages.alias()
    after = sa.exists().where(later.c.question == messages.c.question, later.c.turn > messages.c.turn)
    wanted = sa.select(sa.func.count()).where(
        messages.c.study == study, messages.c.judge == judge, messages.c.said.not_in(["undo", "skip"]), ~after
    )
    return int(connection.execute(wanted).scalar_one())


def revoke_judge(connection: sa.Connection, study: str, judge: str) -> None:
    """End the judge's link; messages so far stay, and questions the judge holds expire."""
    _locked(connection, study)
    judge_of(connection, study, judge)
    connection.execute(sa.update(judges).where(judges.c.id == judge).values(revoked=True))
    _expire_questions(connection, study, judge)


def is_forgotten(judge: str) -> bool:
    """Whether this is the pseudonym of a judge whose data were deleted."""
    return judge.startswith(FORGOTTEN)


def forget_judge(connection: sa.Connection, study: str, judge: str) -> int:
    """Replace a judge by a new pseudonym without a name, in every table; how many events were rewritten.

    The answers stay. Verdict and certificate count only what was answered, not by whom, so both remain valid.
    """
    _locked(connection, study)
    row = judge_of(connection, study, judge)
    _expire_questions(connection, study, judge)
    pseudonym = FORGOTTEN + secrets.token_urlsafe(9)
    connection.execute(
        sa.insert(judges).values(id=pseudonym, study=study, name="", created=row["created"], revoked=True)
    )
    connection.execute(sa.update(questions).where(questions.c.judge == judge).values(judge=pseudonym))
    connection.execute(sa.update(messages).where(messages.c.judge == judge).values(judge=pseudonym))
    connection.execute(sa.delete(comments).where(comments.c.judge == judge))  # their own words may tell who they are
    # The text is searched first, because most events have another judge; then the field itself is compared, because an
    # item may be called like the id.
    mentioned = sa.select(events.c.seq, events.c.body).where(
        events.c.study == study, events.c.body.contains(json.dumps(judge), autoescape=True)
    )
    rewritten = 0
    for seq, body in connection.execute(mentioned).all():
        event = json.loads(body)
        if event.get("judge") == judge:
            event["judge"] = pseudonym
            connection.execute(
                sa.update(events).where(events.c.study == study, events.c.seq == seq).values(body=json.dumps(event))
            )
            rewritten += 1
    connection.execute(sa.delete(judges).where(judges.c.id == judge))
    # The planner of the study has the old id in memory, and the insight for the dashboard names it: both are dropped.
    connection.execute(
        sa.update(studies)
        .where(studies.c.id == study)
        .values(planner=None, term=studies.c.term + 1, insight=None, insight_head=0, insight_until=0.0)
    )
    return rewritten


def _expire_questions(connection: sa.Connection, study: str, judge: str) -> None:
    held = (questions.c.study == study, questions.c.judge == judge, questions.c.answered.is_(False))
    QUESTION_LEASE.extend(connection, *held, until=0.0)


def _keep_pictures(connection: sa.Connection, study: str, pictures: Iterable[Image]) -> None:
    """Pictures are named by their content, so one that is there already is the same."""
    there = set(connection.scalars(sa.select(images.c.name).where(images.c.study == study)))
    for picture in pictures:
        if picture.name not in there:
            connection.execute(sa.insert(images).values(study=study, **asdict(picture)))


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
