"""What `surepick find` and `surepick ask` do alike: files become a session, what is told before and after it."""

import json as json_module
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from surepick.cli.output import print_json
from surepick.cli.search_options import Assumption, Kind, Repeats

if TYPE_CHECKING:
    from surepick.identify import Policy, Problem
    from surepick.identify.policy import OldAnswers
    from surepick.io.items import ItemTable, Preparation
    from surepick.report import Outcome
    from surepick.session import Session

LEAST_PER_ITEM = 5
"""Questions per item that the claim "winner" cannot do without: one answer at most doubles the odds against an item."""

MUCH_CHEAPER = 10
"""How many times fewer questions of the other claim are pointed out in the first line."""


def read_compared(
    items: Path | None,
    systems: Path | None,
    inputs: Path | None,
    strata: str | None,
    *,
    pca: int | None = None,
    features: bool = True,
    drop_bad_rows: bool = False,
) -> "tuple[ItemTable, Path]":
    """What is compared, items or systems on inputs, and the file that other files are named after."""
    from surepick.errors import InvalidInput
    from surepick.io.items import read_items
    from surepick.io.systems import read_systems

    known = None if items is None else read_items(items, pca=pca, features=features, drop_bad_rows=drop_bad_rows)
    if systems is not None:
        return read_systems(systems, inputs, systems=known, strata=strata, drop_bad_rows=drop_bad_rows), systems
    if inputs is not None or strata is not None:
        raise InvalidInput("--inputs and --strata say what systems were given; give their outputs with --systems.")
    if known is None or items is None:
        raise InvalidInput("Name a table of items to choose from, or give outputs of systems with --systems.")
    return known, items


def about_sets(show: int | None, top: int | None, *, pick: bool, rank: bool) -> dict[str, Any] | None:
    """How questions about several items are asked, as options of `Problem.from_sets`; None for comparisons."""
    from surepick.errors import InvalidInput

    if pick and rank:
        raise InvalidInput("--pick asks for the best and --rank for the order; choose one of them.")
    if top is not None and not rank:
        raise InvalidInput("--top says how many places of a ranking are asked for; give --rank as well.")
    if show is None and not (pick or rank):
        return None
    if show == 2:
        return None  # a comparison
    return {"show": show or 4, "answer": "pick" if pick else "rank", "top": top}


def problem_of(
    table: "ItemTable", kind: Kind, seed: int, sets: dict[str, Any] | None, *, position: bool = False
) -> "Problem":
    """What is to be asked of the items of a table."""
    from surepick.identify import Problem
    from surepick.io.systems import SystemTable

    if sets is None:
        return table.problem(kind, seed=seed, position=position)
    if isinstance(table, SystemTable):
        return table.problem(**sets)
    return Problem.from_sets(table.features, names=table.names, **sets)


def warmed(policy: "Policy[Any]", old: "OldAnswers") -> "Policy[Any]":
    """The policy with old answers to predict from."""
    from dataclasses import replace

    from surepick.errors import InvalidInput
    from surepick.identify import Anytime, Exclusion, Winner

    if not isinstance(policy, Anytime | Exclusion | Winner):
        raise InvalidInput(
            "--warm-start needs the policy winner, anytime or exclusion, which do not count old votes as evidence; not "
            f"{policy.name}."
        )
    return replace(policy, warm=old)


def knowing_people(policy: "Policy[Any]", problem: "Problem", paths: list[Path]) -> "Policy[Any]":
    """The policy with the population of the people in these files."""
    from dataclasses import replace

    from surepick.errors import InvalidInput
    from surepick.identify import Posterior, Winner
    from surepick.io.people import learn_population

    if not isinstance(policy, Posterior | Winner):
        raise InvalidInput(
            f"--population is for --assume population or --assume winner, and the policy {policy.name} does not use "
            "it; add one of these options, or leave --population out."
        )
    return replace(policy, population=learn_population(problem, paths))


def open_session(
    problem: "Problem", policy: "Policy[Any]", seed: int, path: Path | None, repeats: Repeats = "independent"
) -> "Session":
    """A new session, or the one whose log is `path` if it is the same search."""
    from surepick.errors import InvalidInput
    from surepick.session import Session
    from surepick.session.journal import read_journal
    from surepick.session.session import described

    if path is None or not path.exists() or not path.stat().st_size:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        return Session(problem, policy, repeats=repeats, seed=seed, path=path)
    try:
        head = read_journal(path)[0]  # before the replay, which another policy would not understand
    except (UnicodeDecodeError, IndexError):
        raise InvalidInput(f"{path} is not a log of surepick; name another file with --state.") from None
    for what, logged, wanted in (
        ("items or questions", head.get("problem"), problem.to_json()),
        (
            "policy, delta, epsilon, budget or old votes",
            head.get("policy"),
            json_module.loads(json_module.dumps(described(policy))),
        ),
        ("seed", head.get("seed"), seed),
        ("rule for repeated answers", head.get("repeats", "independent"), repeats),
    ):
        if logged != wanted:
            raise InvalidInput(
                f"{path} is the log of another search: its {what} differ from those given now; pass the same ones to "
                "resume it, or another file with --state."
            )
    return Session.resume(path, policy=policy)


def announce_preparation(prepared: "Preparation") -> None:
    """Say, before the first question, what was done to the items."""
    for sentence in prepared.sentences:
        typer.echo(sentence, err=True)


def announce_costs(problem: "Problem", ends: Assumption, delta: float) -> None:
    """Say, before the first question, what each claim is expected to cost and which one ends the search."""
    from surepick.identify.ladder import compares, expected_costs, has_features
    from surepick.identify.verdict import two_digits

    simple = len(problem.items) > 1 and problem.obstacle is None and compares(problem) and problem.show == 2
    if ends == "population" or not simple:
        return
    if problem.every_pair and not has_features(problem):
        least = LEAST_PER_ITEM * len(problem.items)
        typer.echo(
            f"The search ends when the claim {ends} is proved. For {len(problem.items):,} items this takes more than "
            f"{least:,} questions.",
            err=True,
        )
        return
    costs = expected_costs(problem, delta=delta)
    other: Assumption = "features" if ends == "winner" else "winner"
    if ends == "winner" and costs.get("features", math.inf) * MUCH_CHEAPER < LEAST_PER_ITEM * len(problem.items):
        typer.echo(
            f"--assume features would take far fewer questions (about {two_digits(costs['features'])}): the claim "
            f"winner needs at least {LEAST_PER_ITEM} for each of the {len(problem.items):,} items.",
            err=True,
        )
    parts = [f"The search ends when the claim {ends} is proved"]
    if ends in costs:
        parts[0] += f", after about {two_digits(costs[ends])} questions"
    if other in costs:
        parts.append(f"--assume {other} would take about {two_digits(costs[other])}")
    typer.echo(f"{'; '.join(parts)} (rough estimates).", err=True)


def conclude(outcome: "Outcome", *, state: Path | None, report: Path | None, json: bool, interrupted: bool) -> None:
    """Write the report, print the outcome, and exit with a code that says how the search ended."""
    from surepick.cli.display import print_outcome
    from surepick.report import write_report

    if report is not None:
        write_report(outcome, report)
    if json:
        print_json(outcome.to_json())
    else:
        print_outcome(outcome, state=state, report=report)
    if interrupted:
        raise typer.Exit(130)
    if not outcome.verdict.stands:  # open, or decided on an assumption that the answers contradict
        raise typer.Exit(1)
