"""Earlier people, from logs of sessions and files of votes."""

import pytest

from surepick.errors import InvalidInput
from surepick.identify import Population, Problem
from surepick.io.people import learn_population, read_people
from surepick.session import Session

PROBLEM = Problem.from_pairs({"a": [0.0, 1.0], "b": [1.0, 0.0], "c": [1.0, 1.0], "d": [2.0, 0.5]})


def log_of(path, likes, judge=None):
    """The log of somebody who prefers items that come earlier in `likes`."""
    session = Session(PROBLEM, seed=3, path=path)
    for _ in range(8):
        question = session.ask(1)[0]
        session.tell(question.id, int(likes.index(question.first) < likes.index(question.second)), judge=judge)
    tied = session.ask(1)[0]
    session.tie(tied.id)
    return path


def test_logs_and_votes_are_read_by_person(tmp_path):
    logs = [log_of(tmp_path / "one.jsonl", "abcd"), log_of(tmp_path / "two.jsonl", "dcba", judge="bob")]
    votes = tmp_path / "votes.csv"
    votes.write_text("item_a,item_b,winner,judge\na,b,a,ann\nb,c,c,bob\na,c,tie,ann\na,zebra,a,ann\n")
    people = read_people(PROBLEM, [*logs, votes])
    assert set(people) == {str(logs[0]), "bob", "ann"}
    assert people["ann"] == [("a", "b", 1)]
    assert len(people["bob"]) == 9
    assert all(("abcd".index(a) < "abcd".index(b)) == bool(won) for a, b, won in people[str(logs[0])])


def test_votes_must_say_who_answered(tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("item_a,item_b,winner\na,b,a\n")
    with pytest.raises(InvalidInput, match="a column judge"):
        read_people(PROBLEM, [votes])


def test_a_population_is_learned_from_logs(tmp_path):
    logs = [log_of(tmp_path / f"{number}.jsonl", "abcd") for number in range(4)]
    assert isinstance(learn_population(PROBLEM, logs), Population)
