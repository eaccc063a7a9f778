"""What `find` and `ask` show: the search while it runs, how long it may take, and its outcome at the end."""

import math
import threading
import time
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from surepick.cli.output import print_sentences
from surepick.identify import Forecast, Policy, Problem, Verdict
from surepick.identify.forecast import OpenStage, forecast_further
from surepick.io.items import ItemTable
from surepick.report import Outcome
from surepick.report.sentences import REFUTED, certainty, claim_around, claim_result, equally_good, odds
from surepick.session import AskLoop, Session

SHARE = 0.15
"""Most of the time that may go into evaluating what the live display shows."""

FIRST_LINE = 1000
"""Answers after which a search that is not shown live says for the first time how far it is."""

MOST_NAMED = 12
"""Items named in a line of the live display."""

MOST_LISTED = 5
"""Rivals listed at the end."""


def swatch(items: ItemTable, name: str, *, width: int = 2) -> Text:
    """A patch of the item's colour, or nothing where it has none."""
    colour = items.colour(name)
    return Text(" " * width, style=f"on {colour}") if colour else Text("")


def named(items: ItemTable, name: str, console: Console) -> Text:
    """An item with its swatch, where the console shows colours."""
    patch = swatch(items, name) if console.color_system else Text("")
    return Text.assemble(patch, " " if patch else "", items.label(name))


def survivors(items: ItemTable, verdict: Verdict, *, most: int = MOST_NAMED) -> Text:
    """Items not excluded: all swatches where there are colours, else the first few names."""
    if "colour" in items.shown:
        width = 1 if len(items.names) > 30 else 2
        return Text("").join(
            swatch(items, name, width=width) if name in verdict.surviving else Text("·" * width, style="dim")
            for name in items.names
        )
    shown = ", ".join(items.label(name) for name in verdict.surviving[:most])
    return Text(shown + (f" and {len(verdict.surviving) - most} more" if len(verdict.surviving) > most else ""))


class BackgroundForecast:
    """How many more questions it may take, simulated in the background each time the answers have grown by half."""

    def __init__(self, policy: Policy[Any]) -> None:
        self._policy = policy
        self._known: tuple[int, Forecast] | None = None
        self._at_work: threading.Thread | None = None

    def sentence(self, session: Session) -> str:
        """What is known by now; at first nothing."""
        idle = self._at_work is None or not self._at_work.is_alive()
        if idle and session.answered >= max(10, 1.5 * (0 if self._known is None else self._known[0])):
            # A daemon: whoever is done with the search does not wait for it.
            self._at_work = threading.Thread(
                target=self._simulate, args=(session.answered, session.problem, *session.progress()), daemon=True
            )
            self._at_work.start()
        known = self.known(session)
        return "" if known is None else known.sentence

    def known(self, session: Session) -> Forecast | None:
        """The last forecast, less the answers since; None before the first, and when there is a verdict."""
        if self._known is None or session.final is not None:
            return None
        at, forecast = self._known
        return forecast.after(session.answered - at)

    def _simulate(self, answered: int, problem: Problem, state: Any, stages: list[OpenStage]) -> None:
        self._known = (answered, forecast_further(problem, self._policy, state, stages, seed=answered))


