"""`surepick ask`: the person at the terminal answers, and may stop at any time and resume later."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.find import (
    ASSUME_HELP,
    COMPARED,
    EPSILON_HELP,
    INPUTS_HELP,
    ITEMS_HELP,
    KIND_HELP,
    PCA_HELP,
    POSITION_HELP,
    REPEATS_HELP,
    REPORT_HELP,
    SEED_HELP,
    STRATA_HELP,
    SYSTEMS_HELP,
    Assumption,
    Kind,
    Repeats,
    announce_costs,
    conclude,
    open_session,
    read_compared,
)


def ask(
    items: Annotated[Path | None, typer.Argument(help=ITEMS_HELP)] = None,
    systems: Annotated[Path | None, typer.Option(help=SYSTEMS_HELP, rich_help_panel=COMPARED)] = None,
    inputs: Annotated[Path | None, typer.Option(help=INPUTS_HELP, rich_help_panel=COMPARED)] = None,
    strata: Annotated[str | None, typer.Option(help=STRATA_HELP, rich_help_panel=COMPARED)] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability of naming the wrong item.")] = 0.05,
    epsilon: Annotated[float, typer.Option(help=EPSILON_HELP)] = 0.0,
    assume: Annotated[
        Assumption | None, typer.Option(help=f"{ASSUME_HELP} By default features, if there are any.")
    ] = None,
    repeats: Annotated[
        Repeats | None, typer.Option(help=f"{REPEATS_HELP} By default once with features, else spaced.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Answer at most this many questions.")] = None,
    kind: Annotated[Kind, typer.Option(help=KIND_HELP)] = "pairs",
    position: Annotated[bool, typer.Option("--position", help=POSITION_HELP)] = False,
    pca: Annotated[int | None, typer.Option(help=PCA_HELP)] = None,
    seed: Annotated[int, typer.Option(min=0, help=SEED_HELP)] = 0,
    state: Annotated[Path | None, typer.Option(help="The log; by default ITEMS.answers.jsonl in this folder.")] = None,
    report: Annotated[Path | None, typer.Option(help=REPORT_HELP)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON at the end.")] = False,
) -> None:
    """Ask the person at the terminal until the favourite is known; run it again to go on where you stopped."""
    import time

    from rich.console import Console

    from surepick.cli.display import BackgroundForecast
    from surepick.identify.ladder import default_assumption, has_features, policy_for
    from surepick.judges.terminal import TerminalJudge
    from surepick.report import Outcome
    from surepick.session import AskLoop

    table, named_by = read_compared(items, systems, inputs, strata, pca=pca)
    path = state or Path(f"{named_by.stem}.answers.jsonl")
    problem = table.problem(kind, seed=seed, position=position)
    # A person meets the same two systems on many inputs, which are different questions.
    ends = assume or default_assumption(problem, one_person=not problem.inputs)
    policy = policy_for(problem, ends, delta=delta, epsilon=epsilon)
    # A person answers each pair once where features connect the pairs. Elsewhere, and where there are few questions,
    # repeated answers are needed, and count if the first one may be forgotten.
    once = bool(problem.inputs) or (kind == "pairs" and has_features(problem))
    chosen = repeats or ("once" if once else "spaced")
    announce_costs(problem, ends, delta)
    session = open_session(problem, policy, seed, path, chosen)
    began = time.perf_counter()
    forecast = BackgroundForecast(policy)
    judge = TerminalJudge(table, Console(stderr=True), lambda: session.answered, lambda: forecast.sentence(session))
    interrupted = False
    try:
        # The budget is the loop's, not the policy's: a later call may give another one and resume the same log.
        AskLoop(session, judge, budget=budget).run()
    except KeyboardInterrupt:
        interrupted = True
    outcome = Outcome(
        session,
        table,
        command=shlex.join(["surepick", *sys.argv[1:]]),
        seconds=time.perf_counter() - began,
        ended="interrupted",
        forecast=forecast.known(session),
    )
    conclude(outcome, state=path, report=report, json=json, interrupted=interrupted)
