import json

import numpy as np
import pandas as pd
import pytest

from surepick import InvalidInput, NotIdentifiable, Problem, Session
from surepick.identify import Winner


def test_pairs_measure_differences_and_know_their_items() -> None:
    items = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    problem = Problem.from_pairs(items)
    assert len(problem.measurements) == 3
    for row, (first, second) in zip(problem.measurements, problem.about, strict=True):
        np.testing.assert_array_equal(row, items[first] - items[second])


def test_items_carry_an_intercept_that_cancels_in_differences() -> None:
    problem = Problem.from_items([[3.0], [5.0]])
    np.testing.assert_array_equal(problem.measurements, [[1.0, 3.0], [1.0, 5.0]])
    np.testing.assert_array_equal(problem.items[0] - problem.items[1], [0.0, -2.0])
    assert problem.about.tolist() == [[0, -1], [1, -1]]


def test_pairs_and_items_mix_in_one_problem() -> None:
    problem = Problem.from_pairs_and_items([[3.0], [5.0]])
    assert problem.about.tolist() == [[0, 1], [0, -1], [1, -1]]
    np.testing.assert_array_equal(problem.measurements, [[0.0, -2.0], [1.0, 3.0], [1.0, 5.0]])
    assert problem.obstacle is None


def test_names_alone_have_one_coordinate_each() -> None:
    problem = Problem.from_pairs(["a", "b", "c"])
    np.testing.assert_array_equal(problem.items, np.eye(3))
    assert problem.span.rank == 2
    assert problem.obstacle is None


def test_a_data_frame_keeps_only_features() -> None:
    frame = pd.DataFrame({"item": ["p", "q"], "x": [1.0, 2.0], "text": ["one", "two"], "y": [0, 1]})
    problem = Problem.from_pairs(frame)
    assert problem.names == ("p", "q")
    np.testing.assert_array_equal(problem.items, [[1.0, 0.0], [2.0, 1.0]])


def test_equal_items_become_one_with_two_names() -> None:
    problem = Problem.from_pairs([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], names=["a", "b", "c"])
    assert problem.names == ("a", "b")
    assert problem.aliases == (("a", "c"), ("b",))
    assert len(problem.measurements) == 1  # a against c asks nothing, c against b is a against b
    assert problem.index("c") == 0


def test_a_place_has_a_coordinate_of_its_own() -> None:
    """Every pair either way round, 1 in the last coordinate; items have 0 there, so it never decides between them."""
    problem = Problem.from_pairs({"a": [2.0], "b": [5.0], "c": [2.0]}, position=True)
    assert problem.about.tolist() == [[0, 1], [1, 0]]
    np.testing.assert_array_equal(problem.measurements, [[-3.0, 1.0], [3.0, 1.0]])
    np.testing.assert_array_equal(problem.items, [[2.0, 0.0], [5.0, 0.0]])
    assert problem.obstacle is None
    again = Problem.from_json(json.loads(json.dumps(problem.to_json())))
    np.testing.assert_array_equal(again.measurements, problem.measurements)
    assert again.position


def test_items_that_no_question_tells_apart_are_named() -> None:
    problem = Problem([[1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0], [0.0, 3.0]], names=["a", "b", "c"])
    assert problem.obstacle is not None
    assert "'a' and 'c'" in problem.obstacle
    with pytest.raises(NotIdentifiable, match="cannot be told apart"):
        problem.require_identifiable()


def test_a_difference_in_the_span_is_enough() -> None:
    problem = Problem([[1.0, -1.0]], [[1.0, 0.0], [0.0, 1.0]])
    assert problem.obstacle is None
    assert problem.rows.shape == (1, 1)


def test_sampled_pairs_are_distinct_and_connect_everything() -> None:
    problem = Problem.from_pairs([f"item {n}" for n in range(60)], pairs=70, seed=3)
    assert len(np.unique(problem.about, axis=0)) == 70
    assert problem.span.rank == 59
    again = Problem.from_pairs([f"item {n}" for n in range(60)], pairs=70, seed=3)
    np.testing.assert_array_equal(problem.about, again.about)


def test_many_items_are_sampled_without_being_asked() -> None:
    problem = Problem.from_pairs(np.random.default_rng(0).normal(size=(300, 3)))
    assert len(problem.measurements) == 5000


