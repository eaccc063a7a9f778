"""Writes benchmark.md and its figures from the rows of the study `benchmark`.

The page is a function of docs/benchmark/rows.csv.gz, one row per run, which this program writes too; a test compares
them. All numbers of the page are computed; what is written by hand is in benchmark_parts.py.

    python docs/make_benchmark.py               run the full profile (resuming) in out/benchmark, then write everything
    python docs/make_benchmark.py FOLDER ...    take the rows of these folders, of studies that were run, instead
    python docs/make_benchmark.py --page        write page and figures from the rows that are there
"""

import csv
import gzip
import io
import math
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmark_parts import ADDING, FEWER, HEAD, MEASURES, WHY
from scipy.stats import binom

from surepick_experiments.benchmark import CHECKPOINTS, METHODS, NOT_RUN, WORLDS
from surepick_experiments.benchmark.figures import draw
from surepick_experiments.benchmark.study import FALSE_ALARM, MOST, PROFILES, summarise
from surepick_experiments.studies.identification import DELTA, exact_limits, groups

HERE = Path(__file__).parent
ROWS = HERE / "benchmark" / "rows.csv.gz"
PICTURES = HERE / "images" / "benchmark"

Row = dict[str, Any]

FIXED_BUDGETS, AT_FIXED_BUDGETS = (50, 100, 200, 400), ("winner", "uniform", "top-two", "asap", "gse")
"""Budgets of the table that has a line for each of these methods."""

BEHIND = 0.02
"""Points of accuracy by which a method may be behind the best and still count as first."""


def main() -> None:
    """Run what is asked for, collect the rows, write the page."""
    folders = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
    if "--page" not in sys.argv:
        if not folders:
            folders = [HERE.parent / "out" / "benchmark"]
            command = [Path(sys.executable).with_name("surepick"), "study", "benchmark", "--profile", "full"]
            subprocess.run([*command, "--out", folders[0]], check=True)
        collect(folders)
    rows = read_rows()
    summary = summarise(rows)
    draw(rows, summary, PICTURES)
    (HERE / "benchmark.md").write_text(page(summary), encoding="utf-8")


