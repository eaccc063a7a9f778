"""What a search looks like while it runs: who is still in, how strong the evidence is, how long it may take."""

import math
import threading
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from surepick.identify import Forecast, Policy, Problem, Verdict
from surepick.identify.forecast import OpenStage, forecast_further
from surepick.io.items import ItemTable
from surepick.session import Session

if TYPE_CHECKING:
    from surepick.cli.runner import Search

SHARE = 0.15
"""Share of the time that may go into looking."""

MOST_SHOWN = 12
"""Items named in a line."""


def swatch(items: ItemTable, name: str, *, width: int = 2) -> Text:
    """A patch of the item's colour, or nothing where it has none."""
    colour = items.colour(name)
    return Text(" " * width, style=f"on {colour}") if colour else Text("")


def named(items: ItemTable, name: str) -> Text:
    """An item with its swatch."""
    patch = swatch(items, name)
    return Text.assemble(patch, " " if patch else "", items.label(name))


def survivors(items: ItemTable, verdict: Verdict, *, most: int = MOST_SHOWN) -> Text:
    """Items not excluded: all swatches where there are colours, else the first few names."""
    if "colour" in items.shown:
        width = 1 if len(items.names) > 30 else 2
        return Text("").join(
            swatch(items, name, width=width) if name in verdict.surviving else Text("·" * width, style="dim")
            for name in items.names
        )
    shown = ", ".join(items.label(name) for name in verdict.surviving[:most])
    return Text(shown + (f" and {len(verdict.surviving) - most} more" if len(verdict.surviving) > most else ""))


class Horizon:
    """How many more questions it may take, simulated in the background whenever half as many answers more are in."""

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
                target=self._look, args=(session.answered, session.problem, *session.progress()), daemon=True
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

    def _look(self, answered: int, problem: Problem, state: Any, stages: list[OpenStage]) -> None:
        self._known = (answered, forecast_further(problem, self._policy, state, stages, seed=answered))


class Watch:
    """Shows a running search on the terminal (standard error); where that is none, nothing is shown."""

    def __init__(self, items: ItemTable, *, delta: float, horizon: Horizon | None = None) -> None:
        self._items = items
        self._needed = math.log(1 / delta)
        self._horizon = horizon
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._looked = 0.0
        self._took = 0.0

    def __enter__(self) -> "Watch":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, search: "Search") -> None:
        """Look again if that does not take more than its share of the time."""
        now = time.perf_counter()
        if not self._live.is_started or now - self._looked < max(0.25, self._took / SHARE):
            return
        session = search.session
        # The policy's own view: a session's verdict would log the look, and the log would depend on the clock.
        verdict = session.policy.verdict(session.progress()[0])
        self._looked = time.perf_counter()
        self._took = self._looked - now
        self._live.update(self._shown(search, verdict))

    def _shown(self, search: "Search", verdict: Verdict) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column()
        grid.add_row("questions", f"{search.session.answered:,} answered in {search.seconds:.0f} s")
        grid.add_row("leading", named(self._items, verdict.best))
        grid.add_row(
            f"still in: {len(verdict.surviving)} of {len(search.session.problem.names)}",
            survivors(self._items, verdict),
        )
        evidence = verdict.weakest
        if evidence is not None:
            shown = min(max(evidence, 0.0), self._needed)
            bar = ProgressBar(total=self._needed, completed=shown, width=40)
            grid.add_row("evidence", bar)
        further = "" if self._horizon is None else self._horizon.sentence(search.session)
        if further:
            grid.add_row("to come", further)
        if search.max_cost is not None:
            grid.add_row("cost", f"{search.spent:,.4g} of at most {search.max_cost:,.4g}")
        return grid