@pytest.mark.parametrize(
    "problem",
    [
        Problem.from_pairs([[1.0, 0.5], [0.0, 1.0], [0.3, 0.1]], names=["a", "b", "c"]),
        Problem.from_pairs_and_items([[1.0], [2.0]]),
        Problem([[1.0, 0.0], [0.1, 0.2]], [[1.0, 0.0], [0.0, 1.0]]),
    ],
)
def test_json_round_trip(problem: Problem) -> None:
    again = Problem.from_json(json.loads(json.dumps(problem.to_json())))
    np.testing.assert_array_equal(again.measurements, problem.measurements)
    np.testing.assert_array_equal(again.items, problem.items)
    np.testing.assert_array_equal(again.about, problem.about)
    assert again.aliases == problem.aliases


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Problem.from_pairs([[1.0], [2.0]], names=["a"]), "1 names for 2 items"),
        (lambda: Problem.from_pairs([[1.0], [2.0]], names=["a", "a"]), "'a' more than once"),
        (lambda: Problem.from_pairs({"a": [1.0], "b": [2.0]}, names=["a", "b"]), "already the keys"),
        (lambda: Problem.from_pairs(["a", "b"], names=["c", "d"]), "already names"),
        (lambda: Problem.from_pairs([[1.0], [2.0]], pairs=[(0, 2)]), r"\[0, 2\] at row 0"),
        (lambda: Problem.from_pairs([[1.0], [2.0]], pairs=0), "at least 1, got 0"),
        (lambda: Problem.from_pairs([[1.0], [2.0]], pairs=[[0.5, 1.0]]), "two item numbers"),
        (lambda: Problem([[1.0, 2.0]], [[1.0], [2.0]]), "1 columns"),
        (lambda: Problem([[0.0]], [[1.0], [2.0]]), "All measurement vectors are zero"),
        (lambda: Problem.from_pairs([[1.0], [np.nan]]), "nan"),
        (lambda: Problem.from_json({"items": [[1.0]]}), "not a problem"),
        (lambda: Problem.from_pairs(["a", "b"]).index("z"), "no item named 'z'"),
    ],
)
def test_bad_input_gets_a_sentence(make: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        make()
    assert str(caught.value).endswith(".")


@pytest.fixture
def few_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds for more than 200 items holds for more than 4 here."""
    monkeypatch.setattr("surepick.identify.problem.ALL_PAIRS", 6)
    monkeypatch.setattr("surepick.identify.problem.SAMPLED_PAIRS", 9)


@pytest.mark.usefixtures("few_listed")
@pytest.mark.parametrize("own", [True, False])
def test_every_pair_of_very_many_items_can_be_asked(rng: np.random.Generator, own: bool) -> None:
    problem = Problem.from_pairs([f"i{number}" for number in range(8)] if own else rng.normal(size=(8, 2)))
    assert (len(problem.measurements), problem.listed, len(problem.about)) == (9, 9, 28)
    assert {tuple(sorted(pair)) for pair in problem.about.tolist()} == {(i, j) for j in range(8) for i in range(j)}
    np.testing.assert_array_equal(problem.vectors(np.arange(9)), problem.measurements)
    for i, j in problem.about.tolist():
        row = problem.comparison[i, j]
        assert row == problem.comparison[j, i]
        np.testing.assert_array_equal(problem.vectors(row), problem.items[i] - problem.items[j])
    written = json.loads(json.dumps(problem.to_json()))
    assert len(written["about"]) == 9
    assert (written["items"] == "identity") is own
    again = Problem.from_json(written)
    np.testing.assert_array_equal(again.about, problem.about)
    np.testing.assert_array_equal(again.items, problem.items)
    assert problem.obstacle is None


@pytest.mark.usefixtures("few_listed")
@pytest.mark.parametrize("words", [{"pairs": 5}, {"pairs": [(0, 1), (1, 2)]}, {"position": True}])
def test_pairs_that_were_chosen_are_the_only_ones(words: dict[str, object]) -> None:
    problem = Problem.from_pairs(np.eye(6), **words)  # type: ignore[arg-type]
    assert problem.listed == len(problem.about)
    assert "every_pair" not in problem.to_json()


@pytest.mark.usefixtures("few_listed")
def test_winner_compares_pairs_that_are_not_listed_and_its_log_replays() -> None:
    session = Session(Problem.from_pairs([f"i{number}" for number in range(12)]), Winner(), seed=3)
    while questions := session.ask(1):
        shown = (questions[0].first, questions[0].second)
        session.tell(questions[0].id, int(max(shown, key=lambda name: int(str(name)[1:])) == shown[0]))
    verdict = session.verdict()
    assert (verdict.status, verdict.best) == ("certain", "i11")
    assert any(question.measurement >= session.problem.listed for question in session.questions.values())
    again = Session.replay(session.to_lines())
    assert again.verdict().to_json() == verdict.to_json()
    np.testing.assert_array_equal(again.questions[5].vector, session.questions[5].vector)


def test_a_thousand_items_are_asked_about_without_their_matrix_or_its_rank() -> None:
    problem = Problem.from_pairs([f"i{number}" for number in range(1000)])
    session = Session(problem, Winner())
    assert len(session.ask(1)) == 1
    assert not {"measurements", "span", "rows"} & set(vars(problem))
    assert len(session.to_lines()[0]) < 200_000


def test_a_winners_rivals_are_those_in_play_by_score() -> None:
    session = Session(Problem.from_pairs([f"i{number}" for number in range(10)]), Winner(), seed=1)
    for _ in range(40):
        (question,) = session.ask(1)
        session.tell(question.id, int(int(str(question.first)[1:]) > int(str(question.second)[1:])))
    verdict = session.verdict()
    scores = session.progress()[0].evaluated.scores.scores()
    closest = [(rival.name not in verdict.surviving, -scores[int(rival.name[1:])]) for rival in verdict.rivals]
    assert 1 < len(verdict.surviving) < 10
    assert closest == sorted(closest)
