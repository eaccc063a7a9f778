"""Study `delta`: is the best item missed with probability at most delta? Families that make it hard, and a control.

Near ties, many near-best rivals, answers of little variance, gaps too small for the budget (where a valid policy
claims nothing), exact ties (where any claim to be certain counts as an error), and for Anytime more of the kind
(`delta_anytime`). A policy whose widths are cut to a fifth, and a likelihood ratio that does not pay for repeated
evaluation, must be caught by the same test.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from surepick._arrays import Floats
from surepick.identify import Policy, RageGlm
from surepick.identify.anytime.tuning import TUNING
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Stages
from surepick.identify.staged.rage_glm import RoundMemo
from surepick.identify.staged.stage_bounds import StageEstimate
from surepick.judges import World
from surepick.report.figures import figure
from surepick_experiments.studies import delta_anytime
from surepick_experiments.studies.delta_anytime import (
    HORIZON,
    TIES,
    UNPAID,
    Hasty,
    Unpaid,
)
from surepick_experiments.studies.identification import (
    COLOURS,
    chosen_policies,
    exact_limits,
    groups,
    informed,
    measured,
)
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import example_1, soare

DELTAS = (0.05, 0.1, 0.3)
FALSE_ALARM = 1e-3
"""Chance that the whole study accuses some policy that keeps its word (divided evenly over all its tests)."""

CONTROL = "control: a fifth of the width"
CONTROLS = (CONTROL, UNPAID)
BUDGET = 3 * 10**5
"""Budget of questions, which ends runs with exact ties and hairline gaps."""


def near_ties(angle: float = 0.15) -> World:
    """Soare's benchmark in three dimensions."""
    return soare(3, angle=angle)


def many_rivals() -> World:
    """One item a little better than five others, compared in pairs, without features."""
    return World("many-rivals", Problem.from_pairs([f"item {i}" for i in range(6)]), np.r_[0.25, np.zeros(5)])


def little_variance(gap: float = 0.4) -> World:
    """Two coins that come up heads nineteen times in twenty."""
    return example_1(3.0, gap=gap)


def exact_tie() -> World:
    """Two best items; to be certain of either is an error."""
    items = np.array([[1.0, 0.3], [1.0, -0.3], [0.0, 1.0]])
    return World("exact-tie", Problem(items, items, names=["a", "b", "c"]), np.array([1.0, 0.0]))


FAMILIES: dict[str, Callable[[], World]] = {
    "near ties": near_ties,
    "many rivals": many_rivals,
    "little variance": little_variance,
    "hairline, near ties": partial(near_ties, 0.005),
    "hairline, little variance": partial(little_variance, 0.02),
    "exact tie": exact_tie,
}
EVERYWHERE = FAMILIES | delta_anytime.FAMILIES
"""With those for Anytime alone."""
TIED = ("exact tie", *TIES)
"""Where two items are the best, and no claim should be made."""


@dataclass(frozen=True, kw_only=True)
class Shrunk(RageGlm):
    """RageGlm with a fifth of its radius: the negative control."""

    def estimate(self, state: Stages, memo: RoundMemo) -> tuple[StageEstimate | None, Floats]:
        """The estimate with a fifth of its radius; the floors as they are."""
        estimate, floors = super().estimate(state, memo)
        return None if estimate is None else replace(estimate, radius=estimate.radius / 5), floors


