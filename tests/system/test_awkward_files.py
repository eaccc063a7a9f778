"""Files as people have them: every way to read one gives the same answer or the same refusal.

Items are read by find, ask, rank, interval, Python and the service; votes by find, ask (of earlier people), rank,
interval and Python. The service reads no votes: its judges vote there.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import surepick as sp
from in_process_service import ADMIN, InProcessService
from surepick import InvalidInput
from surepick.cli import app
from surepick.io.items import Preparation
from surepick.io.votes import read_votes

PLAIN = "item,size,price\na,1,0\nb,0,1\nc,1,1\n"

ITEMS: list[tuple[str, str | bytes, str]] = [
    ("plain", PLAIN, "3 items; 2 columns are features, centred and scaled to standard deviation one: size, price"),
    ("byte-order mark", b"\xef\xbb\xbf" + PLAIN.encode(), "3 items; size, price"),
    ("Windows line ends", PLAIN.replace("\n", "\r\n"), "3 items; size, price"),
    ("old Macintosh line ends", PLAIN.replace("\n", "\r"), "3 items; size, price"),
    ("no newline at the end", PLAIN.rstrip(), "3 items; size, price"),
    ("blank lines", PLAIN.replace("\n", "\n\n"), "3 items; size, price"),
    ("blanks around cells", "item , size\n a ,  1\nb, 2 \n", "2 items; 1 column is a feature"),
    ("quoted line breaks", 'item,text\na,"one\ntwo"\nb,"x, y"\n', "2 items; No features"),
    ("semicolons", "item;size\na;1.5\nb;2\n", "2 items; size"),
    ("tabs", "item\tsize\na\t1.5\nb\t2\n", "2 items; size"),
    ("decimal commas", "item;size\na;1,5\nb;2\n", "2 items; Column 'size' has decimal commas: '1,5' was read as 1.5"),
    ("quoted decimal commas", 'item,size\na,"1,5"\nb,"2,25"\n', "2 items; decimal commas"),
    ("thousands", 'item,size\na,"1,500"\nb,"2,000"\n', "refused: whose comma may separate decimals or thousands"),
    ("both commas and points", 'item,size\na,"1,5"\nb,2.5\n', "refused: line 2: column 'size' has the number '1,5'"),
    ("a word among numbers", "item,size\na,1\nb,big\nc,3\n", "refused: line 3: item 'b' has 'big' for the number"),
    (
        "two bad rows of four",
        "item,size\na,1\nb,\nc,3\nd,nan\ne,4\nf,5\n",
        "refused: 2 rows that cannot be used (lines 3",
    ),
    ("an infinite number", "item,size\na,1\nb,inf\nc,2\n", "refused: item 'b' has 'inf'"),
    ("too few cells", "item,size\na,1\nb\nc,2\n", "refused: line 3: 1 cells where the first line names 2 columns"),
    ("too many cells", "item,size\na,1\nb,1,2\nc,2\n", "refused: line 3: 3 cells"),
    ("an item without a name", "item,size\na,1\n,2\nc,2\n", "refused: line 3: the item has no name"),
    ("a name twice", "item,size\na,1\nb,2\na,3\n", "refused: line 4: the item 'a' was already on line 2"),
    ("one item", "item,size\na,1\n", "refused: has one item, 'a'"),
    ("no rows", "item,size\n", "refused: has column names but no rows"),
    ("an empty file", "", "refused: is empty"),
    ("no column item", "name,size\na,1\nb,2\n", "refused: has no column 'item'; it has name, size"),
    ("a column twice", "item,size,size\na,1,2\nb,2,1\n", "refused: names the column 'size' twice"),
    ("not UTF-8", "item,text\na,caf\xe9\nb,th\xe9\n".encode("latin-1"), "refused: not a CSV file in UTF-8"),
    ("equal features", "item,size\na,1\nb,1\nc,2\n", "3 items; one item to every question: 'a', 'b'"),
    ("nothing differs", "item,size\na,1\nb,1\n", "refused: No feature of"),
    ("text in an unknown column", "item,note\na,x1\nb,x2\nc,x3\n", "3 items; Column 'note' was left out: 3 different"),
    ("categories", "item,maker\na,n\nb,s\nc,n\nd,s\n", "4 items; Column 'maker' became 2 categories: 'n', 's'"),
    ("the row numbers of pandas", ",item,size\n0,a,1\n1,b,2\n", "2 items; The column without a name was left out"),
    ("numbers as names", "item,size\na,1\n2,4\nb,2\n3.0,5\nc,0\n", "5 items; size"),
    ("names alone", "item\na\nb\nc\n", "3 items; No features"),
    ("a capital in the heading", "Item,size\na,1\nb,2\n", "refused: has no column 'item'; it has Item, size"),
    ("UTF-16", PLAIN.encode("utf-16"), "refused: not a CSV file in UTF-8"),
    ("scientific numbers", "item,size\na,1e3\nb,2.5E-1\nc,-4\n", "3 items; size"),
    ("numbers whose squares overflow", "item,size\na,1e308\nb,-1e308\nc,0\n", "refused: item 'a' has '1e308'"),
    ("percent signs", "item,size\na,10%\nb,20%\nc,35%\n", "3 items; Column 'size' was left out: 3 different words"),
    ("other scripts", "item,size\n🍎,1\n猫,2\na,3\nb,5\nc,2\n", "5 items; size"),
    ("a constant column", "item,size,one\na,1,1\nb,2,1\n", "2 items; size"),
]
"""What the file is, its content, and a part of what is said of it: of a refusal, or of the preparation."""

VOTES: list[tuple[str, str, str, str]] = [
    ("plain", "csv", "item_a,item_b,winner\na,b,a\nb,c,b\n", "2 votes"),
    ("Arena's columns", "csv", "model_a,model_b,winner\na,b,model_a\nb,c,tie\n", "2 votes"),
    ("semicolons", "csv", "item_a;item_b;winner\na;b;a\nb;c;c\n", "2 votes"),
    ("names as winners", "csv", "item_a,item_b,winner\na,c,c\nc,b,c\n", "2 votes"),
    ("numbers as pandas writes them", "csv", "item_a,item_b,winner\na,b,1.0\nb,c,0.0\n", "2 votes"),
    ("a judge and other columns", "csv", "ts,item_a,item_b,winner,judge\n1,a,b,a,Ann\n2,b,c,a,\n", "2 votes"),
    ("capitals", "csv", "item_a,item_b,winner\na,b,A\nb,c,Tie\n", "2 votes"),
    ("a skip", "csv", "item_a,item_b,winner\na,b,a\nb,c,skip\n", "1 votes"),
    (
        "an unknown word",
        "csv",
        "item_a,item_b,winner\na,b,a\nb,c,left\n",
        "refused: line 3: the answer must be a, b, tie",
    ),
    ("no winner", "csv", "item_a,item_b,winner\na,b,\nb,c,a\n", "refused: line 2: there is neither a winner"),
    ("an item against itself", "csv", "item_a,item_b,winner\na,a,a\nb,c,a\n", "refused: 'a' is compared with itself"),
    ("too few cells", "csv", "item_a,item_b,winner\na,b\nb,c,a\n", "refused: line 2: 2 cells where the first line"),
    ("an item that is not listed", "csv", "item_a,item_b,winner\na,b,a\na,z,a\n", "1 votes; there is no item 'z'"),
    ("only other items", "csv", "item_a,item_b,winner\nx,y,a\n", "refused: no vote that can be used"),
    ("no columns of votes", "csv", "left,right\na,b\n", "refused:"),
    ("JSON lines", "jsonl", '{"item_a": "a", "item_b": "b", "winner": "a"}\n\n', "1 votes"),
    (
        "a line that is no JSON",
        "jsonl",
        '{"item_a": "a", "item_b": "b", "winner": "a"}\n{"item',
        "refused: line 2: not a",
    ),
    ("a JSON array", "json", '[{"item_a": "a", "item_b": "b", "winner": 1}]', "1 votes"),
]
"""What the file is, the end of its name, its content, and how many votes count with what else is said."""

SERVICE_REMEDY = " Correct the file."
REMEDY = r" Correct (it|them), or leave (it|them) out with --drop-bad-rows \(in Python drop_bad_rows=True\)\."


def fields_or_refusal(folder: Path, *words: object, said: str = "") -> dict | str:
    """The JSON that a command prints, or its refusal."""
    result = CliRunner().invoke(app, [*map(str, words), "--json"], input=said)
    if isinstance(result.exception, InvalidInput):
        return same_words(folder, str(result.exception))
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)


def same_words(folder: Path, message: str) -> str:
    """A message without the folder of the test and without the remedy, which depends on the interface."""
    return re.sub(REMEDY, "", message.removesuffix(SERVICE_REMEDY)).replace(f"{folder}/", "")


def in_python(folder: Path, read) -> object:
    try:
        return read()
    except InvalidInput as error:
        return same_words(folder, str(error))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessService]:
    """A service whose owner may create as many studies as there are files."""
    made = InProcessService(f"sqlite:///{tmp_path_factory.mktemp('service')}/studies.db", studies=len(ITEMS))
    yield made
    made.close()


def uploaded(service: InProcessService, content: bytes) -> dict | str:
    """What the service says of an uploaded table: how it was prepared, or its refusal."""
    reply = service.client.post(
        "/studies/upload",
        files={"items": ("items.csv", content)},
        data={"settings": json.dumps({"title": "awkward"})},
        headers=ADMIN,
    )
    said = reply.json()
    assert reply.status_code == (201 if "prepare" in said else 422), reply.text
    return said["prepare"] if "prepare" in said else str(said["detail"]).removesuffix(SERVICE_REMEDY)


@pytest.mark.parametrize(("content", "expected"), [case[1:] for case in ITEMS], ids=[case[0] for case in ITEMS])
def test_items_are_the_same_everywhere(tmp_path, service, content, expected):
    file = tmp_path / "items.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "votes.csv").write_text("item_a,item_b,winner\na,c,a\na,b,a\n")
    (tmp_path / "pairs.csv").write_text("item_a,item_b\na,b\n")
    votes, at = tmp_path / "votes.csv", ("--at", tmp_path / "pairs.csv")

    table = in_python(tmp_path, lambda: sp.read_items(file))
    prepared = table if isinstance(table, str) else table.prepared(table.problem())
    find = fields_or_refusal(tmp_path, "find", file, "--simulate", "--budget", 1)
    ask = fields_or_refusal(tmp_path, "ask", file, "--state", tmp_path / "log.jsonl", said="q\n")
    rank = fields_or_refusal(tmp_path, "rank", votes, "--items", file)
    interval = fields_or_refusal(tmp_path, "interval", votes, "--items", file, *at)
    served = uploaded(service, file.read_bytes())
    if expected.startswith("refused: "):
        assert expected.removeprefix("refused: ") in prepared
        assert find == ask == rank == interval == served == prepared
        return
    count, sentence = re.fullmatch(r"(\d+) items; (.*)", expected).groups()
    assert isinstance(prepared, Preparation)
    assert sentence in "\n".join(prepared.sentences)
    assert find["prepare"] == ask["prepare"] == served == prepared.to_json()
    assert int(count) == prepared.items == len(rank["items"])
    assert interval["prepare"]["items"] == prepared.items


@pytest.mark.parametrize(
    ("ending", "content", "expected"), [case[1:] for case in VOTES], ids=[case[0] for case in VOTES]
)
def test_votes_are_the_same_everywhere(tmp_path, ending, content, expected):
    items, file = tmp_path / "items.csv", tmp_path / f"votes.{ending}"
    items.write_text("item\na\nb\nc\n")
    file.write_text(content)
    read = in_python(tmp_path, lambda: read_votes(file, ("a", "b", "c")))
    counted = in_python(tmp_path, lambda: sp.count_votes(file, ("a", "b", "c")))
    find = fields_or_refusal(tmp_path, "find", items, "--answers", file, "--order", "file")
    rank = fields_or_refusal(tmp_path, "rank", file, "--items", items)
    interval = fields_or_refusal(tmp_path, "interval", file, "--items", items, "--at", items)
    earlier = ("--assume", "population", "--population", file, "--state", tmp_path / "log.jsonl")
    ask = fields_or_refusal(tmp_path, "ask", items, *earlier, said="q\n")
    if expected.startswith("refused:"):
        fragment = expected.removeprefix("refused:").strip()
        for said in (read, counted, find, ask, rank, interval):
            assert isinstance(said, str)
            assert fragment in said
        if "line" in fragment:  # a bad row is named by the same sentence everywhere
            assert read == counted == find == ask == rank == interval
        return
    assert "does not say who answered" in ask  # what is readable, but does not name its judges, is no population
    number, _, sentence = expected.partition(" votes")
    asked = [vote for vote in read.votes if vote.answer is not None]
    assert int(number) == len(asked) == counted.total == find["questions"] == rank["votes"]
    assert sum(isinstance(vote.answer, int) for vote in asked) == sum(row["wins"] for row in rank["items"])
    if sentence:
        for said in (read.unused, counted.unused, find["left_out"], rank["left_out"], interval["left_out"]):
            assert sentence.removeprefix("; ") in "\n".join(said)


def test_there_are_forty():
    assert len(ITEMS) >= 40
    assert len(VOTES) >= 18


def test_bad_rows_are_left_out_on_request_and_that_is_said_first(tmp_path):
    (tmp_path / "items.csv").write_text("item,size\na,1\nb,\nc,3\nd,nan\ne,2\n")
    words = ["find", str(tmp_path / "items.csv"), "--simulate", "--budget", "1", "--drop-bad-rows"]
    result = CliRunner().invoke(app, words)
    first, second = result.stderr.splitlines()[:2]
    assert first.startswith("Rows left out: 2; 3 items remain. The first: ")
    assert second == "1 column is a feature, centred and scaled to standard deviation one: size."
