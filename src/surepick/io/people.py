"""What earlier people answered, to learn a population from: logs of sessions, or votes that name their judges."""

import json
from collections.abc import Sequence
from pathlib import Path

from surepick.errors import InvalidInput
from surepick.identify import Population, Problem
from surepick.io.votes import read_votes
from surepick.session.journal import Event, answers_of, read_journal

People = dict[str, list[tuple[str, str, int]]]
"""For each person the comparisons: first item, second item, 1 where the first was preferred, else 0."""


def learn_population(problem: Problem, paths: Sequence[Path]) -> Population:
    """The population of the people in these files."""
    return Population.learn(problem, read_people(problem, paths))


def read_people(problem: Problem, paths: Sequence[Path]) -> People:
    """All decisive answers in these files to comparisons of the problem's items, by person.

    A file is a log of a session, whose answers without a judge are one person's, or a table of votes with a column
    judge. Ties and skips are left out, and so are items that the problem does not have.
    """
    people: People = {}
    known = {name for names in problem.aliases for name in names}
    for path in paths:
        log = _session_log(path)
        found = _of_votes(path, known) if log is None else people_of_log(log, nobody=str(path))
        for person, answers in found.items():
            usable = [(a, b, won) for a, b, won in answers if {a, b} <= known]
            people.setdefault(person, []).extend(usable)
    return people


def _session_log(path: Path) -> list[Event] | None:
    """The events of a session's log; None if the file is something else."""
    try:
        with path.open(encoding="utf-8") as file:
            head = json.loads(file.readline())
    except (OSError, ValueError):
        return None  # the reader of votes says what is wrong with it
    return read_journal(path) if isinstance(head, dict) and head.get("event") == "session" else None


def people_of_log(log: list[Event], *, nobody: str) -> People:
    """The decisive answers of a session by judge; those without one are of the person `nobody`."""
    answers = answers_of(Problem.from_json(log[0]["problem"]), log)
    people: People = {}
    for shown, said, judge in zip(answers.items.tolist(), answers.said.tolist(), answers.judges, strict=True):
        if said in (0, 1) and min(shown) >= 0:
            first, second = (answers.names[item] for item in shown)
            people.setdefault(judge or nobody, []).append((first, second, said))
    return people


def _of_votes(path: Path, known: set[str]) -> People:
    people: People = {}
    for vote in read_votes(path, known).votes:
        if vote.judge is None:
            raise InvalidInput(
                f"{path}, line {vote.line}, does not say who answered; a population is learned from people, so votes "
                "need a column judge."
            )
        if isinstance(vote.answer, int) and len(vote.shown) == 2:
            people.setdefault(vote.judge, []).append((vote.shown[0], vote.shown[1], vote.answer))
    return people
