"""Tables are read as they are, and what cannot be used is refused with its line."""

from pathlib import Path

import numpy as np
import pytest

from surepick import InvalidInput
from surepick.io.tables import read_table


def write(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_columns_and_numbers(tmp_path):
    table = read_table(write(tmp_path, "\ufeffa, b ,name\n1,2.5,x\n-3,1e3,y\n"))
    assert table.text("name") == ["x", "y"]
    assert np.array_equal(table.numbers(["a", "b"]), [[1, 2.5], [-3, 1000]])


def test_parquet_gives_the_same_as_csv(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": [1, -3], "name": ["x", None]}), tmp_path / "table.parquet")
    table = read_table(tmp_path / "table.parquet")
    assert table.text("name") == ["x", ""]
    assert np.array_equal(table.numbers(["a"]), [[1], [-3]])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", "'a' twice"),
        ("a,b\n1,2\n3\n", "line 3: 1 cells where the first line names 2"),
    ],
)
def test_malformed_files_are_refused(tmp_path, text, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        read_table(write(tmp_path, text))


@pytest.mark.parametrize("cell", ["x", "", "nan", "inf", "1,500", "1,234.5"])
def test_a_cell_that_is_no_number_is_refused_with_its_line(tmp_path, cell):
    table = read_table(write(tmp_path, f'a\n1\n2\n"{cell}"\n'))
    with pytest.raises(InvalidInput, match="line 4: column 'a'"):
        table.numbers(["a"])


def test_decimal_commas_and_other_separators_are_understood(tmp_path):
    table = read_table(write(tmp_path, "a;b\n1,5;x, y\n-2,25;\n3;z\n"))
    assert table.numbers(["a"]).tolist() == [[1.5], [-2.25], [3.0]]
    assert table.text("b") == ["x, y", "", "z"]
    assert read_table(write(tmp_path, 'a\t"b,c,d"\n1\t2\n')).numbers(["b,c,d"]).tolist() == [[2.0]]


def test_missing_files_folders_columns_and_binary_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no file"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(InvalidInput, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(InvalidInput, match="no column 'b'; it has a"):
        read_table(write(tmp_path, "a\n1\n")).text("b")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InvalidInput, match="UTF-8"):
        read_table(tmp_path / "binary.csv")
    (tmp_path / "broken.parquet").write_bytes(b"not parquet")
    with pytest.raises(InvalidInput, match="not a Parquet file"):
        read_table(tmp_path / "broken.parquet")
