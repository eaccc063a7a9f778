"""The widget that asks in a notebook."""

import base64

import pytest

import surepick as sp
from surepick.notebook import AskWidget

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def items(tmp_path):
    (tmp_path / "dot.png").write_bytes(PIXEL)
    (tmp_path / "items.csv").write_text(
        "item,text,image,colour\n"
        f"plain,Hello,{tmp_path / 'dot.png'},#336699\n"
        "hostile,<img src=x onerror=alert(1)>,javascript:alert(1),\n"
        "long,word " + "word" * 60 + ",,\n"
    )
    return sp.read_items(tmp_path / "items.csv", features=False)


def pressed(widget: AskWidget, text: str) -> None:
    next(button for button in widget._buttons.children if button.description == text).click()


def test_buttons_answer_until_the_verdict(items):
    session = sp.Session(items.problem(), seed=1)
    widget = AskWidget(session, items)
    while (question := widget.question) is not None:
        pressed(widget, "A" if question.first == "plain" or question.second == "long" else "B")
    assert session.verdict().best == "plain"
    assert "plain is the best" in widget.html
    assert widget._buttons.children == ()
    with pytest.raises(sp.InvalidInput, match="no open question"):
        widget.answer("plain")


def test_the_second_click_of_a_double_click_answers_nothing(items):
    widget = AskWidget(sp.Session(items.problem(), seed=1), items)
    tie = next(button for button in widget._buttons.children if button.description == "Tie")
    tie.click()
    second = widget.question
    tie.click()
    assert widget.question is second
    assert [event["event"] for event in widget.session.log].count("tie") == 1


def test_the_last_answer_can_be_undone_and_every_click_is_filed(items):
    session = sp.Session(items.problem(), seed=1)
    widget = AskWidget(session, items)
    first = widget.question
    pressed(widget, "A")
    assert session.answers[first.id] == 1
    second = widget.question
    pressed(widget, "Undo")
    assert widget.question is first
    assert session.answered == 0
    pressed(widget, "B")
    assert widget.question is second
    pressed(widget, "Tie")
    pressed(widget, "Skip")
    assert session.answers[first.id] == 0
    assert [event["event"] for event in session.log if event["event"] in ("tie", "skip")] == ["tie", "skip"]
    again = AskWidget(session, items)  # another widget goes on where this one is
    assert again.question.id == widget.question.id


def test_texts_are_escaped_and_files_become_part_of_the_page(items):
    session = sp.Session(items.problem(), seed=1)
    widget = AskWidget(session, items, question="Which <is> better?")
    seen = ""
    for _ in range(6):
        seen += widget.html
        pressed(widget, "A")
    assert "Which &lt;is&gt; better?" in seen
    assert "<img src=x" not in seen
    assert "javascript:" not in seen
    assert base64.b64encode(PIXEL).decode() in seen
    assert "background:#336699" in seen
    blind = AskWidget(sp.Session(items.problem(), seed=1), items, blind=True)
    assert "<strong>A</strong>" in blind.html


def test_yes_and_no_and_systems():
    widget = AskWidget(sp.Session(sp.Problem.from_items({"a": [0.0], "b": [1.0]}), seed=1))
    assert [button.description for button in widget._buttons.children] == ["No", "Yes", "Skip"]
    pressed(widget, "Yes")
    table = sp.read_systems({"input": ["2 + 2", "3 + 3"], "short": ["4", "6"], "long": ["It is 4.", "It is 6."]})
    widget = AskWidget(sp.Session(table.problem(), seed=1), table)
    assert table.text(widget.question.input) in widget.html
    assert table.output("long", widget.question.input) in widget.html
    assert "short" not in widget.html
