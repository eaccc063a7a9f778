"""`surepick limits`: how many questions any method needs for these items, and what formulas of the literature say."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli.design import Ask
from surepick.cli.output import DROP_BAD_ROWS_HELP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from surepick.identify import Forecast
    from surepick.io.items import ItemTable
    from surepick.limits import Formula, Instance, LowerBound

ALL_PAIRS = 20_000
"""Up to this many pairs all can be asked; of more than that ..."""

DRAWN_PAIRS = 5_000
"""... this many are drawn at random."""

FORMULA_GAP = 0.05
"""Accuracy of the designs in printed formulas; their constants are rougher than that."""


def limits(
    items: Annotated[Path, typer.Argument(help="Items: column item; every other numeric column is a feature.")],
    theta: Annotated[
        Path | None,
        typer.Option(help="The assumed truth: columns feature,theta (item names where items have no features)."),
    ] = None,
    answers: Annotated[Path | None, typer.Option(help="Earlier answers from which to estimate theta instead.")] = None,
    delta: Annotated[float, typer.Option(help="Error probability of the methods.")] = 0.05,
    ask: Annotated[Ask, typer.Option(help="pairs: A-versus-B questions; items: yes/no questions.")] = "pairs",
    gap: Annotated[
        float, typer.Option(help="Stop when the bound is proved to be within this fraction of the best possible.")
    ] = 0.01,
    policies: Annotated[
        str, typer.Option(help="Policies to forecast by simulation, comma-separated; empty for none.")
    ] = "anytime,rage-glm",
    runs: Annotated[
        int, typer.Option(help="Simulated searches of each policy; an 80% interval needs at least nine.")
    ] = 9,
    price: Annotated[float | None, typer.Option(help="Price of one question, for the expected cost.")] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the simulated answers, and of the pairs drawn where there are too many.")
    ] = 0,
    drop_bad_rows: Annotated[bool, typer.Option("--drop-bad-rows", help=DROP_BAD_ROWS_HELP)] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the numbers to this PNG, SVG or PDF file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The fewest questions any method needs, beside forecasts and printed formulas. Exit code 1 if not certified."""
    from dataclasses import replace

    from surepick.cli.output import print_json
    from surepick.guarantee import Guarantee
    from surepick.io.items import read_items
    from surepick.limits import Instance, lower_bound, rho_opt, rho_star, shared_error_bound

    table = read_items(items, scale=False, drop_bad_rows=drop_bad_rows)
    names, vectors = list(table.names), table.features
    truth = _truth(table, theta, answers, items, drop_bad_rows)
    instance = Instance(_measurements(vectors, ask, seed), vectors, truth, names=names)
    bound = lower_bound(instance, delta=delta, gap=gap)
    if theta is None:  # the bound is proved for the theta it assumes, and that is a guess here
        bound = replace(bound, guarantee=Guarantee.HEURISTIC)
    shared, winner = shared_error_bound(instance, bound), _winner_bounds(instance, ask, delta)
    quadratic, star = rho_opt(instance), rho_star(instance, gap=FORMULA_GAP)
    formulas = _formulas(instance, delta)
    forecasts = _forecasts(instance, names, policies, delta, runs, price, seed)
    if plot is not None:
        import numpy as np

        from surepick.report.figures import draw_questions

        shown = [formula for formula in formulas if not formula.order_only]
        counts = [forecast.expected for forecast in forecasts] + [formula.questions for formula in shown]
        labels = [f"{forecast.policy}, simulated" for forecast in forecasts]
        labels += [f"{formula.name}, formula" for formula in shown]
        draw_questions(labels, np.array(counts), plot, bound=shared)
    if json:
        print_json(
            {
                "best": names[bound.best],
                "delta": delta,
                "assumed": "theta" if theta is not None else "estimate",
                "measurements": len(instance.measurements),
                "lower_bound": bound.questions,
                "lower_bound_at_most": bound.questions_at_most,
                "shared_error_bound": shared,
                "winner_lower_bound": None if winner is None else winner[0],
                "winner_shared_error_bound": None if winner is None else winner[1],
                "gap": bound.gap,
                "guarantee": str(bound.guarantee),
                "status": str(bound.status),
                "sentence": bound.sentence,
                "seconds": bound.seconds,
                "rivals": {
                    names[rival]: weight for rival, weight in zip(bound.rivals, bound.dual_weights, strict=True)
                },
                "smallest_gap": instance.smallest_gap,
                "kappa": instance.kappa,
                "rho_opt": quadratic.value,
                "rho_star": star.total,
                "forecasts": [
                    {
                        "policy": each.policy,
                        "questions": each.expected,
                        "interval": [None if end == math.inf else end for end in each.interval()],
                        "ratio": each.expected / shared,
                        "runs": runs,
                        "decided": each.decided,
                        "cost": each.cost,
                        "guarantee": str(each.guarantee),
                    }
                    for each in forecasts
                ],
                "formulas": [
                    {
                        "name": each.name,
                        "questions": each.questions,
                        "ratio": _ratio(each, shared),
                        "guarantee": str(each.guarantee),
                        "statement": each.statement,
                        "order_only": each.order_only,
                    }
                    for each in formulas
                ],
            }
        )
    else:
        _print_table(instance, names, bound, shared, winner, quadratic.value, forecasts, formulas)
        if plot is not None:
            print(f"Figure: {plot}")
    if bound.gap > gap:
        raise typer.Exit(1)


