"""Results show themselves in notebooks: as HTML that is escaped, as data frames, as figures."""

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import surepick as sp
from surepick.display import MOST_ROWS, View, html_of

HOSTILE = "<script>alert('x')</script>"


def searched() -> sp.Session:
    problem = sp.Problem.from_pairs({HOSTILE: [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.4, 0.5]})
    session = sp.Session(problem, seed=2)
    while questions := session.ask(1):
        session.tell(
            questions[0], HOSTILE if HOSTILE in questions[0].items else questions[0].items[0], judge="<b>Ann</b>"
        )
    return session


SESSION = searched()
INTERVALS = sp.interval_anytime(sp.Tally(np.eye(2), pulls=[40, 40], wins=[30, 10]), np.eye(2))
RESULTS: list[Any] = [
    SESSION,
    SESSION.problem,
    SESSION.verdict(),
    INTERVALS,
    sp.g_optimal(np.eye(3)),
    sp.identify.Forecast("winner", np.array([10, 20, 30]), np.zeros(3, dtype=bool), 3, 0),
    sp.rank_votes(sp.VoteCounts.of([("a", HOSTILE, "a"), ("b", "a", "b"), (HOSTILE, "b", "tie")])),
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_results_are_escaped_tables_and_data_frames(result):
    shown = result._repr_html_()
    assert "<table>" in shown
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert len(repr(result)) < 2_000
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == result.view().rows > 0
    assert isinstance(result.to_frame("polars"), polars.DataFrame)
    assert result.to_frame("polars").shape == frame.shape
    for name in frame.columns:
        assert html.escape(name.replace("_", " ")) in shown


@pytest.mark.parametrize("result", RESULTS[2:], ids=lambda result: type(result).__name__)
def test_results_are_drawn(result, tmp_path):
    result.plot().savefig(tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text()


def test_looking_at_a_session_evaluates_nothing():
    session = sp.Session(SESSION.problem, seed=2)
    question = session.ask(1)[0]
    session.tell(question, question.second)
    before = list(session.log)
    assert "answers: 1, open questions: 0; no verdict yet" in session._repr_html_()
    assert session.log == before
    assert session.answers[question.id] == 0
    assert session.undo() is question  # it was not evaluated by being looked at


def test_long_tables_are_cut_and_say_so():
    view = View("many", {"number": list(range(50))})
    shown = html_of(view)
    assert shown.count("<tr>") == MOST_ROWS + 1
    assert f"and {50 - MOST_ROWS} more rows" in shown


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(sp.InvalidInput, match="pandas or polars, got 'arrow'"):
        INTERVALS.to_frame("arrow")
    with pytest.raises(sp.InvalidInput, match="nothing to draw"):
        SESSION.problem.plot()


def test_an_answer_in_words_is_understood():
    problem = sp.Problem.from_pairs({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    session = sp.Session(problem, seed=5)
    for said, expected in (("b", "b"), ("a", "a"), ("tie", None), ("skip", None), ("first", 0)):
        question = session.ask(1)[0]
        session.tell(question, said)
        if isinstance(expected, str):  # a name goes before a word of the same spelling
            assert question.items[1 - session.answers[question.id]] == expected
        elif expected is not None:
            assert session.answers[question.id] == 1
        else:
            assert question.id not in session.answers
    with pytest.raises(sp.InvalidInput, match="The answer must be"):
        session.tell(session.ask(1)[0], "perhaps")


def test_a_session_has_a_report(tmp_path):
    sp.write_report(SESSION, tmp_path / "out" / "report.html")
    text = Path(tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert re.search(
        r"is the best of 3 items\. Wrong in at most 1 of 20 such searches, if ", re.sub("<[^>]*>", "", text)
    )
    assert "<script>" not in text
