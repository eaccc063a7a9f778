"""Outputs of systems for inputs, from every form they come in, and what is said of those that are missing."""

import json

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.io.items import ItemTable
from surepick.io.systems import SystemTable, read_systems

LONG = "system,input,output\nold,q1,a\nold,q2,b\nnew,q1,c\nnew,q2,d\n"
OUTPUTS = {("old", "q1"): "a", ("old", "q2"): "b", ("new", "q1"): "c", ("new", "q2"): "d"}


def written(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def in_long_form(folder):
    return written(folder, "outputs.csv", LONG)


def in_wide_form(folder):
    return written(folder, "wide.csv", "input,old,new\nq1,a,c\nq2,b,d\n")


def in_json_lines(folder):
    rows = [{"system": system, "input": name, "output": text} for (system, name), text in OUTPUTS.items()]
    return written(folder, "outputs.jsonl", "\n".join(map(json.dumps, rows)) + "\n")


def in_a_folder(folder):
    for (system, name), text in OUTPUTS.items():
        written(folder, f"outputs/{system}/{name}.txt", text + "\n")
    return folder / "outputs"


def in_parquet_files(folder):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (folder / "data").mkdir()
    for name in ("q1", "q2"):
        columns = {"input": [name], "old": [OUTPUTS["old", name]], "new": [OUTPUTS["new", name]]}
        parquet.write_table(pyarrow.table(columns), folder / "data" / f"part-{name}.parquet")
    return folder


@pytest.mark.parametrize("form", [in_long_form, in_wide_form, in_json_lines, in_a_folder, in_parquet_files])
def test_every_form_says_the_same(form, tmp_path):
    table = read_systems(form(tmp_path))
    assert (set(table.names), table.inputs) == ({"old", "new"}, ("q1", "q2"))
    assert dict(table.outputs) == OUTPUTS
    assert not table.left_out
    assert table.problem().inputs == ("q1", "q2")


def test_inputs_that_lack_an_output_are_reported_and_never_asked_about(tmp_path):
    path = written(tmp_path, "outputs.csv", LONG + "old,q3,e\nnew,q3,\nold,q4,f\nold,q1,z\n,q1,y\n")
    with pytest.raises(InvalidInput, match=r"2 rows that cannot be used \(lines 9, 10\)"):
        read_systems(path)
    table = read_systems(path, drop_bad_rows=True)
    assert table.inputs == table.problem().inputs == ("q1", "q2")
    assert table.output("old", "q1") == "a"
    said = "\n".join(table.left_out)
    for sentence in (
        "line 7: 'new' has an empty output for the input 'q3'",
        "'new' has no output for the input 'q4'",
        "line 9: a second output of 'old' for the input 'q1'",
        "line 10: the system has no name",
    ):
        assert sentence in said
    assert "on 2 inputs; left out because an output is missing: 2" in table.steps[-1]


def test_many_missing_outputs_are_counted_and_not_listed(tmp_path):
    table = read_systems(written(tmp_path, "o.csv", LONG + "".join(f"old,more{i},x\n" for i in range(100))))
    assert len(table.left_out) == 21
    assert "80 further inputs" in table.left_out[-1]


def test_an_input_without_a_text_is_shown_by_its_name():
    columns = {"input": ["2 + 2", "3 + 3"], "old": ["4", "6"], "new": ["5", "7"]}
    table = read_systems(columns, {"input": ["2 + 2", "3 + 3"], "text": ["Add two and two.", ""]})
    assert [table.text(name) for name in table.inputs] == ["Add two and two.", "3 + 3"]


def test_weights_and_strata_say_how_often_an_input_is_drawn():
    columns = {"input": ["a", "b", "c"], "old": ["1", "2", "3"], "new": ["4", "5", "6"]}
    weighted = read_systems(columns, {"input": ["a", "b", "c"], "weight": ["1", "1", "2"]})
    assert weighted.problem().input_weights == pytest.approx([0.25, 0.25, 0.5])
    even = read_systems(columns, {"input": ["a", "b", "c"], "topic": ["x", "x", "y"]}, strata="topic")
    assert even.problem().input_weights == pytest.approx([0.25, 0.25, 0.5])
    both = {"input": ["a", "b", "c"], "topic": ["x", "x", "y"], "weight": ["1", "3", "9"]}
    assert read_systems(columns, both, strata="topic").weights == pytest.approx([0.125, 0.375, 0.5])
    assert read_systems(columns, {"input": ["a", "b", "c"]}).problem().input_weights is None


def test_systems_may_have_features(tmp_path):
    known = ItemTable(("new", "old"), np.array([[1.0, 0.0], [0.0, 2.0]]), ("x", "y"), {"label": ("New!", "Old")})
    table = read_systems(in_long_form(tmp_path), systems=known)
    assert isinstance(table, SystemTable)
    assert table.label("new") == "New!"
    assert np.array_equal(table.problem().items, known.features)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("system,output\na,b\n", "no column 'input'"),
        ("system,input,output\nold,q1,a\n", "fewer than two systems: old"),
        ("system,input,output\nold,q1,a\nold,q2,a\nnew,q3,b\n", "'new' has the fewest outputs, 1 of 3"),
    ],
)
def test_outputs_that_cannot_be_compared_are_refused(content, why, tmp_path):
    with pytest.raises(InvalidInput, match=why):
        read_systems(written(tmp_path, "outputs.csv", content))


