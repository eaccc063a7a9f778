import numpy as np
import pytest

from surepick.answer import SKIP, TIE, code_of, read_answer, word_of
from surepick.errors import InvalidInput

PAIR = ("red", "blue")


@pytest.mark.parametrize(
    "said", ["a", "A ", "first", "model_a", 1, 1.0, "1.0", "1", True, "True", np.bool_(True), "red"]
)
def test_the_first_item_wins(said):
    assert read_answer(said, PAIR) == 1


@pytest.mark.parametrize("said", ["b", "second", "model_b", 0, 0.0, "0.0", False, "false", np.float64(0), "blue"])
def test_the_second_item_wins(said):
    assert read_answer(said, PAIR) == 0


@pytest.mark.parametrize("said", ["tie", "Tie", "tie (bothbad)", "both bad"])
def test_nobody_wins(said):
    assert read_answer(said, PAIR) == "tie"


def test_yes_and_no_are_about_one_item_and_ties_about_two():
    assert [read_answer(said) for said in ("yes", "No", 1.0, "skip", None)] == [1, 0, 1, None, None]
    for said, shown in (("yes", PAIR), ("tie", ()), ("tie", ("red",)), ("a", ("red",))):
        with pytest.raises(InvalidInput, match="got"):
            read_answer(said, shown)


@pytest.mark.parametrize("said", ["", "2", 2, 1.5, -0.1, "green", float("nan"), [], {}, "RED"])
def test_anything_else_is_refused_with_its_value(said):
    with pytest.raises(InvalidInput, match="The answer must be a, b, tie, skip"):
        read_answer(said, PAIR)


def test_a_word_goes_before_a_name():
    assert read_answer("a", ("b", "a")) == 1


@pytest.mark.parametrize("answer", [1, 0, None])
@pytest.mark.parametrize("pair", [True, False])
def test_words_are_read_back(answer, pair):
    assert read_answer(word_of(answer, pair=pair), PAIR if pair else ()) == answer


def test_codes():
    assert [code_of(answer) for answer in (1, 0, "tie", None)] == [1, 0, TIE, SKIP]