def tasks(options: Options) -> list[Params]:
    """Blocks of runs of one policy on one family at one delta; 150 runs each by default."""
    policies = chosen_policies(options.policies, ("rage-glm", "rage-glm-halving", "passive", "anytime"))
    runs = options.runs or 150
    block = 25
    cells = [(family, policy) for family in FAMILIES for policy in [*policies, CONTROL]]
    if "anytime" in policies:
        cells += [(family, "anytime") for family in delta_anytime.FAMILIES] + [(family, UNPAID) for family in TIES]
    return [
        {"family": family, "delta": delta, "policy": policy, "block": number, "runs": min(block, runs - number * block)}
        for family, policy in cells
        for delta in DELTAS
        for number in range(-(-runs // block))
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """A block of runs."""
    world, delta, name = EVERYWHERE[task["family"]](), task["delta"], task["policy"]
    policy: Policy[Any]
    if name == CONTROL:
        policy = Shrunk(delta=delta, kappa=world.kappa, budget=BUDGET)
    elif name in ("anytime", UNPAID):
        policy = (Unpaid if name == UNPAID else Hasty)(delta=delta, budget=HORIZON)
    else:
        policy = informed(name, world, delta=delta, budget=BUDGET)
    tied = task["family"] in TIED
    rows = []
    for _ in range(task["runs"]):
        row = measured(world, name, policy, int(rng.integers(2**31)))
        claimed = row["status"] == "certain"
        wrong = claimed and (tied or not row["correct"])
        rows.append({"family": task["family"], **row, "claimed": claimed, "wrong": wrong})
    return rows


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Errors with exact binomial limits, and whether delta is exceeded beyond doubt."""
    grouped = groups(rows, "policy", "family", "delta")
    level = FALSE_ALARM / len(grouped)
    cells = []
    for (policy, family, delta), group in grouped.items():
        wrong, count = sum(row["wrong"] for row in group), len(group)
        cells.append(
            {
                "policy": policy,
                "family": family,
                "delta": delta,
                "runs": count,
                "claimed": sum(row["claimed"] for row in group),
                "wrong": wrong,
                "error_rate": wrong / count,
                "error_high": exact_limits(wrong, count)[1],
                "broken": bool(binom.sf(wrong - 1, count, _allowed(policy, family, delta)) < level),
                "questions": float(np.median([row["questions"] for row in group])),
            }
        )
    controls = [cell for cell in cells if cell["policy"] in CONTROLS]
    honest = [cell for cell in cells if cell["policy"] not in CONTROLS]
    return {
        "false_alarm_rate": FALSE_ALARM,
        "runs": sum(cell["runs"] for cell in honest),
        "wrong": sum(cell["wrong"] for cell in honest),
        "broken": sum(cell["broken"] for cell in honest),
        "control_settings": len(controls),
        "control_caught": sum(cell["broken"] for cell in controls),
        "cells": cells,
    }


def _allowed(policy: str, family: str, delta: float) -> float:
    """With which probability it may be wrong, or stop at a tie.

    Of two best items `Anytime` passes one or the other with up to delta_2 + 2·delta_1 (docs/anytime.md, section 3).
    """
    return (2 - TUNING.localiser_share) * delta if policy == "anytime" and family in TIED else delta


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Error rate against delta."""
    path = folder / "delta.png"
    families = list(dict.fromkeys(cell["family"] for cell in summary["cells"]))
    columns = min(4, len(families))
    lines = -(-len(families) // columns)
    with figure(path, columns=columns, rows=lines, size=(3.3 * columns, 3.5 * lines)) as panels:
        for axes, family in zip(panels, families, strict=False):
            cells = [cell for cell in summary["cells"] if cell["family"] == family]
            for (policy,), group in groups(cells, "policy").items():
                style = "--x" if policy in CONTROLS else "-o"
                colour = COLOURS.get(policy, "#999999")
                axes.plot(
                    [c["delta"] for c in group], [c["error_rate"] for c in group], style, color=colour, label=policy
                )
            axes.plot(DELTAS, DELTAS, "k:", label="delta")
            axes.set(xscale="log", ylim=(-0.001, 1.0), xlabel="delta", title=family)
            axes.set_yscale("symlog", linthresh=0.01)
            axes.set_xticks(DELTAS, [f"{delta:g}" for delta in DELTAS])
            axes.set_xticks([], minor=True)
            axes.legend(fontsize=7, frameon=False, loc="upper left")
        for axes in panels[len(families) :]:
            axes.set_axis_off()
        for axes in panels[::columns]:
            axes.set_ylabel("share of wrong verdicts")
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """Errors of every policy, family and delta."""
    names = ("policy", "family", "delta", "runs", "claimed", "wrong", "error_high", "broken", "questions")
    return [("Wrong verdicts", [{name: cell[name] for name in names} for cell in summary["cells"]])]


STUDY = Study(
    "delta",
    "Error rates on hard families, with a negative control.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies"),
)
