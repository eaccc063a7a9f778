"""The errata page: every slip with its line, a correction and a status, and numbers that are right."""

import math
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
OURS = "Errors in earlier versions of our own derivations"
LAST_LINE = 2631
"""Of the source of the paper."""


def rows(section: str) -> list[list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.split("\n") if line[:1] == "|"]
    return cells[2:]


def test_every_slip_has_its_lines_a_correction_and_a_status() -> None:
    known = set(re.findall(r"^\| \*\*(.+?)\*\* \|", PAGE.split("## ")[0], flags=re.MULTILINE))
    assert known == {"false", "gap", "constant", "slip", "not reproducible", "right"}
    found = 0
    for title, section in SECTIONS.items():
        if title == OURS:
            continue
        for row in rows(section):
            found += 1
            assert len(row) == 4, (title, row)
            lines, printed, correct, status = row
            assert re.fullmatch(r"\d+(–\d+)?(, \d+(–\d+)?)*", lines), row
            assert all(0 < int(number) <= LAST_LINE for number in re.findall(r"\d+", lines)), row
            assert printed, row
            assert correct, row
            assert status.replace("*", "").split(",")[0].split(";")[0].strip() in known, row
    assert found >= 45


@pytest.mark.parametrize(
    "slip",
    [
        r"\xi^2\le1/\gamma",  # Theorem 1
        r"r(\epsilon)=d^2/\epsilon",
        r"2.645\,\delta",  # RAGE-GLM-2
        "δ ≤ 1/16, d ≥ 4",
        r"64(K-1)+\max(64,16",
        r"4.29\,\delta",
        r"0\ge0",  # the supplement's rule excludes every item
        r"(1-\epsilon)/(1+3\epsilon)",
        "2(S+1)TK",
        r"\beta(b,a)",
    ],
)
def test_the_slips_that_matter_are_on_the_page(slip: str) -> None:
    assert slip in PAGE


def test_the_numbers_of_the_page_are_right() -> None:
    def gamma(d: int, vectors: int, delta: float) -> float:
        return d + math.log(6 * (2 + vectors) / delta)

    def burn_in(kappa: float) -> float:  # Table 1: 25 dimensions, 5,000 pairs, no rounding parameter
        return 3 * 25 * gamma(25, 5000, 0.05) * math.log(2 * 5000 * 5002 / 0.05) / kappa

    def rounded_well(d: int, epsilon: float) -> bool:
        vectors = d * (d + 1) // 2 + 1
        return d**2 / epsilon >= vectors * (1 + epsilon) / epsilon

    assert [round(gamma(d, d, 1 / 16), 2) for d in (4, 5)] == [10.36, 11.51]
    assert "needs $\\gamma\\ge12.25$" in PAGE
    assert 3.5**2 == 12.25
    assert f"$\\gamma\\ge{3.5**2 / math.log(3) ** 2:.2f}$, which $d=4$ meets" in PAGE
    assert f"{1 + 2 * math.pi**2 / 6:.2f}" == "4.29"
    assert f"{1 + math.pi**2 / 6:.3f}" == "2.645"
    assert f"{1.6 * (0.75 + 0.17 * 0.375):.3f}" == "1.302"
    assert f"{burn_in(0.1):.2e}".replace("e+0", "e") == "5.95e5"
    assert f"{burn_in(0.25):.2e}".replace("e+0", "e") == "2.38e5"
    assert not any(rounded_well(d, 1.0) for d in range(1, 100))
    assert [d for d in range(1, 100) if not rounded_well(d, 0.5)] == [1, 2, 3, 4]
    assert [d for d in range(1, 100) if not rounded_well(d, 0.2)] == [1, 2]
    assert (f"{1 + 2 * math.log(2) + math.log(3) / 2:.2f}", f"{3 * math.log(2):.2f}") == ("2.94", "2.08")
    assert math.ceil(18 * math.sqrt(2 / 4)) == 13
    shrink = (1 - 1 / 42) ** (21 / 4)  # the least n is 21
    assert 0.058 < shrink / 8 / (1 + shrink) < 0.059
    inverse_kappa = 2 * (1 + 41.0**5)  # n = 21, epsilon = 1/2
    assert ((inverse_kappa / 2 - 1) ** (0.5 / 2.5) + 1) / 2 == pytest.approx(21)
