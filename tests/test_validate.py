"""Every check returns a clean value or raises one sentence that shows what was received."""

import numpy as np
import pytest

from surepick import InvalidInput, validate

NOT_NUMBERS = ["0.05", b"0.05", "abc", None, True, np.bool_(True), 1j, [0.05], np.array([0.05]), 10**400, {}, object()]


def refusal(check, *arguments, **options) -> str:
    with pytest.raises(InvalidInput) as caught:
        check(*arguments, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 300
    return message


@pytest.mark.parametrize(
    "check", [validate.real, validate.positive, validate.nonnegative, validate.probability, validate.whole]
)
@pytest.mark.parametrize("value", [*NOT_NUMBERS, np.nan, np.inf, -np.inf], ids=lambda value: str(value)[:12])
def test_a_number_is_a_finite_number_and_nothing_else(check, value):
    assert repr(value)[:40] in refusal(check, "delta", value)


def test_whole_numbers_stay_exact_and_are_not_below_the_least():
    assert validate.whole("seed", 2**60 + 1) == 2**60 + 1
    assert type(validate.whole("n", 3.0)) is int
    assert validate.whole("seed", 0, least=0) == 0
    assert refusal(validate.whole, "n", 0) == "n must be a whole number of at least 1, got 0."
    assert refusal(validate.whole, "n", 1.5) == "n must be a whole number of at least 1, got 1.5."


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.array(0.5)])
def test_numbers_of_every_library_are_numbers(value):
    assert validate.probability("delta", value) == 0.5


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (validate.probability, 0.0),
        (validate.probability, 1),
        (validate.probability, -0.1),
        (validate.positive, 0),
        (validate.positive, -3.5),
        (validate.nonnegative, -1e-300),
    ],
)
def test_numbers_out_of_range_are_shown(check, value):
    assert repr(value) in refusal(check, "delta", value)


@pytest.mark.parametrize("value", ["fixxed", None, ["fixed"], np.array(["fixed", "x"]), 3])
def test_words_come_from_a_list(value):
    assert "'adaptive', 'fixed'" in refusal(validate.one_of, "data", value, ("adaptive", "fixed"))


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ([["1", "2"]], "numbers only"),
        (np.array([["1"]], dtype=object), "numbers only"),
        (np.array([[1 + 2j]]), "numbers only"),
        ([[None]], "None"),
        (None, "None"),
        ("abc", "'abc'"),
        ([[1, 2], [3]], "[[1, 2], [3]]"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "numbers only"),
        (np.ma.array([[1.0, 2.0]], mask=[[False, True]]), "numbers only"),
        (1.0, "0 dimension(s)"),
        ([1.0, 2.0], "[vector]"),
        ([[[1.0]]], "3 dimension(s)"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros((3, 0)), "no columns"),
        ([[1.0, np.nan], [np.inf, 1.0]], "nan at row 0, column 1 (and 1 more)"),
        ([[1.0], [-np.inf]], "-inf at row 1, column 0"),
        ([[1e101]], "1e+101"),
        ([[1e-101, 0.0]], "1e-101"),
        ([[10**400]], "numbers only"),
    ],
)
def test_matrices_hold_numbers_of_a_usable_size(value, part):
    assert part in refusal(validate.matrix, "vectors", value)


def test_wrong_widths_are_named():
    assert "must have 3 columns like the data, got 2" in refusal(validate.matrix, "queries", [[1, 2]], columns=3)
    assert "list of 3 numbers, got shape (2,)" in refusal(validate.vector, "theta", [1, 2], length=3)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.uint64, np.bool_, object, np.longdouble])
def test_every_kind_of_number_becomes_float64(kind):
    array = validate.matrix("vectors", np.array([[1, 0], [0, 1]], dtype=kind))
    assert array.dtype == np.float64
    assert array.flags.c_contiguous
    np.testing.assert_array_equal(array, np.eye(2))


def test_float64_data_are_not_copied():
    data = np.eye(3)
    assert validate.matrix("vectors", data) is data


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ([1.5], "1.5 at row 0"),
        ([-1], "-1 at row 0"),
        ([np.nan], "nan"),
        ([np.inf], "inf"),
        ([2**53 + 1], str(2**53 + 1)),
        ([2**70], "object"),
        (["1"], "<U1"),
        ([None], "object"),
        ([1j], "complex"),
        (np.array([1], dtype="timedelta64[s]"), "timedelta64"),
        ([[1]], "(1, 1)"),
        ([1, 2], "(2,)"),
        (1, "()"),
        ([[1], [2, 3]], "list of 1 counts"),
    ],
)
def test_counts_are_whole_numbers(value, part):
    assert part in refusal(validate.counts, "pulls", value, length=1)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, np.uint64, np.bool_])
def test_counts_of_every_kind_become_int64(kind):
    counts = validate.counts("pulls", np.array([1, 0, 1], dtype=kind), length=3)
    assert counts.dtype == np.int64
    assert counts.tolist() == [1, 0, 1]
    assert validate.counts("pulls", [2**53], length=1).tolist() == [2**53]
