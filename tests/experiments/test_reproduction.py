"""The page docs/reproduction.md says what the tables next to it say."""

import sys
from contextlib import suppress
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import make_reproduction  # noqa: E402
from reproduction_claims import Claim, Rows  # noqa: E402
from reproduction_parts import PARTS  # noqa: E402

CLAIMS = [(part.study, number) for part in PARTS for number in range(len(part.claims))]


def claim_and_rows(study: str, number: int) -> tuple[Claim, Rows]:
    part = next(part for part in PARTS if part.study == study)
    tables = make_reproduction.read_tables()[study]
    return part.claims[number], Rows([row for rows in tables.values() for row in rows.rows])


def test_the_page_is_what_its_tables_say() -> None:
    written = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert written == make_reproduction.page(make_reproduction.read_tables())
    assert "Not run yet" not in written


@pytest.mark.parametrize(("study", "number"), CLAIMS)
def test_a_claim_follows_from_its_rows(study: str, number: int) -> None:
    """It is in the page, names columns that its rows have, and does not survive other numbers in them."""
    claim, rows = claim_and_rows(study, number)
    sentence = claim.sentence(rows)
    assert sentence in (DOCS / "reproduction.md").read_text(encoding="utf-8")
    columns = {name.replace("_", " ") for row in rows.rows for name in row}
    assert any(name in claim.source for name in columns)
    changed = Rows(
        [
            {name: _changed(name, value, place) for name, value in row.items()}
            for place, row in enumerate(rows.rows, start=3)
        ]
    )
    with suppress(ValueError, KeyError):  # what must be true of the numbers is not, or a row that is named is gone
        assert claim.sentence(changed) != sentence


def _changed(name: str, value: object, place: int) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "9" if name == "answers_at_last" else value
    if isinstance(value, int | float) and name not in ("d", "height", "horizon", "example", "norm", "items", "delta"):
        return type(value)(value * (place + len(name)) + place)  # by column, too: ratios within a row change as well
    return 1.0 if value is None else value


def test_a_claim_that_its_rows_contradict_is_refused() -> None:
    claim = Claim(
        "a asks {:.0f} times more.", "questions: a over b", lambda rows: rows.column("questions"), lambda x: x > 1
    )
    assert claim.sentence(Rows([{"questions": 3.0}])) == "a asks 3 times more. *(questions: a over b)*"
    with pytest.raises(ValueError, match="contradict"):
        claim.sentence(Rows([{"questions": 0.5}]))


def test_every_figure_of_the_page_exists() -> None:
    for line in (DOCS / "reproduction.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("!["):
            assert (DOCS / line[line.index("](") + 2 : -1]).exists(), line


def cells(title: str) -> list[dict[str, str]]:
    """The rows of the table of identify.md that follows this text, by the names of its columns."""
    lines = (DOCS / "identify.md").read_text(encoding="utf-8").split(title)[1].split("\n| ", 1)[1].split("\n")
    head, _, *body = [f"| {lines[0]}", *lines[1:]]
    split = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in (head, *body[: body.index("")])]
    return [dict(zip(split[0], row, strict=True)) for row in split[1:]]


def short(value: float) -> str:
    return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


@pytest.mark.parametrize(("study", "column"), [("soare", "d"), ("zappos", "column")])
def test_the_tables_of_identify_are_those_of_the_rows(study: str, column: str) -> None:
    rows = Rows([row for table in make_reproduction.read_tables()[study].values() for row in table.rows])
    compared = 0
    for line in cells(f"`surepick study {study}`"):
        where = {column: int(line["d"]) if study == "soare" else line["column"]}
        for policy, shown in line.items():
            told = {} if study == "soare" else {"kappa_0": "nothing" if policy == "anytime" else "true"}
            found = rows.where(policy=policy, **told, **where).rows
            if found:
                (cell,) = found
                number, _, ratio = shown.partition(" (")
                assert number == short(cell["questions"]), (line, policy)
                assert not ratio or ratio == f"{cell['printed_over_this']:.0f})", (line, policy)
                compared += 1
    assert compared >= 28


def test_the_tables_of_contextual_are_those_of_the_rows() -> None:
    """Regret with its standard error for every policy, the trap, the coverage, and what is lost in Phi."""
    text = (DOCS / "contextual.md").read_text(encoding="utf-8")
    ball, trap, coverage, phi = make_reproduction.read_tables()["contextual"].values()
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    named = 0
    for row in ball.rows:
        short = row["policy"].removeprefix("logistic-ucb")  # `-2` stands beside `logistic-ucb-1`
        shown = [line for line in lines if f"`{row['policy']}`" in line or f"`{short}`" in line]
        digits = 1 if row["policy"] == "likelihood-ratio-ucb" else 0
        said = f"{row['regret']:.{digits}f} ± {row['standard_error']:.{digits}f}"
        assert any(said in line for line in shown), (row["policy"], said)
        assert row["runs"] == 20
        named += 1
    assert named == 17
    for row in phi.where(instance="ball").rows:
        (line,) = [
            line for line in text.splitlines() if line.startswith(f"| `{row['policy']}` | {row['regret']:.1f} | ")
        ]
        cells = [f"{row['phi_regret']:.1f}", f"{row['phi_answers']:,.0f}"]
        cells += ["–" if row["phi_separated"] is None else str(row["phi_separated"])]
        cells += [
            "–" if row[name] is None else f"{row[name]:.1f}" for name in ("regret_if_separated", "regret_otherwise")
        ]
        assert line.endswith("| " + " | ".join(cells) + " |")
    regret = {row["policy"]: row["regret"] for row in trap.rows}
    assert f"mean regret of `greedy` was\n{regret['greedy']:.0f}" in text
    ours = regret["likelihood-ratio-ucb"]
    assert f"of `likelihood-ratio-ucb` {ours:.1f} ({regret['greedy'] / ours:.0f} times less)" in text
    words = [
        ("`one-pass-ucb`", "one-pass-ucb"),
        ("Thompson sampling", "logistic-thompson"),
        ("uniform choice", "uniform"),
    ]
    for word, policy in words:
        assert f"of {word} {regret[policy]:.0f}" in text
    runs = {row["policy"]: row["runs"] for row in coverage.rows}
    assert all(row["covered"] == 1 and row["control_caught"] for row in coverage.rows)
    counts = [
        f"{runs['likelihood-ratio-ucb']} runs of `likelihood-ratio-ucb`",
        f"{runs['one-pass-ucb']} of `one-pass-ucb`",
    ]
    assert f"{', '.join(counts)} and {runs['sup-logistic']} of `sup-logistic`" in text
    inside = {row["policy"]: round(row["control_covered"] * row["runs"]) for row in coverage.rows}
    assert inside == {"likelihood-ratio-ucb": 0, "one-pass-ucb": 0, "sup-logistic": 1}
    assert "in none\nof the runs of the first two, and in 1 of 40 of `sup-logistic`" in text
