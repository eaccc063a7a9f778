"""Study `insight`: what RAGE-GLM does on the way (Jun et al. 2021, supplement, "Some Additional Empirical Insights").

10,000 items and 3,000 questions of the synthetic "pointy" catalogue, once as pairs and once as pairs of pairs: how the
number of surviving items falls, how the questions spread over the vectors, and whether the most asked ones point along
the last difference to be decided. The paper: about 5e6 questions, a few hundred vectors asked, and rising cosines. With
`--data DIR` on the real catalogue, as in the study zappos.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Floats
from surepick.identify import Plan, Problem, Verdict
from surepick.judges import World
from surepick.report.figures import figure
from surepick_experiments.studies.identification import COLOURS, chosen_policies, groups, informed, row_of
from surepick_experiments.studies.runner import Options, Params, Row, Study
from surepick_experiments.worlds import catalogue, load_zappos, pairs_of_pairs
from surepick_experiments.worlds.synthetic import compared_items

WINDOW = 50
SHOWN = 10


def tasks(options: Options) -> list[Params]:
    """Both kinds of questions, every policy."""
    policies = chosen_policies(options.policies, ("rage-glm-halving", "rage-glm-printed"))
    # Only where it is asked for: the seed of a task is a hash of all it says.
    shoes = {"gap": options.gap or 0.05} if options.data is None else {"data": options.data}
    return [
        {"questions": kind, "policy": policy, "items": options.items or 10_000, "run": number, **shoes}
        for kind in ("pairs", "pairs of pairs")
        for policy in policies
        for number in range(options.runs or 1)
    ]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """One run, stage by stage; then a row for every vector that was asked."""
    world = make_world(task)
    policy = informed(task["policy"], world)
    began, seed = time.perf_counter(), int(rng.integers(2**31))
    judge, state, rows = world.judge(seed), policy.start(world.problem), list[Row]()
    pulls = np.zeros(len(world.problem.measurements), dtype=np.int64)
    alive = len(world.problem.items)
    runner_up = ""
    about = {"instance": task["questions"], "policy": task["policy"], "seed": seed}
    while True:
        outcome = policy.plan(state, rng)
        if isinstance(outcome, Verdict):
            break
        assert isinstance(outcome, Plan)  # every stage is answered at once
        wins = judge.wins(world.problem.measurements[outcome.measurements], outcome.pulls)
        state = policy.update(policy.apply(state, outcome), outcome.stage, outcome.tally(world.problem, wins))
        pulls[outcome.measurements] += outcome.pulls
        said = policy.verdict(state)
        if len(said.surviving) > 1:
            runner_up = next((rival.name for rival in said.rivals if rival.name in said.surviving), "")
        rows.append(
            {
                **about,
                "kind": "stage",
                "stage": outcome.stage,
                "asked": outcome.total,
                "questions": int(pulls.sum()),
                "vectors": len(outcome.pulls),
                "alive_before": alive,
                "alive": len(said.surviving),
            }
        )
        alive = len(said.surviving)
    rows.append(
        {**row_of(world, task["policy"], outcome, seed, time.perf_counter() - began, None), **about, "kind": "run"}
    )
    pairs = task["questions"] == "pairs"
    compared = world.problem.about if pairs else compared_items(len(world.problem.items), 3000, seed=task["run"])
    return rows + _vector_rows(world, outcome.best, runner_up, pulls, compared, about)


def make_world(task: Params) -> World:
    """The catalogue, synthetic or real, with 3,000 pairs, or with 3,000 pairs of pairs."""
    if "data" in task:
        base = load_zappos(Path(task["data"]), "pointy", items=task["items"], pairs=3000, seed=task["run"])
    else:
        base = catalogue("pointy", items=task["items"], pairs=3000, gap=task["gap"], seed=task["run"])
    return base if task["questions"] == "pairs" else pairs_of_pairs(base, 3000, seed=task["run"])


def _vector_rows(
    world: World, best: str, runner_up: str, pulls: NDArray[np.int64], compared: NDArray[np.int64], about: Row
) -> list[Row]:
    """Vectors by how often they were asked, with their cosine to the difference of the last two items."""
    problem = world.problem
    top_two = np.array([problem.index(best), problem.index(runner_up or best)])
    last = problem.items[top_two[0]] - problem.items[top_two[1]]
    order = np.argsort(-pulls, kind="stable")
    order = order[pulls[order] > 0]
    rows = problem.measurements[order]
    lengths = np.linalg.norm(rows, axis=1) * max(float(np.linalg.norm(last)), 1e-300)
    cosines = np.abs(rows @ last) / lengths
    return [
        {
            **about,
            "kind": "vector",
            "measurement": int(measurement),
            "pulls": int(pulls[measurement]),
            "cosine": float(cosine),
            "items": [problem.names[item] for item in compared[measurement]] if rank < SHOWN else None,
            "swatches": _swatches(problem, compared[measurement]) if rank < SHOWN else None,
            "top_two": _swatches(problem, top_two) if rank == 0 else None,
            "top_names": [problem.names[item] for item in top_two] if rank == 0 else None,
        }
        for rank, (measurement, cosine) in enumerate(zip(order, cosines, strict=True))
    ]


def _swatches(problem: Problem, items: NDArray[np.int64]) -> list[list[float]]:
    """Stand-ins for pictures: the first nine coordinates of each item, between 0 and 1."""
    spread = problem.items.std(axis=0)
    cells = 0.5 + np.clip((problem.items[items] - problem.items.mean(axis=0)) / (5 * spread), -0.5, 0.5)
    return [row[:9].tolist() for row in cells]


def windowed(values: Floats, window: int = WINDOW) -> Floats:
    """Mean over a window of neighbours, shorter at the ends."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    low = np.maximum(np.arange(len(values)) - window // 2, 0)
    high = np.minimum(low + window, len(values))
    return np.asarray((total[high] - total[low]) / (high - low))


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Per run: questions, vectors ever asked, share of the ten most asked, cosines of the most and least asked."""
    cells = []
    for (instance, policy, seed), group in groups(rows, "instance", "policy", "seed").items():
        pulls = np.array([row["pulls"] for row in group if row["kind"] == "vector"])
        cosines = np.array([row["cosine"] for row in group if row["kind"] == "vector"])
        final = next(row for row in group if row["kind"] == "run")
        stages = [row for row in group if row["kind"] == "stage"]
        few = [row["questions"] for row in stages if row["alive"] <= 2]
        cells.append(
            {
                "instance": instance,
                "policy": policy,
                "seed": seed,
                "questions": final["questions"],
                "status": final["status"],
                "correct": final["correct"],
                "seconds": final["seconds"],
                "vectors_asked": len(pulls),
                "ten_most_asked_share": float(pulls[:10].sum() / pulls.sum()),
                "cosine_most_asked": float(cosines[:WINDOW].mean()),
                "cosine_least_asked": float(cosines[-WINDOW:].mean()),
                "questions_until_two_left": few[0] if few else None,
            }
        )
    return {"cells": cells}


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Narrowing, allocation with cosines, and the most asked pairs."""
    paths = [folder / "narrowing.png", folder / "allocation.png"]
    with figure(paths[0]) as (axes,):
        for (instance, policy), group in groups(_of(rows, "stage"), "instance", "policy").items():
            style = "-" if instance == "pairs" else "--"
            axes.step(
                [row["questions"] for row in group],
                [row["alive"] for row in group],
                style,
                where="post",
                color=COLOURS[policy],
                label=f"{policy}, {instance}",
            )
        axes.set(xscale="log", yscale="log", xlabel="questions", ylabel="items not excluded")
        axes.legend(fontsize=8, frameon=False)
    vectors = groups(_of(rows, "vector"), "instance", "policy")
    kinds = list(dict.fromkeys(instance for instance, _ in vectors))
    with figure(paths[1], columns=len(kinds), rows=2, size=(10.0, 6.0)) as panels:
        for (instance, policy), group in vectors.items():
            upper, lower = panels[kinds.index(instance)], panels[len(kinds) + kinds.index(instance)]
            upper.plot([row["pulls"] for row in group], color=COLOURS[policy], label=policy)
            lower.plot(windowed(np.array([row["cosine"] for row in group])), color=COLOURS[policy])
            upper.set(yscale="log", ylabel="times asked", title=instance)
            lower.set(
                xlabel="vectors, most asked first", ylabel=f"|cosine| with the last difference\n(mean of {WINDOW})"
            )
        panels[0].legend(fontsize=8, frameon=False)
    for kind in kinds:
        paths.append(folder / f"most_asked_{kind.replace(' ', '_')}.png")
        _draw_most_asked(next(group for (instance, _), group in vectors.items() if instance == kind), paths[-1])
    return paths