@pytest.mark.parametrize(
    ("inputs", "strata", "why"),
    [
        ({"input": ["q1", "q1"]}, None, "'q1' again"),
        ({"input": ["q1", ""]}, None, "a name of its own"),
        ({"text": ["x"]}, None, "no column 'input'"),
        ({"input": ["q1", "q2"], "weight": ["1", "none"]}, None, "weight of the input 'q2'"),
        ({"input": ["q1", "q2"], "weight": ["1", "0"]}, None, "weight of the input 'q2'"),
        ({"input": ["q1", "q2"], "text": ["x", "y"]}, "topic", "no column 'topic'; they have text"),
    ],
)
def test_inputs_that_cannot_be_read_are_refused(inputs, strata, why, tmp_path):
    with pytest.raises(InvalidInput, match=why):
        read_systems(in_long_form(tmp_path), inputs, strata=strata)


def test_other_sources_and_kinds_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="has no outputs"):
        read_systems(tmp_path)
    with pytest.raises(InvalidInput, match="got int"):
        read_systems(3)
    with pytest.raises(InvalidInput, match="not a JSON record"):
        read_systems(written(tmp_path, "list.jsonl", "[1, 2]\n"))
    with pytest.raises(InvalidInput, match=r"torn.jsonl has a row that cannot be used: line 2: "):
        read_systems(written(tmp_path, "torn.jsonl", '{"input": "a", "old": "x"}\n{"inp'))
    with pytest.raises(InvalidInput, match="leave out --kind"):
        read_systems(in_long_form(tmp_path)).problem("items")
    names = ("old", "new", "other")
    with pytest.raises(InvalidInput, match="'other' is only in the items"):
        read_systems(in_long_form(tmp_path), systems=ItemTable(names, np.eye(3), names))


def test_a_problem_of_systems_refuses_what_would_make_it_unclear():
    with pytest.raises(InvalidInput, match="more than once"):
        Problem.from_systems(["a", "b"], ["x", "x"])
    with pytest.raises(InvalidInput, match="at least one input"):
        Problem.from_systems(["a", "b"], [])
    with pytest.raises(InvalidInput, match="positive, got 0 at place 1"):
        Problem.from_systems(["a", "b"], ["x", "y"], weights=[1, 0])
    with pytest.raises(InvalidInput, match="same features"):
        Problem.from_systems({"a": [1.0], "b": [1.0], "c": [2.0]}, ["x"])
