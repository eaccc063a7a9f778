"""What `find` and `ask` print at the end."""

import math
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surepick.cli.progress import named
from surepick.report import Outcome

SHOWN = 5
"""Rivals, rows left out and troubles shown."""


def print_outcome(outcome: Outcome, *, state: Path | None = None, report: Path | None = None) -> None:
    """The verdict as a sentence, the closest rivals as a table, and what was left out."""
    console = Console()
    console.print(_claim(outcome))
    verdict, items = outcome.verdict, outcome.items
    if verdict.rivals:
        grid = Table(title=f"Closest rivals ({min(SHOWN, len(verdict.rivals))} of {len(verdict.rivals)})")
        grid.title_justify = "left"
        grid.add_column("item")
        grid.add_column("odds against it", justify="right")
        grid.add_column("excluded", justify="right")
        for rival in verdict.rivals[:SHOWN]:
            grid.add_row(
                named(items, rival.name), _odds(rival.evidence), "no" if rival.name in verdict.surviving else "yes"
            )
        console.print(grid)
    if outcome.ranks:
        _print_standing(console, outcome)
    if outcome.comparison is not None:
        _print_comparison(console, outcome)
    for check in outcome.checks:
        if check.alarm:
            console.print(Text.assemble(("Alarm: ", "bold red"), check.sentence))
    if not any(check.alarm for check in outcome.checks):
        console.print(f"[dim]{len(outcome.checks)} checks of assumptions, no alarm.[/dim]", highlight=False)
    if outcome.forecast is not None:
        console.print(f"To a verdict: {outcome.forecast.sentence}.", highlight=False)
    for title, sentences in (
        ("rows could not be used", outcome.left_out),
        ("questions got no answer", outcome.troubles),
    ):
        if sentences:
            console.print(f"[yellow]{len(sentences):,} {title}[/yellow] (--json has all):")
            for sentence in sentences[:SHOWN]:
                console.print(Text(f"  {sentence}"))
    if state is not None and not verdict.status.final:
        console.print(f"All answers are in {state}; the same command goes on from there.")
    if report is not None:
        console.print(f"Report: {report}")


def _odds(nats: float | None) -> str:
    """Evidence as people say it; less than one to one is none."""
    if nats is None or nats <= 0:
        return "–"
    return f"{math.exp(nats):,.0f} to 1" if nats < math.log(1e6) else "over 1,000,000 to 1"


def _claim(outcome: Outcome) -> Text:
    verdict, items = outcome.verdict, outcome.items
    count = len(outcome.session.problem.names)
    best = named(items, verdict.best)
    best.stylize("bold")
    none = [f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in outcome.without_decision.items() if count]
    besides = f" ({' and '.join(none)} besides)" if none else ""
    asked = f"{verdict.questions:,} answers{besides}, {outcome.seconds:.1f} s"
    if outcome.spent:
        asked += f", cost {outcome.spent:,.4g}"
    wrong = f"wrong with probability at most {verdict.delta:g} ({verdict.guarantee})"
    if verdict.status == "certain":
        said = Text.assemble(best, f" is the best of {count}: {wrong}; {asked}.")
    elif verdict.status == "within epsilon":
        said = Text.assemble(best, f" is within {verdict.epsilon:g} of the best of {count}: {wrong}; {asked}.")
    else:
        # How many are not excluded, and why a verdict is final without a decision, is in its reason.
        why = "" if verdict.status.final else f" ({outcome.status})"
        said = Text.assemble((f"Not decided{why}. ", "yellow"), f"The best guess of {count} is ", best, f"; {asked}.")
        said.append(f" {verdict.reason}")
    if verdict.also:
        said.append(f" Of the same features, so equally good: {', '.join(items.label(name) for name in verdict.also)}.")
    if outcome.truth is not None:
        right = "the same" if outcome.truth in (verdict.best, *verdict.also) else "another"
        said.append_text(
            Text.assemble("\nThe truth, which the search never saw: ", named(items, outcome.truth), f" ({right}).")
        )
    if outcome.remaining:
        said.append(f"\n{outcome.remaining:,} recorded votes were not used.")
    return said


def _print_comparison(console: Console, outcome: Outcome) -> None:
    known = outcome.comparison
    assert known is not None
    grid = Table(title="Questions for the same certainty", title_justify="left")
    grid.add_column("method")
    grid.add_column("questions", justify="right")
    if known.least is not None:
        grid.add_row("no method can do with fewer on average (proved)", f"{known.least:,.0f}")
    grid.add_row(f"surepick ({outcome.verdict.policy}), this run", f"{outcome.verdict.questions:,}", style="bold")
    if known.printed is not None:
        grid.add_row("RAGE-GLM as printed, though told the true κ₀", f"{known.printed:,}")
    grid.add_row("for scale: every question once, which proves nothing", f"{known.pairs:,}", style="dim")
    console.print(grid)


def _print_standing(console: Console, outcome: Outcome) -> None:
    known = outcome.standing
    if known is None:
        return
    if known.refuted:
        console.print("[red]The answers refute every logistic model with these features; intervals mean nothing.[/red]")
        return
    grid = Table(title=f"Scores against the mean, and ranks; all at once with probability {1 - known.delta:g}")
    grid.title_justify = "left"
    grid.add_column("item")
    for column in ("score", "interval", "rank"):
        grid.add_column(column, justify="right")
    for place, item in enumerate(known.items):
        ends = f"{known.low[place]:+.2f} … {known.high[place]:+.2f}"
        ranks = f"{known.best_rank[place]}–{known.worst_rank[place]}"
        name = outcome.session.problem.names[item]
        grid.add_row(named(outcome.items, name), f"{known.score[place]:+.2f}", ends, ranks)
    console.print(grid)