def _draw_most_asked(group: list[Row], path: Path) -> None:
    """The last two items, and below them the most asked questions, as swatches of the items that they compare."""
    top, chosen = group[0], [row for row in group if row["swatches"]]
    across = len(chosen[0]["swatches"])
    with figure(path, columns=across, rows=1 + len(chosen), size=(2.2 * across, 0.75 * (1 + len(chosen)))) as panels:
        for axes in panels:
            axes.set_axis_off()
        for axes, name, swatch in zip(panels, top["top_names"], top["top_two"], strict=False):
            _draw_swatch(axes, swatch, f"last two of {top['policy']}: item {name}")
        for place, row in enumerate(chosen, start=1):
            for side, (name, swatch) in enumerate(zip(row["items"], row["swatches"], strict=True)):
                times = f", asked {row['pulls']:,}×" if side == 0 else ""
                # A question about pairs of pairs compares a − b with c − d.
                sign = "abcd"[side] + " = " if across == 4 else ""
                _draw_swatch(panels[across * place + side], swatch, f"{sign}item {name}{times}")


def _draw_swatch(axes: Any, swatch: list[float], title: str) -> None:
    if len(swatch) == 9:
        axes.imshow(np.array(swatch).reshape(1, -1, 3), vmin=0, vmax=1, aspect="auto")
    axes.set_title(title, fontsize=7, loc="left")


def _of(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """One line a run."""
    return [("The paper: about 5e6 questions, a few hundred vectors asked", summary["cells"])]


STUDY = Study(
    "insight",
    "Allocation of questions by RAGE-GLM on 10,000 items.",
    tasks,
    run,
    summarise,
    draw,
    tables,
    uses=("runs", "seed", "policies", "items", "gap", "data"),
)
