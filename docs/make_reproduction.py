"""Runs the studies of the paper and writes reproduction.md: the paper's results, ours, figures and commands."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from surepick_experiments.studies import find_study

HERE = Path(__file__).parent
PICTURES = HERE / "images" / "reproduction"


@dataclass(frozen=True)
class Part:
    """A figure, table or claim of the paper, and the study that reproduces it."""

    title: str
    study: str
    paper: str
    differs: str
    options: tuple[str, ...] = ()
    """Further options of `surepick study`."""


ALL_BUT_ANYTIME = (
    "rage-glm,rage-glm-halving,rage-glm-printed,rage-glm-r,rage-glm-2,passive,passive-printed,g-optimal,uniform,gl-gape,"
    "rage-linear"
)
"""The policies of the paper and their corrected forms; the default policy has its own study."""

PARTS = (
    Part(
        "Figure 1: Soare's benchmark",
        "soare",
        "d = 10, …, 50, ten repetitions. All runs of all methods are correct; RAGE-GLM takes about a tenth of the "
        "samples of the passive baseline, and about as many as the heuristic RAGE-GLM-R.",
        "The paper does not state θ*, δ and κ₀; here θ* = 2e₁, δ = .05, and the printed forms are given the true "
        "κ₀. The printed burn-in dominates; the corrected RAGE-GLM needs 28 to 74 times fewer questions than the "
        "printed one.",
        ("--policies", ALL_BUT_ANYTIME),
    ),
    Part(
        "Table 1: shoes (Zappos)",
        "zappos",
        "open / pointy / sporty / comfort: RAGE-GLM 9.17e7 / 2.38e5 / 2.29e5 / 4.55e6, RAGE-GLM-R 9.17e7 / 2.38e5 / "
        "2.29e5 / 3.34e6, Passive 2.69e8 / 2.38e5 / 2.29e5 / 8.54e6.",
        "The data cannot be redistributed, so synthetic data of the same sizes, dimension, gaps and κ₀ are used "
        "(`surepick_experiments.worlds.load_zappos` reads the real files). The printed numbers cannot result from "
        "the printed formulas: at κ₀ = .1 the burn-in alone is 5.95e5; 2.38e5 is what κ₀ = 1/4 gives. Where the gap "
        "decides and not the burn-in (open), both printed forms are near the paper's numbers; the corrected ones "
        "need 11 to 66 times fewer questions than the printed RAGE-GLM.",
    ),
    Part(
        "Supplement: allocation, cosines, pairs of pairs",
        "insight",
        "10,000 shoes, 3,000 pairs, about 5e6 samples. A few hundred of the pairs get nearly all of them, and those "
        "point along the difference of the last two items.",
        "The synthetic data show the same pattern with a different total; the paper states neither δ nor the gap.",
    ),
    Part(
        "Examples 1 and 2",
        "examples",
        "Two coins that nearly always come up heads take of the order of e^r/gap² questions; one question that "
        "compares them reduces this to 1/gap².",
        "The constants in the text are wrong (KL⁻¹ is about 2e^r/gap², not e^r/(2 gap²); 1/κ₀ is up to 4e^r). The "
        "orders are right, except for the burn-in, which still costs 1/κ₀ in both.",
    ),
    Part(
        "Supplement: RAGE-GLM and RAGE-GLM-2",
        "crossing",
        "RAGE-GLM-2, which needs no burn-in in its rounds, is expected to be better as δ → 0, and worse in many "
        "dimensions or with large norms.",
        "With its n_t corrected (the printed one is too small for d > 2), it needs fewer questions than the printed "
        "RAGE-GLM only at tiny δ and small norms, and never fewer than the corrected RAGE-GLM.",
    ),
    Part(
        "Supplement: the 1/κ₀ lower bound",
        "kappa",
        "On a family of n items every method must try a share of them, although all gaps are large: at least of the "
        "order of 1/κ₀ questions.",
        "The argument yields n/16; the errata correct the constants of the construction. Policies with a burn-in "
        "take hundreds of times 1/κ₀ questions here. The default policy, which has none, takes a number that grows "
        "with n and stays below 10⁴.",
    ),
    Part(
        "Section 3: burn-in of the theorems",
        "burnin",
        "The condition of Theorem 1 is met after far fewer answers than that of Li et al., with polynomial instead "
        "of exponential growth in the norm on Gaussian designs.",
        "The same, with the corrected condition instead of the printed one, which is false (the theory page has a "
        "counterexample).",
    ),
    Part(
        "Supplement: the flaw of SupCB-GLM",
        "supcb",
        "A diagram of the dependence between burn-in rewards and the arms stored at later levels.",
        "The paper argues; here the dependence is measured: given the arms stored, burn-in rewards are biased.",
    ),
    Part(
        "Theorem 1 and other bounds: coverage and width",
        "coverage",
        "The bound holds with probability 1 − δ once ξ² ≤ 1/γ, with constant 3.5.",
        "It does not hold under that condition: the theory page has an exact counterexample, of a kind too rare to "
        "appear in these settings. The corrected theorem is proved, and its intervals are a third as wide as the "
        "printed ones.",
        ("--runs", "60"),
    ),
)


def main() -> None:
    """Run all studies (unless `--page` is given), then write one section per part; parts without results say so."""
    out = HERE.parent / "out"
    if "--page" not in sys.argv:
        for part in PARTS:
            command = [Path(sys.executable).with_name("surepick"), "study", part.study, *part.options]
            subprocess.run([*command, "--out", out / part.study], check=True)
    lines = [
        "# Reproduction",
        "",
        "Every figure, table and testable claim of Jun, Jain, Mason and Nassif (ICML 2021), and what surepick finds.",
        "`make reproduce` runs all studies, resuming after an interruption, and writes this page. Each part also has",
        "its own command. Errors in the paper and their corrections are listed in the [errata](errata.md).",
        "",
    ]
    for part in PARTS:
        lines += [f"## {part.title}", "", "    " + shlex.join(["surepick", "study", part.study, *part.options]), ""]
        lines += [f"**The paper.** {part.paper}", "", f"**Differences.** {part.differs}", ""]
        lines += _found(part, out / part.study)
    (HERE / "reproduction.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _found(part: Part, folder: Path) -> list[str]:
    summary = folder / "summary.json"
    if not summary.exists():
        return ["**Result.** Not run yet.", ""]
    lines = []
    for title, rows in find_study(part.study).tables(json.loads(summary.read_text())):
        lines += [f"**Result.** {title}", "", *_table(rows), ""]
    PICTURES.mkdir(parents=True, exist_ok=True)
    for picture in sorted(folder.glob("*.png")):
        shutil.copy(picture, PICTURES / f"{part.study}-{picture.name}")
        lines += [f"![{part.title}](images/reproduction/{part.study}-{picture.name})", ""]
    return lines


def _table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|" + "---|" * len(names)]
    return lines + ["| " + " | ".join(_cell(row.get(name)) for name in names) + " |" for row in rows]


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
