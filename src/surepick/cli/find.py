"""`surepick find`: ask a program, recorded votes or a simulated judge until the best item is known."""

import json as json_module
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from surepick.cli.limits import read_theta
from surepick.cli.output import print_json

if TYPE_CHECKING:
    from surepick.identify import Policy, Problem
    from surepick.io.items import ItemTable
    from surepick.judges import World
    from surepick.judges.panel import Panel

Kind = Literal["pairs", "items", "both"]
Order = Literal["policy", "file"]


def find(
    items: Annotated[
        Path,
        typer.Argument(
            help="Items (CSV or Parquet): column item; all else but label, image, text, colour is a feature."
        ),
    ],
    judge: Annotated[
        str | None,
        typer.Option(
            help="A program that reads a JSON question a line and writes a JSON answer a line.",
            rich_help_panel="Who answers (exactly one)",
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="Recorded votes: item_a,item_b,winner or item,answer.", rich_help_panel="Who answers (exactly one)"
        ),
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate",
            help="A simulated judge, of --theta or of a random taste.",
            rich_help_panel="Who answers (exactly one)",
        ),
    ] = False,
    judges: Annotated[int, typer.Option(min=1, help="With --judge: how many of the program run at once.")] = 1,
    retries: Annotated[int, typer.Option(min=0, help="With --judge: how often a failed question is asked again.")] = 2,
    timeout: Annotated[float, typer.Option(min=0.001, help="With --judge: seconds to wait for an answer.")] = 60.0,
    cost_per_question: Annotated[
        float, typer.Option(min=0.0, help="With --judge: unless the answer has a field cost.")
    ] = 0.0,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, help="With --judge: stop before this would be exceeded.")
    ] = None,
    order: Annotated[
        Order, typer.Option(help="With --answers: policy asks and gets the next vote on it, or file.")
    ] = "policy",
    theta: Annotated[
        Path | None, typer.Option(help="With --simulate: columns feature,theta, in the table's units.")
    ] = None,
    with_others: Annotated[
        bool, typer.Option("--compare", help="With --simulate: also what others need, and the least possible.")
    ] = False,
    warm_start: Annotated[Path | None, typer.Option(help="Old votes, to predict from; they are no evidence.")] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability of naming the wrong item.")] = 0.05,
    epsilon: Annotated[
        float, typer.Option(help="Accept an item that is worse than the best by so much (log-odds).")
    ] = 0.0,
    budget: Annotated[int | None, typer.Option(help="Most questions to ask.")] = None,
    policy: Annotated[str, typer.Option(help="Who chooses the questions.")] = "anytime",
    kind: Annotated[Kind, typer.Option(help="Which of two (pairs), yes/no about one (items), or both.")] = "pairs",
    position: Annotated[
        bool, typer.Option("--position", help="Learn what being shown first is worth (with --kind pairs).")
    ] = False,
    pca: Annotated[int | None, typer.Option(help="Reduce the features to so many principal components.")] = None,
    features: Annotated[
        bool, typer.Option("--features/--no-features", help="Without features every item has a score of its own.")
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Same seed and answers, same questions.")] = 0,
    state: Annotated[
        Path | None, typer.Option(help="Log every question and answer here; the same command goes on with it.")
    ] = None,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="Also intervals on the scores and ranks of all items.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="Write a report with pictures to this HTML file.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate to this JSON file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find the best item, ask as little as possible, and say how sure it is. Exit code 1 if it is not decided."""
    from surepick.cli.printer import print_outcome
    from surepick.cli.progress import Horizon, Watch
    from surepick.cli.runner import Search, open_session
    from surepick.errors import InvalidInput
    from surepick.io.items import read_items
    from surepick.judges import read_votes, turned_to_votes, warm_answers
    from surepick.judges.panel import ProgramPanel, RecordedPanel, SimulatedPanel
    from surepick.registry import policy_named
    from surepick.report import Outcome, compare, write_report

    if (judge is not None) + (answers is not None) + simulate != 1:
        raise InvalidInput(
            "Say who answers: exactly one of --judge CMD (a program), --answers FILE (recorded votes) or --simulate."
        )
    if position and (answers is not None or warm_start is not None):
        raise InvalidInput(
            "--position needs pairs whose order the search chooses, and recorded votes (--answers, --warm-start) have "
            "theirs; leave one of them out."
        )
    table = read_items(items, pca=pca, features=features)
    limits = {"delta": delta, "epsilon": epsilon} | ({} if budget is None else {"budget": budget})
    chosen: Policy[Any] = policy_named(policy, **limits)
    votes, world = None, None
    if answers is not None:
        problem, votes = read_votes(table, answers)
    else:
        problem = table.problem(kind, seed=seed, position=position)
    if simulate:
        world = simulated_world(problem, table, theta, seed)
    unused = () if votes is None else votes.unused
    if warm_start is not None:
        old = read_votes(table, warm_start)[1]
        chosen = _warmed(chosen, warm_answers(problem, old))
        unused = (*unused, *old.unused)
    if votes is not None:
        chosen = turned_to_votes(chosen, votes, order)
    session = open_session(problem, chosen, seed, state)
    panel: Panel
    if votes is not None:
        votes.resume(session)
        panel = RecordedPanel(votes)
    elif world is not None:
        panel = SimulatedPanel(world.theta, seed)
    else:
        assert judge is not None
        panel = ProgramPanel(judge, table, judges, timeout, retries, cost_per_question)
    search = Search(session, panel, cost_per_question, max_cost)
    # Recorded votes end when they end, whatever more it would take.
    horizon = Horizon(chosen) if votes is None else None
    with Watch(table, delta=delta, horizon=horizon) as watch:
        search.run(watch)
    outcome = Outcome(
        session,
        table,
        command=shlex.join(["surepick", *sys.argv[1:]]),
        seconds=search.seconds,
        ended="votes ran out" if votes is not None and search.ended is None else search.ended,
        unused=unused,
        troubles=tuple(search.troubles),
        spent=search.spent,
        truth=None if world is None else world.best,
        comparison=compare(world, delta=delta, seed=seed) if world is not None and with_others else None,
        recorded=None if votes is None else votes.as_shown(),
        remaining=None if votes is None else votes.remaining,
        forecast=None if horizon is None else horizon.known(session),
        ranks=ranks,
    )
    if certificate is not None and outcome.certificate is not None:
        certificate.parent.mkdir(parents=True, exist_ok=True)
        certificate.write_text(json_module.dumps(outcome.certificate))
    if report is not None:
        write_report(outcome, report)
    if json:
        print_json(outcome.to_json())
    else:
        print_outcome(outcome, state=state, report=report)
    if search.ended == "interrupted":
        raise typer.Exit(130)
    if not outcome.verdict.status.decided:
        raise typer.Exit(1)


def _warmed(policy: "Policy[Any]", old: tuple[tuple[int, int, int], ...]) -> "Policy[Any]":
    """The policy with old votes to predict from."""
    from dataclasses import replace

    from surepick.errors import InvalidInput
    from surepick.identify import Anytime

    if not isinstance(policy, Anytime):
        raise InvalidInput(
            f"--warm-start needs the policy anytime, whose evidence counts no old votes; not {policy.name}."
        )
    return replace(policy, warm=old)


def simulated_world(problem: "Problem", items: "ItemTable", theta: Path | None, seed: int) -> "World":
    """A judge's hidden taste: of the file, or random, with log-odds of a usual spread; the place does not matter."""
    import numpy as np

    from surepick.errors import InvalidInput
    from surepick.identify.posterior_sample import USUAL_LOGIT
    from surepick.judges import World

    if theta is None:
        taste = np.asarray(np.random.default_rng([seed, 5]).normal(size=items.features.shape[1]))
        spread = float(np.std((items.features - items.features.mean(axis=0)) @ taste))
        taste = taste * (USUAL_LOGIT / spread if spread > 0 else 1.0)
    elif items.per_unit.shape[0] != items.per_unit.shape[1]:
        raise InvalidInput("--theta speaks of columns of the table, and --pca has mixed them; leave one of them out.")
    else:
        taste = np.asarray(np.linalg.solve(items.per_unit, read_theta(theta, list(items.columns))))
    extra = problem.items.shape[1] - len(taste)  # an intercept comes first, the coordinate of the place last
    return World("simulated", problem, np.pad(taste, (0, extra) if problem.position else (extra, 0)))