class LiveDisplay:
    """Shows a running search on standard error: live where that is a terminal, elsewhere a line now and then."""

    def __init__(self, items: ItemTable, *, delta: float, forecast: BackgroundForecast | None = None) -> None:
        self._items = items
        self._needed = math.log(1 / delta)
        self._forecast = forecast
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._began = time.perf_counter()
        self._shown_at = 0.0
        self._took = 0.0
        self._next_line = FIRST_LINE

    def __enter__(self) -> "LiveDisplay":
        if self._console.is_terminal:
            self._live.start()
            # Planning the first question about very many items takes a second or two.
            self._live.update(
                Text(f"{len(self._items.names):,} items; the first question is being planned."), refresh=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, loop: AskLoop) -> None:
        """Show the search as it stands, unless that would take more than its share of the time."""
        now = time.perf_counter()
        if not self._live.is_started:
            self._print_line(loop)
            return
        if now - self._shown_at < max(0.25, self._took / SHARE):
            return
        session = loop.session
        # Asked of the policy: a final verdict is for the loop to reach and to log, not for whoever watches it.
        verdict = session.policy.verdict(session.progress()[0])
        self._shown_at = time.perf_counter()
        self._took = self._shown_at - now
        self._live.update(self._grid(loop, verdict))

    def _print_line(self, loop: AskLoop) -> None:
        """One line each time the answers have doubled, so that a search without end is not silent."""
        session = loop.session
        if session.answered < self._next_line:
            return
        while self._next_line <= session.answered:
            self._next_line *= 2
        verdict = session.policy.verdict(session.progress()[0])
        if verdict.status.final:
            return  # which is said at the end
        self._console.print(
            f"{session.answered:,} answers in {time.perf_counter() - self._began:.0f} s: "
            f"{self._items.label(verdict.best)} leads, {len(verdict.surviving):,} of "
            f"{len(session.problem.names):,} items are not excluded. Ctrl-C ends the search with this best guess.",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    def _grid(self, loop: AskLoop, verdict: Verdict) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column()
        grid.add_row("questions", f"{loop.session.answered:,} answered in {time.perf_counter() - self._began:.0f} s")
        grid.add_row("leading", named(self._items, verdict.best, self._console))
        grid.add_row(
            f"still in: {len(verdict.surviving)} of {len(loop.session.problem.names)}", survivors(self._items, verdict)
        )
        evidence = verdict.weakest
        if evidence is not None:
            shown = min(max(evidence, 0.0), self._needed)
            bar = ProgressBar(total=self._needed, completed=shown, width=40)
            grid.add_row("evidence", bar)
        further = "" if self._forecast is None else self._forecast.sentence(loop.session)
        if further:
            grid.add_row("left", further)
        if loop.max_cost is not None:
            grid.add_row("cost", f"{loop.spent:,.4g} of at most {loop.max_cost:,.4g}")
        return grid


def print_outcome(outcome: Outcome, *, state: Path | None = None, report: Path | None = None) -> None:
    """The verdict as a sentence, the closest rivals as a table, and what was left out."""
    console = Console()
    console.print(_claim(outcome, console))
    verdict, items = outcome.verdict, outcome.items
    if verdict.rivals:
        grid = Table(title=f"Closest rivals ({min(MOST_LISTED, len(verdict.rivals))} of {len(verdict.rivals)})")
        grid.title_justify = "left"
        grid.add_column("item")
        grid.add_column("odds against it", justify="right")
        grid.add_column("excluded", justify="right")
        for rival in verdict.rivals[:MOST_LISTED]:
            grid.add_row(
                named(items, rival.name, console),
                odds(rival.evidence),
                "no" if rival.name in verdict.surviving else "yes",
            )
        console.print(grid)
    if len(verdict.claims) > 1:
        _print_claims(console, outcome)
    if outcome.ranks:
        _print_scores(console, outcome)
    if outcome.comparison is not None:
        _print_comparison(console, outcome)
    for check in outcome.checks:
        if check.alarm:
            console.print(Text.assemble(("Alarm: ", "bold red"), check.sentence))
    if not any(check.alarm for check in outcome.checks):
        console.print(f"[dim]{len(outcome.checks)} checks of the assumptions: no alarm.[/dim]", highlight=False)
    if outcome.forecast is not None:
        console.print(f"Estimated questions left: {outcome.forecast.sentence}.", highlight=False)
    print_sentences("rows could not be used (--json lists all)", outcome.left_out)
    print_sentences("questions got no answer (--json lists all)", outcome.troubles)
    if state is not None and not verdict.status.final:
        console.print(f"All answers are in {state}; run the same command to continue.")
    if report is not None:
        console.print(f"Report: {report}")


def _claim(outcome: Outcome, console: Console) -> Text:
    verdict, items = outcome.verdict, outcome.items
    best = named(items, verdict.best, console)
    best.stylize("bold")
    count = len(outcome.session.problem.names)
    before, after = claim_around(verdict.status, verdict.epsilon, count=count, why=outcome.ended or "")
    said = Text.assemble((before, "yellow"), best, f"{after}.")
    if verdict.refuted_by:
        said = Text.assemble(("Not proved: ", "bold red"), best, f"{after} only if the assumptions hold.")
    elif verdict.status.decided:
        said.append(
            f" {certainty(verdict.status, verdict.delta, verdict.epsilon, verdict.guarantee, outcome.assumption)}"
        )
    cost = f", cost {outcome.spent:,.4g}" if outcome.spent else ""
    said.append(f" {outcome.accounting}; {outcome.seconds:.1f} s{cost}.")
    same = equally_good([items.label(name) for name in verdict.also])
    for sentence in (outcome.on_average, verdict.reason, same, outcome.about_advice):
        if sentence:
            said.append(f" {sentence}")
    if outcome.truth is not None:
        right = "the same" if outcome.truth in (verdict.best, *verdict.also) else "another"
        said.append_text(
            Text.assemble(
                "\nThe truth, which the search never saw: ", named(items, outcome.truth, console), f" ({right})."
            )
        )
    return said


def _print_claims(console: Console, outcome: Outcome) -> None:
    """What the same answers prove under each assumption; a claim that is still open says how far it is."""
    grid = Table(title="What is proved under which assumption", title_justify="left")
    grid.add_column("claim")
    grid.add_column("if ...")
    grid.add_column("then")
    names = outcome.session.problem.names
    for claim in outcome.verdict.claims:
        grid.add_row(
            claim.assume,
            claim.assumption,
            claim_result(
                claim.status,
                outcome.items.label(claim.best),
                len(claim.surviving),
                len(names),
                refuted_by=claim.refuted_by,
            ),
            style="bold" if claim.ends_search else None,
        )
    console.print(grid)


def _print_comparison(console: Console, outcome: Outcome) -> None:
    known = outcome.comparison
    assert known is not None
    grid = Table(title="Questions for the same certainty", title_justify="left")
    grid.add_column("method")
    grid.add_column("questions", justify="right")
    if known.least is not None:
        grid.add_row("no method needs fewer on average (proved)", f"{known.least:,.0f}")
    grid.add_row(f"surepick ({outcome.verdict.policy}), this run", f"{outcome.verdict.questions:,}", style="bold")
    if known.printed is not None:
        grid.add_row("RAGE-GLM as printed, told the true κ₀", f"{known.printed:,}")
    grid.add_row("for scale: every question once (proves nothing)", f"{known.pairs:,}", style="dim")
    console.print(grid)


def _print_scores(console: Console, outcome: Outcome) -> None:
    known = outcome.scores
    if known is None:
        return
    if known.refuted:
        console.print(Text(REFUTED, style="red"))
        return
    grid = Table(title="Scores against the mean, and ranks")
    grid.title_justify = "left"
    grid.add_column("item")
    for column in ("score", "interval", "rank"):
        grid.add_column(column, justify="right")
    for place, item in enumerate(known.items):
        ends = f"{known.low[place]:+.2f} … {known.high[place]:+.2f}"
        ranks = f"{known.best_rank[place]}–{known.worst_rank[place]}"
        name = outcome.session.problem.names[item]
        grid.add_row(named(outcome.items, name, console), f"{known.score[place]:+.2f}", ends, ranks)
    console.print(grid)
    console.print(known.note, style="dim", highlight=False)
