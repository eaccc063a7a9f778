"""`surepick ask`: the person at the terminal answers, and may stop at any time and resume later."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.output import DROP_BAD_ROWS_HELP
from surepick.cli.search import (
    about_sets,
    announce_costs,
    announce_preparation,
    conclude,
    knowing_people,
    open_session,
    problem_of,
    read_compared,
    warmed,
)
from surepick.cli.search_options import (
    ASSUME_HELP,
    COMPARED,
    EPSILON_HELP,
    FEATURES_HELP,
    INPUTS_HELP,
    ITEMS_HELP,
    KIND_HELP,
    PCA_HELP,
    PICK_HELP,
    POPULATION_HELP,
    POSITION_HELP,
    RANK_HELP,
    REPEATS_HELP,
    REPORT_HELP,
    SEED_HELP,
    SETS,
    SHOW_HELP,
    STRATA_HELP,
    SYSTEMS_HELP,
    TOP_HELP,
    WARM_HELP,
    Assumption,
    Kind,
    Repeats,
)

if TYPE_CHECKING:
    from surepick.identify import Policy


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
    population: Annotated[list[Path] | None, typer.Option(help=POPULATION_HELP)] = None,
    warm_start: Annotated[Path | None, typer.Option(help=WARM_HELP)] = None,
    repeats: Annotated[
        Repeats | None, typer.Option(help=f"{REPEATS_HELP} By default once with features, else spaced.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Answer at most this many questions.")] = None,
    kind: Annotated[Kind, typer.Option(help=KIND_HELP)] = "pairs",
    position: Annotated[bool, typer.Option("--position", help=POSITION_HELP)] = False,
    show: Annotated[int | None, typer.Option(min=2, max=9, help=SHOW_HELP, rich_help_panel=SETS)] = None,
    pick: Annotated[bool, typer.Option("--pick", help=PICK_HELP, rich_help_panel=SETS)] = False,
    rank: Annotated[bool, typer.Option("--rank", help=RANK_HELP, rich_help_panel=SETS)] = False,
    top: Annotated[int | None, typer.Option(min=1, help=TOP_HELP, rich_help_panel=SETS)] = None,
    pca: Annotated[int | None, typer.Option(help=PCA_HELP)] = None,
    features: Annotated[bool, typer.Option("--features/--no-features", help=FEATURES_HELP)] = True,
    question: Annotated[str, typer.Option(help="The question shown above the items, in your own words.")] = "",
    blind: Annotated[
        bool, typer.Option("--blind", help="Hide the names of the items; show only text, image and colour.")
    ] = False,
    drop_bad_rows: Annotated[bool, typer.Option("--drop-bad-rows", help=DROP_BAD_ROWS_HELP)] = False,
    seed: Annotated[int, typer.Option(min=0, help=SEED_HELP)] = 0,
    state: Annotated[Path | None, typer.Option(help="The log; by default ITEMS.answers.jsonl in this folder.")] = None,
    report: Annotated[Path | None, typer.Option(help=REPORT_HELP)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON at the end.")] = False,
) -> None:
    """Ask the person at the terminal until the favourite is known; run it again to continue where you stopped."""
    import time

    from rich.console import Console

    from surepick.cli.display import BackgroundForecast
    from surepick.errors import InvalidInput
    from surepick.identify.ladder import default_assumption, has_features, policy_for
    from surepick.judges.earlier import earlier_answers
    from surepick.judges.terminal import TerminalJudge
    from surepick.report import Outcome
    from surepick.session import AskLoop

    table, named_by = read_compared(
        items, systems, inputs, strata, pca=pca, features=features, drop_bad_rows=drop_bad_rows
    )
    path = state or Path(f"{named_by.stem}.answers.jsonl")
    sets = about_sets(show, top, pick=pick, rank=rank)
    if sets is not None and (kind != "pairs" or position):
        raise InvalidInput(
            "--show, --pick and --rank ask about several items at once, without --kind or --position; leave these out."
        )
    problem = problem_of(table, kind, seed, sets, position=position)
    # A person meets the same two systems on many inputs, which are different questions.
    ends = assume or default_assumption(problem, one_person=not problem.inputs)
    policy: Policy[Any] = policy_for(problem, ends, delta=delta, epsilon=epsilon)
    if population:
        policy = knowing_people(policy, problem, population)
    unused: tuple[str, ...] = ()
    if warm_start is not None:
        old, unused = earlier_answers(warm_start, problem, table.names, drop_bad_rows=drop_bad_rows)
        policy = warmed(policy, old)
    # A person answers each pair once where features connect the pairs. Elsewhere, and where there are few questions,
    # repeated answers are needed, and count if the first one may be forgotten.
    once = bool(problem.inputs) or (kind == "pairs" and has_features(problem))
    chosen = repeats or ("once" if once or sets is not None else "spaced")
    announce_preparation(table.prepared(problem))
    announce_costs(problem, ends, delta)
    if ends == "winner" and chosen != "independent" and not problem.inputs and sets is None:
        typer.echo(
            "One person alone rarely gets further than a short list with this claim, because a repeated answer may "
            "only be remembered. --assume population usually ends with one item.",
            err=True,
        )
    session = open_session(problem, policy, seed, path, chosen)
    began = time.perf_counter()
    forecast = BackgroundForecast(policy)
    judge = TerminalJudge(
        table,
        Console(stderr=True),
        lambda: forecast.sentence(session),
        question=question,
        blind=blind,
    )
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
        ended="no question left for you" if session.exhausted else "interrupted",
        unused=unused,
        forecast=None if session.exhausted else forecast.known(session),
    )
    conclude(outcome, state=path, report=report, json=json, interrupted=interrupted)