def collect(folders: Iterable[Path]) -> None:
    """All rows of these folders as one compressed table; the same rows give the same file."""
    rows = [
        row for folder in folders for row in csv.DictReader((folder / "rows.csv").open(newline="", encoding="utf-8"))
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    ROWS.parent.mkdir(exist_ok=True)
    ROWS.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def read_rows() -> list[Row]:
    """The rows with numbers and truth values as such."""
    lines = gzip.decompress(ROWS.read_bytes()).decode().splitlines()
    return [{name: _value(text) for name, text in row.items() if text} for row in csv.DictReader(lines)]


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        return text


def page(summary: dict[str, Any]) -> str:
    """The text of benchmark.md."""
    cells: list[Row] = summary["cells"]
    worlds = {world: found for (world,), found in groups(cells, "world").items()}
    runs = sorted({cell["runs"] for cell in cells})
    by_name = {f"`{method}`": found for (method,), found in groups(cells, "method").items()} | worlds
    most = {name: max(cell["runs"] for cell in found) for name, found in by_name.items()}
    fewer = [f"{name} ({count})" for name, count in most.items() if count < PROFILES["full"][0]]
    parts = [
        HEAD.format(
            small=sum(family.small for family in WORLDS.values()),
            few=PROFILES["small"][0],
            full=len(WORLDS),
            many=PROFILES["full"][0],
        ),
        *([FEWER.format(many=PROFILES["full"][0], which=", ".join(fewer))] if fewer else []),
        MEASURES.format(
            runs=_between(runs), most=f"{MOST:,}", delta=DELTA, level=FALSE_ALARM, total=sum(c["runs"] for c in cells)
        ),
        "## When may I stop?\n",
        _standings(cells),
        _first_to_stop(worlds, cells),
        "![Questions to stop in each world](images/benchmark/stops.png)\n",
        "Dots are medians with 95% intervals, which fewer than six runs do not give. A cross: the method's claims were "
        "wrong more often than delta allows in this world, beyond doubt, or the world has no winner.\n",
        "## What do I get after n questions?\n",
        _guess_table(worlds),
        _not_first(worlds),
        _fixed_budgets(worlds),
        "![Best guesses in each world](images/benchmark/guesses.png)\n",
        "## World by world\n",
        *(_about_world(world, found, cells) for world, found in worlds.items()),
        "## Our claims, tested\n",
        _claims(cells),
        "## Time\n",
        _times(cells),
        "## The methods\n",
        _methods(),
        ADDING,
    ]
    return "\n".join(parts)


def _between(values: list[int]) -> str:
    return str(values[0]) if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


def _table(names: list[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def claiming(cells: list[Row]) -> list[str]:
    """Methods that stop, in the order of the benchmark."""
    found = {cell["method"] for cell in cells}
    return [name for name, entry in METHODS.items() if entry.claim is not None and name in found]


def errors_of(method: str, cells: list[Row]) -> tuple[int, int, list[Row]]:
    """Wrong claims and runs over all worlds that have a winner, and the cells in which it is wrong beyond doubt."""
    own = [cell for cell in cells if cell["method"] == method and cell["winner"]]
    return sum(cell["wrong"] for cell in own), sum(cell["runs"] for cell in own), [c for c in own if c["broken"]]


def keeps_delta(method: str, cells: list[Row]) -> bool:
    """Whether nothing speaks beyond doubt against its error being at most delta, in each world and over all."""
    wrong, runs, broken = errors_of(method, cells)
    over_all = binom.sf(wrong - 1, runs, DELTA) < FALSE_ALARM / len(claiming(cells)) if runs else False
    return not broken and not over_all


def _standings(cells: list[Row]) -> str:
    lines = []
    for method in claiming(cells):
        wrong, runs, _ = errors_of(method, cells)
        own = [cell for cell in cells if cell["method"] == method and cell["winner"]]
        stopped = sum(cell["stopped"] for cell in own)
        worst = max(own, key=lambda cell: cell["wrong"] / cell["runs"], default=None)
        low, high = exact_limits(wrong, runs)
        lines.append(
            [
                f"**{method}**" if METHODS[method].ours else method,
                METHODS[method].claim or "",
                f"{stopped:,} of {runs:,}",
                f"{wrong} ({100 * wrong / runs:.1f}%, {100 * low:.1f} to {100 * high:.1f})",
                "–"
                if worst is None or not worst["wrong"]
                else f"{worst['world']}: {worst['wrong']} of {worst['runs']}",
                "not refuted" if keeps_delta(method, cells) else "**refuted**",
            ]
        )
    head = ["method", "its stop rests on", "runs that stopped", "wrong", "worst world", f"error ≤ {DELTA:g}"]
    return (
        "All worlds that have a winner, including those that break a method's assumption:\n\n"
        + _table(head, lines)
        + "\n*Refuted*: the errors exceed delta beyond doubt, in one world or over all, at a total false-alarm rate of "
        f"{FALSE_ALARM:g}. *Not refuted* is no proof: the interval says what the runs allow.\n"
    )


def _questions(cell: Row) -> str:
    if cell["questions"] is None:
        return f"{cell['stopped']} of {cell['runs']} stopped"
    if not cell["questions_low"]:
        return f"{cell['questions']:,.0f}"
    high = "∞" if cell["questions_high"] is None else f"{cell['questions_high']:,.0f}"
    return f"{cell['questions']:,.0f} ({cell['questions_low']:,.0f} to {high})"


def by_questions(found: list[Row]) -> list[Row]:
    """Cells of methods that stop, those that stop first before others; only if most runs stopped."""
    stopping = [cell for cell in found if METHODS[cell["method"]].claim is not None and cell["questions"] is not None]
    return sorted(stopping, key=lambda cell: cell["questions"])


def _first_to_stop(worlds: dict[str, list[Row]], cells: list[Row]) -> str:
    """The same standard for all: a method counts if it is not refuted, in this world or any other."""
    lines, behind, absent, first = [], [], [], 0
    for world, found in worlds.items():
        if not found[0]["winner"]:
            continue
        ordered = by_questions(found)
        valid = [cell for cell in ordered if keeps_delta(cell["method"], cells)]
        ours = [cell for cell in valid if METHODS[cell["method"]].ours]
        rivals = [cell for cell in valid if not METHODS[cell["method"]].ours]
        sooner = [cell for cell in ordered if ours and cell not in valid and cell["questions"] < ours[0]["questions"]]
        if not ours:
            absent.append(world)
        elif rivals and rivals[0]["questions"] < ours[0]["questions"]:
            behind.append(f"{world} ({rivals[0]['method']})")
        else:
            first += 1
        lines.append(
            [
                world,
                f"{ours[0]['method']}: {_questions(ours[0])}" if ours else "none stopped",
                f"{rivals[0]['method']}: {_questions(rivals[0])}" if rivals else "none stopped",
                ", ".join(_with_errors(cell) for cell in sooner) or "–",
            ]
        )
    head = ["world", "ours", "first rival that is not refuted", "sooner, but refuted here or elsewhere"]
    text = (
        "Questions to stop, by medians of all runs, with 95% intervals from six runs on. The same standard holds for "
        "all: a method that is refuted in one world counts in none, `features` included.\n\n" + _table(head, lines)
    )
    text += f"\nBy these medians ours is first in {first} of {len(lines)} worlds."
    text += f" It is **not** first in: {', '.join(behind)}." if behind else ""
    text += f" No method of ours that is not refuted stops in: {', '.join(absent)}." if absent else ""
    return text + "\n\n" + _where_features_hold(worlds)


def _with_errors(cell: Row) -> str:
    return f"{cell['method']} {cell['questions']:,.0f} (wrong {cell['wrong']}/{cell['runs']})"


def _where_features_hold(worlds: dict[str, list[Row]]) -> str:
    """All methods that stop, with their errors, in the worlds that the claim "features" is about."""
    lines = []
    for world, found in worlds.items():
        if any(cell["method"] == "features" and cell["holds"] for cell in found):
            ordered = by_questions(found)
            lines += [[world if cell is ordered[0] else "", _with_errors(cell), _stop(cell)] for cell in ordered]
    return "Where answers are logistic in the features, all methods that stop, the first to stop first:\n\n" + _table(
        ["world", "questions and errors", "its stop rests on"], lines
    )


def _stop(cell: Row) -> str:
    return METHODS[cell["method"]].claim or ""


def _guess_table(worlds: dict[str, list[Row]]) -> str:
    lines, runs = [], {cell["runs"] for found in worlds.values() for cell in found}
    for world, found in worlds.items():
        line = [world]
        for point in CHECKPOINTS:
            here = [cell for cell in found if f"right_{point}" in cell]
            best = max(here, key=lambda cell: cell[f"right_{point}"])
            ours = max((c for c in here if METHODS[c["method"]].ours), key=lambda cell: cell[f"right_{point}"])
            text = f"{100 * ours[f'right_{point}']:.0f}"
            if ours[f"right_{point}"] + BEHIND >= best[f"right_{point}"]:
                line.append(f"**{text}**")
            else:
                line.append(f"{text} ({best['method']} {100 * best[f'right_{point}']:.0f})")
        lines.append(line)
    return (
        "How often the best guess is right, in percent, for the better of our claims; in brackets the best rival, the "
        "luckiest of up to sixteen, where it is ahead by more than two points. With "
        f"{_between(sorted(runs))} runs, the 95% interval of a share near one half is about "
        f"±{100 / math.sqrt(min(runs)):.0f} points or less.\n\n" + _table(["world", *map(str, CHECKPOINTS)], lines)
    )


def _fixed_budgets(worlds: dict[str, list[Row]]) -> str:
    """Accuracy and simple regret of some methods, each world counted once, whatever its number of runs."""
    kinds = {
        "simulated": [found for world, found in worlds.items() if world in WORLDS],
        "recorded": [found for world, found in worlds.items() if world not in WORLDS],
    }
    lines, counted = [], {}
    for kind, groups_of_cells in kinds.items():
        with_winner = [{cell["method"]: cell for cell in found if cell["winner"]} for found in groups_of_cells]
        chosen = [name for name in AT_FIXED_BUDGETS if any(name in cells for cells in with_winner)]
        shared = [cells for cells in with_winner if cells and all(name in cells for name in chosen)]
        counted[kind] = len(shared)
        for name in chosen if shared else ():
            line = [f"**{name}**" if METHODS[name].ours else name, kind]
            for point in FIXED_BUDGETS:
                cells_of_method = [cells[name] for cells in shared]
                # One more of either kind, or few runs that are all right would seem to be without error.
                smooth = [(c[f"right_{point}"] * c["runs"] + 1) / (c["runs"] + 2) for c in cells_of_method]
                spread = sum(q * (1 - q) / c["runs"] for q, c in zip(smooth, cells_of_method, strict=True))
                share = sum(c[f"right_{point}"] for c in cells_of_method) / len(shared)
                behind = sum(c[f"behind_{point}"] for c in cells_of_method) / len(shared)
                error = math.sqrt(spread) / len(shared)
                line.append(f"{100 * share:.0f} ± {100 * error:.0f}; {behind:.3f}")
            lines.append(line)
    return (
        "If the number of questions is fixed beforehand (`budget=`), the best guess is what counts. Percent of right "
        "guesses with its standard error, and simple regret (how much more often than half the time the best item "
        f"beats the guess), as means over the {counted['simulated']} simulated and {counted['recorded']} recorded "
        "worlds that have a winner and that all of these methods take part in. `gse` is told the budget; the others "
        "ask the same questions whatever it is.\n\n"
        + _table(["method", "worlds", *(f"{point} questions" for point in FIXED_BUDGETS)], lines)
        + "\n`surepick study benchmark --policies winner,uniform,top-two,asap,gse` runs these methods alone.\n"
    )


def _not_first(worlds: dict[str, list[Row]]) -> str:
    """Where a rival is ahead beyond its interval."""
    found = []
    for world, cells in worlds.items():
        for point in CHECKPOINTS:
            here = [cell for cell in cells if f"right_{point}" in cell]
            ours = max((c for c in here if METHODS[c["method"]].ours), key=lambda cell: cell[f"right_{point}"])
            ahead = [cell["method"] for cell in here if cell[f"right_{point}_low"] > ours[f"right_{point}_high"]]
            if ahead:
                found.append(f"{world} after {point}: {', '.join(ahead)}")
    if not found:
        return "No rival is ahead of the better of our claims by more than both 95% intervals, anywhere.\n"
    return "Ahead of ours by more than both 95% intervals: " + "; ".join(found) + ".\n"


def _about_world(world: str, found: list[Row], cells: list[Row]) -> str:
    about = WORLDS[world].about if world in WORLDS else f"Recorded votes, drawn again: `{world}`."
    text = [f"**{world}.** {about}"]
    ordered = by_questions(found)
    if found[0]["winner"]:
        valid = [cell for cell in ordered if keeps_delta(cell["method"], cells) or _ours_holds(cell)]
        if valid:
            text.append("Stops: " + ", ".join(f"{c['method']} {c['questions']:,.0f}" for c in valid[:4]) + ".")
    else:
        claims = [f"{cell['method']} {cell['stopped']} of {cell['runs']}" for cell in found if cell["stopped"]]
        wrong = [f"{cell['method']} {cell['wrong']}" for cell in found if cell["wrong"]]
        text.append(
            f"There is no winner. Stopped: {', '.join(claims)}; with an item named: {', '.join(wrong) or 'none'}."
        )
    for point in (100, 400):
        best = sorted((c for c in found if f"right_{point}" in c), key=lambda cell: -cell[f"right_{point}"])[:3]
        shares = ", ".join(f"{cell['method']} {100 * cell[f'right_{point}']:.0f}%" for cell in best)
        text.append(f"Best guesses after {point}: {shares}.")
    if world in WHY:
        text.append(WHY[world])
    return " ".join(text) + "\n"


def _ours_holds(cell: Row) -> bool:
    return METHODS[cell["method"]].ours and cell["holds"] and not cell["broken"]


def _claims(cells: list[Row]) -> str:
    lines = []
    for cell in cells:
        if not METHODS[cell["method"]].ours or not cell["stopped"]:
            continue
        low, high = exact_limits(cell["wrong"], cell["runs"])
        lines.append(
            [
                cell["method"],
                cell["world"],
                "yes" if cell["holds"] else "no",
                str(cell["runs"]),
                str(cell["stopped"]),
                str(cell["wrong"]),
                f"{100 * low:.1f} to {100 * high:.1f}",
                ("exceeded" if cell["broken"] or not cell["winner"] else "kept") if cell["wrong"] else "kept",
            ]
        )
    kept = [cell for cell in cells if METHODS[cell["method"]].ours and cell["holds"]]
    wrong, runs = sum(cell["wrong"] for cell in kept), sum(cell["runs"] for cell in kept)
    broken = [f"{cell['method']} in {cell['world']}" for cell in kept if cell["broken"]]
    text = (
        f"Where the assumption holds, {wrong} of {runs:,} runs were wrong (95% interval up to "
        f"{100 * exact_limits(wrong, runs)[1]:.1f}%). "
    )
    text += f"Exceeded beyond doubt: {', '.join(broken)}." if broken else "In no world is delta exceeded beyond doubt."
    head = ["claim", "world", "assumption holds", "runs", "stopped", "wrong", "95% interval, %", "delta"]
    return text + "\n\n" + _table(head, lines)


def _times(cells: list[Row]) -> str:
    columns = [
        w for w in ("10 items", "20 items", "200 items", "colours, clear") if any(c["world"] == w for c in cells)
    ]
    lines = []
    for method in METHODS:
        own = {cell["world"]: cell["milliseconds"] for cell in cells if cell["method"] == method}
        if own:
            lines.append([method, *(f"{own[world]:.2f}" if world in own else "–" for world in columns)])
    return (
        "Milliseconds of processor time per question, medians, on one core of a shared machine. Methods that ask whole "
        "stages or portions at once take less per question.\n\n" + _table(["method", *columns], lines)
    )


def _methods() -> str:
    lines = [
        [f"**{name}**" if entry.ours else name, entry.about, entry.claim or "no stop"]
        for name, entry in METHODS.items()
    ]
    text = _table(["method", "what it does", "its stop rests on"], lines)
    for name, reason in NOT_RUN.items():
        text += f"\nNot run: **{name}**, {reason}\n"
    return text


if __name__ == "__main__":
    main()
