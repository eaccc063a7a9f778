"""The study that `surepick serve --items` begins with: from files on this machine to a link for a team.

The same command again finds the study it made before, so a restart neither loses nor doubles anything.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from surepick.errors import InvalidInput
from surepick.io.items import Preparation
from surepick.report.sentences import fewer_judges, judges_wanted
from surepick.service.models import ItemIn, SharedLinkIn, StudySettings
from surepick.service.settings import Settings
from surepick.service.uploads import items_from_json, items_from_table, study_options
from surepick.session.judges_needed import judges_needed
from surepick.store import Database, invitations, log, studies
from surepick.store.invitations import SharedLink
from surepick.store.studies import Image, Item

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


@dataclass(frozen=True)
class FirstStudy:
    """Files and words from which to make a study; `items` is a table, `images` a folder of pictures, or both."""

    items: Path | None
    images: Path | None
    question: str
    assume: Literal["winner", "features"] | None = None
    """The claim that ends the study, by default winner."""
    delta: float = 0.05

    @property
    def title(self) -> str:
        """What judges read above the items."""
        return self.question or "Which one is better?"

    def begin(self, database: Database, settings: Settings, now: float) -> tuple[str, SharedLink]:
        """Make the study with a shared link, or find the one that this made before; its id and link."""
        found, pictures, prepared = self._read(settings)
        asked_for = StudySettings(title=self.title, assume=self.assume, delta=self.delta)
        wanted = replace(study_options(asked_for), prepared=prepared.sentences)
        session = studies.new_session(wanted, found)
        until = now + 86_400 * settings.link_days
        with database.writing() as connection:
            for row in _going_on(connection):
                link = invitations.shared_link(row)
                same = (
                    row["title"] == wanted.title
                    and json.loads(row["settings"])["policy"] == session.log[0]["policy"]
                    and studies.items_of(connection, row["id"]) == found
                )
                if same and link is not None and link.usable(now):
                    return row["id"], link
            study = studies.create(connection, wanted, found, pictures, now, session=session)
            most = SharedLinkIn().most
            return study, invitations.open_shared_link(connection, study, most=most, until=until, phrase="")

    def _read(self, settings: Settings) -> tuple[list[Item], list[Image], Preparation]:
        files = {} if self.images is None else _pictures(self.images)
        if self.items is None:
            rows = [ItemIn(name=Path(name).stem, image=name) for name in files]
            prepared = Preparation(len(rows))
        else:
            rows, prepared = items_from_table(self.items.name, _content(self.items), settings)
        by_item = {Path(name).stem: name for name in files}
        # A row without a picture gets the one that is called like the item.
        rows = [row if row.image else row.model_copy(update={"image": by_item.get(row.name, "")}) for row in rows]
        needed = {row.image for row in rows}
        pictures = {name: _content(path) for name, path in files.items() if name in needed}
        return *items_from_json(rows, settings, pictures), prepared


def about(database: Database, study: str) -> list[str]:
    """What whoever starts a study should know before inviting anybody: what was done to the items, whom it takes."""
    with database.reading() as connection:
        row = studies.get(connection, study)
        session = log.replay(connection, study, row["phase"])
    prepared, needed = json.loads(row["settings"])["prepared"], judges_needed(session)
    if needed is None:
        return [*prepared]
    answering = {event["judge"] for event in session.log if event["event"] == "answer"}
    delta, epsilon = session.policy.delta, json.loads(row["settings"])["policy"]["epsilon"]
    wanted = judges_wanted(needed, len(answering), delta=delta, epsilon=epsilon, count=len(session.problem.items))
    return [*prepared, wanted, *filter(None, [fewer_judges(needed, epsilon)])]


def _going_on(connection: sa.Connection) -> Iterator[sa.RowMapping]:
    """Studies that are not over, the newest first."""
    return (row for row in studies.every(connection) if row["state"] in ("running", "paused") and not row["decided"])


def _pictures(folder: Path) -> dict[str, Path]:
    """The pictures in a folder by name, not those in folders within it."""
    try:
        found = {path.name: path for path in sorted(folder.iterdir()) if path.suffix.lower() in PICTURES}
    except OSError as error:
        raise InvalidInput(f"The folder {str(folder)!r} cannot be read ({error.strerror}); check the name.") from None
    if not found:
        raise InvalidInput(f"The folder {str(folder)!r} has no pictures; they end in {', '.join(PICTURES)}.")
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}); check the name.") from None