def _truth(
    table: "ItemTable", theta: Path | None, answers: Path | None, items: Path, drop_bad_rows: bool
) -> "NDArray[np.float64]":
    """θ as given, or the maximum-likelihood estimate from answers."""
    from surepick.errors import InvalidInput

    if (theta is None) == (answers is None):
        raise InvalidInput("Pass either --theta FILE, the assumed truth, or --answers FILE to estimate it from.")
    if theta is not None:
        return read_theta(theta, list(table.columns))
    from surepick.cli.output import print_sentences
    from surepick.confidence.result import pooled
    from surepick.glm import fit
    from surepick.io.votes import read_answers

    assert answers is not None
    recorded = read_answers(answers, items, drop_bad_rows=drop_bad_rows)
    print_sentences("rows were left out", recorded.left_out, to_stderr=True)  # the result says nothing of them
    estimate = fit(pooled(recorded.answers))
    if not estimate.converged:
        raise InvalidInput(f"The answers do not determine theta: {estimate.status.sentence}")
    return estimate.theta


def read_theta(path: Path, features: list[str]) -> "NDArray[np.float64]":
    """One number per feature; the file may list them in any order."""
    import numpy as np

    from surepick.errors import InvalidInput
    from surepick.io.tables import read_table

    table = read_table(path)
    given, numbers = table.text("feature"), table.numbers(["theta"])[:, 0]
    for row, name in enumerate(given):
        if name not in features:
            raise table.refusal(row, f"the items have no feature {name!r}; they have {', '.join(features[:8])}")
        if name in given[:row]:
            raise table.refusal(row, f"feature {name!r} is listed twice")
    missing = [name for name in features if name not in given]
    if missing:
        raise InvalidInput(
            f"theta must have one number for each of the {len(features)} features, got {len(given)}: "
            f"{table.source} lacks {missing[0]!r}."
        )
    values = dict(zip(given, numbers, strict=True))
    return np.array([values[name] for name in features])


def _measurements(vectors: "NDArray[np.float64]", ask: Ask, seed: int) -> "NDArray[np.float64]":
    """What can be asked: every item, every pair, or pairs drawn where there are too many to list."""
    import numpy as np

    count = len(vectors)
    if ask == "items" or count < 2:
        return vectors
    if count * (count - 1) // 2 <= ALL_PAIRS:
        first, second = np.triu_indices(count, 1)
    else:
        rng = np.random.default_rng(seed)
        first = rng.integers(0, count, size=DRAWN_PAIRS)
        second = (first + rng.integers(1, count, size=DRAWN_PAIRS)) % count
    differences = vectors[first] - vectors[second]
    return np.asarray(differences[differences.any(axis=1)])


