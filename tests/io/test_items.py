"""A table of items becomes features; every step and every row left out is on record."""

from pathlib import Path

import numpy as np
import pandas
import polars
import pytest

from surepick import InvalidInput
from surepick.io.items import cielab, parse_colour, read_items
from surepick.judges import World

COLOURS = Path(__file__).parents[2] / "examples" / "colours.csv"

MIXED = """item,label,price,maker,note,weight
pen,A pen,1.5,north,x1,3

ink,Ink,4,south,x2,3
nib,,oops,north,x3,3
cap,"A cap
of two lines",2,south,x4,3
,nameless,2,south,x5,3
box,Box,inf,south,x6,3
bag,Bag,3,east,x7,3
rag,Rag,3
"""


@pytest.fixture
def mixed(tmp_path):
    (tmp_path / "items.csv").write_text(MIXED)
    return tmp_path / "items.csv"


def test_numbers_categories_and_what_is_left_out(mixed):
    items = read_items(mixed, drop_bad_rows=True)
    assert items.names == ("pen", "ink", "cap", "bag")
    assert items.feature_names == ("price", "maker=east", "maker=north", "maker=south")
    assert np.allclose(items.features.mean(axis=0), 0)
    assert np.allclose(items.features.std(axis=0), 1)
    lines = [int(sentence.split("line ")[1].split(":")[0]) for sentence in items.left_out]
    assert sorted(lines) == [5, 8, 9, 11]
    assert any("'note' was left out" in step for step in items.steps)
    assert any("'weight' was left out: it is the same" in step for step in items.steps)
    assert items.label("cap") == "A cap\nof two lines"
    assert items.display("pen") == {"label": "A pen"}


def test_results_can_be_told_in_the_units_of_the_table(mixed):
    items = read_items(mixed, drop_bad_rows=True)
    theta = np.array([0.3, -1.0, 0.5, 2.0])
    raw = np.array([[1.5, 0, 1, 0], [4, 0, 0, 1], [2, 0, 0, 1], [3, 1, 0, 0]])
    told = raw @ (items.per_unit @ theta)
    assert np.allclose(told - told[0], (items.features - items.features[0]) @ theta)
    reduced = read_items(mixed, drop_bad_rows=True, pca=2)
    assert "2 principal components" in reduced.steps[-1]
    told = raw @ (reduced.per_unit @ theta[:2])
    assert np.allclose(told - told[0], (reduced.features - reduced.features[0]) @ theta[:2])


def test_all_components_keep_all_distances(mixed):
    whole, reduced = (
        read_items(mixed, drop_bad_rows=True).features,
        read_items(mixed, drop_bad_rows=True, pca=3).features,
    )
    apart = [np.linalg.norm(each[:, None] - each[None], axis=2) for each in (whole, reduced)]
    assert np.allclose(*apart)
    with pytest.raises(InvalidInput, match=r"from 1 to 3 here \(4 items, 4 features\), got 9"):
        read_items(mixed, drop_bad_rows=True, pca=9)


def test_without_features_every_item_has_its_coordinate(tmp_path):
    (tmp_path / "names.csv").write_text("item,text\na,first\nb,second\n")
    items = read_items(tmp_path / "names.csv")
    assert np.array_equal(items.features, np.eye(2))
    assert "Bradley" in items.steps[0]
    assert np.array_equal(read_items(COLOURS, features=False).features, np.eye(60))


def test_colours_have_features_of_their_own():
    items = read_items(COLOURS)
    assert items.features.shape == (60, 9)
    assert items.colour("red") == "#ff0000"
    longest = np.linalg.norm(items.features[:, None] - items.features[None], axis=2).max()
    assert longest == pytest.approx(1)
    # A taste that is a quadratic bump around one colour is linear in these features, and that colour is the best.
    lab = cielab(np.array([parse_colour(items.colour(name)) for name in items.names]))
    scaled = (lab - lab.mean(axis=0)) / lab.std(axis=0)
    ideal = scaled[items.names.index("plum")]
    theta = np.concatenate([2 * ideal, -np.ones(3), np.zeros(3)])
    assert World("bump", items.problem(), theta).best == "plum"


def test_a_colour_that_cannot_be_read_is_left_out_with_its_line(tmp_path):
    (tmp_path / "some.csv").write_text("item,colour\na,#f00\nb,blue\nc,#0000ff\n")
    items = read_items(tmp_path / "some.csv", drop_bad_rows=True)
    assert items.names == ("a", "c")
    assert "line 3: item 'b' has the colour 'blue'" in items.left_out[0]


@pytest.mark.parametrize("library", [pandas, polars], ids=["pandas", "polars"])
def test_data_frames_and_parquet_give_the_same_as_csv(mixed, library, tmp_path):
    columns = {
        "item": ["pen", "ink", "nib", "cap", "bag"],
        "price": [1.5, 4.0, None, 2.0, 3.0],
        "maker": ["north", "south", "north", "south", "east"],
    }
    frame = library.DataFrame(columns)
    items = read_items(frame, drop_bad_rows=True)
    assert np.allclose(items.features, read_items(mixed, drop_bad_rows=True).features)
    assert items.left_out == ("data frame, line 3: item 'nib' has '' for the number 'price'.",)
    path = tmp_path / "items.parquet"
    (frame.to_parquet if library is pandas else frame.write_parquet)(path)
    with pytest.raises(InvalidInput, match=r"line 3: item 'nib' has '' for the number 'price'"):
        read_items(path)
    assert np.array_equal(read_items(path, drop_bad_rows=True).features, items.features)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name,x\na,1\n", "no column 'item'"),
        ("item,x\na,1\na,2\n", "line 3: the item 'a' was already on line 2"),
        (
            "item,x\na,nan\nb,inf\n",
            r"2 rows that cannot be used \(lines 2, 3\); the first is line 2: item 'a' has 'nan'",
        ),
        ("item,x\na,1\n", "has one item, 'a'"),
        ("item,x\na,1\nb,1\n", "they cannot be distinguished"),
    ],
)
def test_tables_that_are_no_items_are_refused(tmp_path, text, sentence):
    (tmp_path / "items.csv").write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        read_items(tmp_path / "items.csv")
    with pytest.raises(InvalidInput, match="got dict"):
        read_items({"item": ["a"]})


def test_questions_of_all_kinds(mixed):
    items = read_items(mixed, drop_bad_rows=True)
    assert len(items.problem("pairs").measurements) == 6
    assert items.problem("items").measurements.shape == (4, 5)
    assert len(items.problem("both").measurements) == 10
