"""The outcome of a search with all that belongs to it: verdict, how it ended, what was left out, and what it cost."""

from dataclasses import dataclass
from typing import Any

from surepick._cached import cached_property
from surepick.baselines import RageGlmPrinted
from surepick.checks import Answers, Check, check_all
from surepick.errors import SurepickError
from surepick.identify import Forecast, Verdict, run
from surepick.io.items import ItemTable, Preparation
from surepick.judges import World
from surepick.limits import Instance, lower_bound
from surepick.report.history import ScoreTable, score_table
from surepick.report.sentences import accounting
from surepick.session import Session
from surepick.session.advice import Advice, advice_of

LEVEL = 0.05
"""Chance of any false alarm among the checks of the assumptions."""

ENDINGS = ("answer", "tie", "skip", "undo")
"""Events that say what has become of a question; the last one counts."""


@dataclass(frozen=True)
class OtherMethods:
    """How many questions other ways need for the same task."""

    least: float | None
    """No method with this delta asks fewer on average (proved); None where it cannot be computed."""
    printed: int | None
    """RAGE-GLM with its printed constants, told the true κ₀, in one simulated run."""
    pairs: int
    """Every question once."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"lower_bound": self.least, "rage_glm_printed": self.printed, "every_question_once": self.pairs}


def compare(world: World, *, delta: float, seed: int) -> OtherMethods:
    """Compute the lower bound for this world and simulate RAGE-GLM in it; takes seconds."""
    problem = world.problem
    try:
        least = lower_bound(
            Instance(problem.measurements, problem.items, world.theta, names=list(problem.names)), delta=delta, gap=0.05
        ).questions
    except SurepickError:  # a tie for the best, or answers certain to the precision of numbers
        least = None
    try:
        policy = RageGlmPrinted(delta=delta, kappa=world.kappa)
        printed = run(problem, policy, world.judge([seed, 3]), seed=seed)
    except SurepickError:
        return OtherMethods(least, None, len(problem.measurements))
    return OtherMethods(least, printed.questions if printed.status.decided else None, len(problem.measurements))


@dataclass(frozen=True, eq=False)
class Outcome:
    """A session when the search ended or was interrupted."""

    session: Session
    items: ItemTable
    command: str
    """What to type to get the same result; empty for sessions of a program's own."""
    seconds: float
    ended: str | None = None
    """Why no more was asked, where that is not the verdict: "votes ran out", "cost cap reached", "judges failed" or
    "interrupted"."""
    unused: tuple[str, ...] = ()
    """Sentences about recorded answers that could not be used."""
    troubles: tuple[str, ...] = ()
    """Sentences about questions that the judges failed to answer."""
    spent: float = 0.0
    truth: str | None = None
    """The best item, where the judge was simulated and it is known."""
    comparison: OtherMethods | None = None
    recorded: Answers | None = None
    """The recorded votes as they were shown, where votes were replayed."""
    remaining: int | None = None
    """Recorded votes that were not needed."""
    forecast: Forecast | None = None
    """How many more questions it may take, where that was simulated while it ran."""
    ranks: bool = False
    """Whether `to_json` includes intervals for scores and ranks."""
    with_certificate: bool = False
    """Whether `to_json` includes the certificate, which may be megabytes."""

    @classmethod
    def of(cls, session: Session, items: ItemTable | None = None) -> "Outcome":
        """A session of a program's own as it stands."""
        names = tuple(name for aliases in session.problem.aliases for name in aliases)
        known = items or ItemTable(names, session.problem.items, names)
        return cls(session, known, command="", seconds=0.0)

    @cached_property
    def verdict(self) -> Verdict:
        """Final, or what can be said so far."""
        return self.session.verdict()

    @cached_property
    def without_decision(self) -> dict[str, int]:
        """Questions that ended in a tie or were skipped, and answers that repeat an earlier one and do not count."""
        kinds = {event["id"]: event["event"] for event in self.session.log if event["event"] in ENDINGS}
        return {kind: sum(last == kind for last in kinds.values()) for kind in ("tie", "skip")}

    @cached_property
    def counts(self) -> dict[str, int]:
        """All answers by what became of them: counted, or why not; recorded votes that were not used included."""
        counts, verdict = self.without_decision, self.verdict
        replies = {event["id"]: event["event"] for event in self.session.log if event["event"] in ENDINGS}
        given = sum(ending != "undo" for ending in replies.values())
        known = {
            "counted": verdict.questions,
            "tie": 0 if self.session.takes_scores else counts["tie"],
            "skip": counts["skip"],
            "repeated by the same judge": len(self.session.uncounted),
        }
        if not verdict.status.final:
            known |= {"too late": len(self.session.late), "not evaluated yet": verdict.not_evaluated}
        rest = {"after the verdict": given - sum(known.values())} if verdict.status.final else {}
        return known | rest | {"not used": self.remaining or 0}

    @property
    def accounting(self) -> str:
        """What became of all answers, as a clause."""
        halves = self.without_decision["tie"] if self.session.takes_scores else 0
        return accounting(self.counts, kind="answer" if self.recorded is None else "vote", halves=halves)

    @property
    def assumption(self) -> str:
        """What the verdict assumes, as the sentence of the claim that ended the search; empty for other policies."""
        return next((claim.assumption for claim in self.verdict.claims if claim.ends_search), "")

    @property
    def status(self) -> str:
        """The verdict's status; where it is open, why no more was asked."""
        return str(self.verdict.status) if self.verdict.status.final or self.ended is None else self.ended

    @cached_property
    def certificate(self) -> dict[str, Any] | None:
        """The proof of the verdict as plain data, from policies that write one."""
        proved = self.verdict.status.decided and self.verdict.guarantee == "proved" and len(self.verdict.rivals) > 0
        return self.session.certificate() if proved and hasattr(self.session.policy, "certificate") else None

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Whether the assumptions of the verdict are in doubt."""
        recorded = self.recorded
        return self.session.checks(level=LEVEL) if recorded is None else check_all(recorded, level=LEVEL)

    @cached_property
    def scores(self) -> ScoreTable | None:
        """Intervals for the scores and ranks of all items; takes seconds."""
        return score_table(self.session, delta=self.verdict.delta)

    @cached_property
    def advice(self) -> Advice | None:
        """What the votes of an advisor were worth, if there was one."""
        return advice_of(self.session)

    @property
    def about_advice(self) -> str:
        """The same as a sentence; empty if there was none."""
        return "" if self.advice is None else self.advice.sentence

    @property
    def on_average(self) -> str:
        """What a comparison of systems is about, as a sentence; empty for items."""
        count = len(self.session.problem.inputs)
        return f"On average over these {count:,} inputs, drawn at random." if count else ""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Sentences about all rows of all files that could not be used."""
        return (*self.items.left_out, *self.unused)

    @property
    def prepared(self) -> Preparation:
        """What was done to the items before the first question."""
        return self.items.prepared(self.session.problem)

    def to_json(self) -> dict[str, Any]:
        """The stable fields of `surepick find --json`, and more."""
        verdict = self.verdict
        return {
            "best": verdict.best,
            "status": self.status,
            "delta": verdict.delta,
            "epsilon": verdict.epsilon,
            "questions": verdict.questions,
            "evidence": verdict.weakest,
            "rivals": [rival.to_json() for rival in verdict.rivals],
            "seconds": self.seconds,
            "policy": verdict.policy,
            "guarantee": str(verdict.guarantee),
            "certificate": self.certificate if self.with_certificate else None,
            "label": self.items.label(verdict.best),
            "also": list(verdict.also),
            "surviving": list(verdict.surviving),
            "statement": verdict.statement,
            "assumptions": list(verdict.assumptions),
            "reason": verdict.reason,
            "refuted_by": list(verdict.refuted_by),
            "claims": [claim.to_json() for claim in verdict.claims],
            "repeats": self.session.repeats,
            "checks": [check.to_json() for check in self.checks],
            "forecast": None if self.forecast is None else self.forecast.to_json(),
            "prepare": self.prepared.to_json(),
            "answers": self.counts,
            "ties": self.without_decision["tie"],
            "skips": self.without_decision["skip"],
            "left_out": list(self.left_out),
            "troubles": list(self.troubles),
            "remaining": self.remaining,
            "spent": self.spent,
            "truth": self.truth,
            "advice": None if self.advice is None else self.advice.to_json(),
            "comparison": None if self.comparison is None else self.comparison.to_json(),
            "command": self.command,
        } | self._ranks()

    def _ranks(self) -> dict[str, Any]:
        if not self.ranks:
            return {}
        known = self.scores
        names = self.session.problem.names
        if known is None:
            return {"items": [], "top": {}, "items_note": ""}
        tops = {k: known.top(k) for k in range(1, len(known.items))}
        proved = {str(k): sorted(names[item] for item in top) for k, top in tops.items() if top is not None}
        return {"items": known.to_json(names), "top": proved, "items_note": known.note}