def _winner_bounds(instance: "Instance", ask: Ask, delta: float) -> tuple[float, float] | None:
    """What a method needs that assumes a winner and no features: by the plain argument, and with the error shared."""
    from surepick.glm import probability_of_yes
    from surepick.limits import winner_lower_bound, winner_shared_error_bound

    if ask == "items":
        return None
    scores = instance.items @ instance.theta
    chances = probability_of_yes(scores[:, None] - scores[None, :])
    return winner_lower_bound(chances, delta=delta), winner_shared_error_bound(chances, delta=delta)


def _formulas(instance: "Instance", delta: float) -> "list[Formula]":
    from surepick.limits import fixed_g_optimal_formula, kazerouni_wein_formula, rage_glm_2_formula, rage_glm_formula

    return [
        rage_glm_formula(instance, delta=delta, gap=FORMULA_GAP),
        rage_glm_2_formula(instance, delta=delta, gap=FORMULA_GAP),
        kazerouni_wein_formula(instance),
        fixed_g_optimal_formula(instance),
    ]


def _forecasts(
    instance: "Instance", names: list[str], policies: str, delta: float, runs: int, price: float | None, seed: int
) -> "list[Forecast]":
    """Simulated searches of every policy named, told nothing but delta; with a bar, since they may take minutes."""
    from rich.console import Console
    from rich.progress import track

    from surepick.identify import Problem
    from surepick.identify.forecast import forecast
    from surepick.registry import policy_named

    problem = Problem(instance.measurements, instance.items, names=names)
    chosen = [policy_named(word, delta=delta) for word in policies.split(",") if word]
    bar = track(chosen, "simulating policies", console=Console(stderr=True), transient=True, disable=not chosen)
    return [forecast(problem, each, instance.theta, runs=runs, seed=seed, price=price) for each in bar]


def _ratio(formula: "Formula", shared: float) -> float | None:
    return None if formula.order_only else formula.questions / shared


def _print_table(
    instance: "Instance",
    names: list[str],
    bound: "LowerBound",
    shared: float,
    winner: tuple[float, float] | None,
    rho: float,
    forecasts: "list[Forecast]",
    formulas: "list[Formula]",
) -> None:
    from rich.console import Console

    from surepick.cli.output import print_table
    from surepick.limits.lower_bound import nats

    console = Console()
    hardest = names[bound.rivals[bound.dual_weights.argmax()]]
    assumed = "the assumed theta" if bound.guarantee == "proved" else "the estimate, taken as the truth"
    console.print(
        f"Best under {assumed}: {names[bound.best]}, ahead by {instance.smallest_gap:.4g} in log-odds; hardest "
        f"rival: {hardest}. Every method with error probability {bound.delta:g} asks at least {shared:,.1f} questions "
        f"on average. {bound.sentence}"
    )
    proved = [
        ("lower bound, error shared among the rivals", shared),
        ("lower bound, change of measure", bound.questions),
    ]
    if winner is not None:
        proved += [
            ("lower bound without features, error shared", winner[1]),
            ("the same, change of measure", winner[0]),
        ]
    rows: list[dict[str, object]] = [
        {"what": what, "questions": questions, "ratio": questions / shared, "guarantee": str(bound.guarantee)}
        for what, questions in proved
    ]
    quadratic = 2 * rho * nats(bound.delta)
    rows.append(
        {
            "what": "change of measure, quadratic form",
            "questions": quadratic,
            "ratio": quadratic / shared,
            "guarantee": "heuristic",
        }
    )
    for forecast in forecasts:
        low, high = forecast.interval()
        between = f": 80% between {low:,.0f} and {high:,.0f}" if high < math.inf else ""
        cost = "" if forecast.cost is None else f", cost {forecast.cost:,.6g}"
        rows.append(
            {
                "what": f"{forecast.policy}, simulated{between}{cost}",
                "questions": forecast.expected,
                "ratio": forecast.expected / shared,
                "guarantee": str(forecast.guarantee),
            }
        )
    rows += [
        {
            "what": f"{each.name}: {each.statement}" + (" (order only)" if each.order_only else ""),
            "questions": float(each.questions),
            "ratio": _ratio(each, shared),
            "guarantee": str(each.guarantee),
        }
        for each in formulas
    ]
    print_table("Questions, and their ratio to the highest lower bound with features", rows)
