"""Tally: validated, addable, and stored without loss or pickle."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surepick import InvalidInput, Tally

ENTRIES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 1e-300, 1e100, -1e99, 1 / 3, 5e-324])


@st.composite
def tallies(draw, dimension=2, largest=2**40) -> Tally:
    rows = draw(st.integers(0, 6))
    vectors = draw(hnp.arrays(np.float64, (rows, dimension), elements=ENTRIES))
    largest_entry = np.abs(vectors).max(initial=0.0)
    if 0 < largest_entry < 1e-100:
        vectors[0, 0] = 1.0
    pulls = draw(hnp.arrays(np.int64, rows, elements=st.integers(0, largest)))
    wins = [draw(st.integers(0, int(count))) for count in pulls]
    return Tally(vectors, pulls, np.array(wins, dtype=np.int64))


def as_counts(tally: Tally) -> dict[tuple[float, ...], tuple[int, int]]:
    """Answers by vector: what a tally means, whatever the order of its rows."""
    counts: dict[tuple[float, ...], tuple[int, int]] = {}
    for vector, pulls, wins in zip(tally.vectors, tally.pulls, tally.wins, strict=True):
        before = counts.get(tuple(vector), (0, 0))
        counts[tuple(vector)] = (before[0] + int(pulls), before[1] + int(wins))
    return counts


@given(tallies(), tallies(), tallies())
def test_addition_is_commutative_associative_and_loses_nothing(a, b, c):
    assert as_counts(a + b) == as_counts(b + a)
    assert as_counts((a + b) + c) == as_counts(a + (b + c))
    assert (a + b).total == a.total + b.total


@given(tallies())
def test_merging_gives_every_vector_one_row_and_is_idempotent(tally):
    merged = tally.merged()
    assert len(merged) == len(as_counts(tally))
    assert as_counts(merged) == as_counts(tally)
    assert merged.merged() == merged


def test_both_zeros_are_one_vector():
    both = Tally([[0.0, 1.0]], [3], [1]) + Tally([[-0.0, 1.0], [1.0, 0.0]], [4, 1], [2, 0])
    assert as_counts(both) == {(0.0, 1.0): (7, 3), (1.0, 0.0): (1, 0)}
    assert len(both) == 2


def test_merging_keeps_the_order_of_first_appearance():
    assert Tally([[2.0], [1.0], [2.0]], [1, 1, 1], [1, 0, 0]).merged() == Tally([[2.0], [1.0]], [2, 1], [1, 0])


def test_sums_beyond_what_a_float_counts_exactly_are_refused():
    most = Tally([[1.0], [1.0], [2.0]], [2**53, 1, 1], [0, 0, 0])
    with pytest.raises(InvalidInput, match=str(2**53 + 1)):
        most.merged()


def test_adding_something_else_is_refused():
    with pytest.raises(InvalidInput, match="2 and 1 columns"):
        Tally([[1.0, 2.0]], [1], [1]) + Tally([[1.0]], [1], [1])
    with pytest.raises(TypeError):
        Tally([[1.0]], [1], [1]) + 3


@given(tallies())
def test_json_and_npz_give_back_every_bit(tally):
    for again in (Tally.from_json(tally.to_json()), Tally.load(io.BytesIO(saved(tally)))):
        assert again.vectors.tobytes() == tally.vectors.tobytes()
        assert again.vectors.shape == tally.vectors.shape
        assert again == tally


@pytest.mark.parametrize("name", ["answers.npz", "answers", "answers.dat"])
def test_a_file_is_read_back_under_the_name_it_was_saved_under(tmp_path, name):
    tally = Tally([[1.0, 2.0]], [3], [1])
    tally.save(tmp_path / name)
    tally.save(str(tmp_path / name))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert Tally.load(tmp_path / name) == tally


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[1, 2]", "3", '"vectors"', "{}", '{"vectors": [[1]], "pulls": [1]}', None, 3.5, b"\xff\xfe"],
)
def test_damaged_json_is_refused_with_a_sentence(text):
    with pytest.raises(InvalidInput, match="fields vectors, pulls and wins"):
        Tally.from_json(text)


@pytest.mark.parametrize(
    "fields",
    [
        {"vectors": [[1.0]], "pulls": [1], "wins": [2]},
        {"vectors": [[float("nan")]], "pulls": [1], "wins": [1]},
        {"vectors": [[1.0]], "pulls": [-1], "wins": [0]},
        {"vectors": [["1"]], "pulls": [1], "wins": [0]},
        {"vectors": {"a": 1}, "pulls": [1], "wins": [0]},
        {"vectors": [[1.0]], "pulls": "1", "wins": [0]},
    ],
)
def test_json_is_checked_like_any_input(fields):
    with pytest.raises(InvalidInput):
        Tally.from_json(json.dumps(fields))


def stored(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


class Trap:
    """Unpickling this sets a mark."""

    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


GOOD = Tally(np.random.default_rng(0).normal(size=(50, 3)), [5] * 50, [2] * 50)


def saved(tally: Tally) -> bytes:
    file = io.BytesIO()
    tally.save(file)
    return file.getvalue()


def damaged_files() -> dict[str, bytes]:
    whole = saved(GOOD)
    single = io.BytesIO()
    np.save(single, np.eye(2))
    other_zip = io.BytesIO()
    with zipfile.ZipFile(other_zip, "w") as archive:
        archive.writestr("vectors.npy", b"not an array")
    trap = np.array([[Trap()]], dtype=object)
    return {
        "empty": b"",
        "text": b"hello",
        "a single array": single.getvalue(),
        "another zip": other_zip.getvalue(),
        "a field missing": stored(vectors=np.eye(2), pulls=[1, 1]),
        "strings": stored(vectors=np.array([["1"]]), pulls=[1], wins=[1]),
        "a pickle": pickle.dumps({"vectors": trap}),
        "a pickle inside": stored(vectors=trap, pulls=[1], wins=[1]),
        "wins above pulls": stored(vectors=np.eye(1), pulls=[1], wins=[2]),
        "truncated": whole[: len(whole) // 2],
    }


@pytest.mark.parametrize("name", damaged_files())
def test_damaged_files_are_refused_with_a_sentence_and_pickles_never_opened(name, tmp_path):
    path = tmp_path / "answers.npz"
    path.write_bytes(damaged_files()[name])
    for file in (path, io.BytesIO(path.read_bytes())):
        with pytest.raises(InvalidInput) as caught:
            Tally.load(file)
        assert str(caught.value).endswith(".")
    assert not Trap.sprung


def test_changed_bytes_are_noticed_or_did_not_matter():
    whole = saved(GOOD)
    refused = 0
    for at in range(0, len(whole), 7):
        for damage in (b"\xa5\x5a\x00", b"\x00", b"\xff\xff\xff\xff"):
            file = io.BytesIO(whole[:at] + damage + whole[at + len(damage) :])
            try:
                assert Tally.load(file) == GOOD
            except InvalidInput:
                refused += 1
    assert refused > 100


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tally.load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (([[1.0]], [1], [2]), "2 wins in 1 pulls at row 0"),
        (([[1.0], [2.0]], [1], [1]), "2 counts"),
        (([[np.nan]], [1], [1]), "nan"),
        (([1.0], [1], [1]), "[vector]"),
        (([[1.0]], [-2], [0]), "-2"),
        (([[1.0]], [1.5], [0]), "1.5"),
    ],
)
def test_what_is_not_a_tally_is_refused(arguments, part):
    with pytest.raises(InvalidInput) as caught:
        Tally(*arguments)
    assert part in str(caught.value)


def test_answers_are_ones_and_zeros():
    assert Tally.from_answers([[1.0], [1.0]], [True, False]).merged() == Tally([[1.0]], [2], [1])
    with pytest.raises(InvalidInput, match="0 or 1, got 2"):
        Tally.from_answers([[1.0]], [2])


def test_asked_leaves_out_what_was_never_asked_and_a_tally_has_no_hash():
    tally = Tally([[1.0], [2.0]], [0, 3], [0, 1])
    assert tally.asked() == Tally([[2.0]], [3], [1])
    assert tally != Tally([[1.0]], [1], [1])
    assert tally != "tally"
    with pytest.raises(TypeError):
        hash(tally)
