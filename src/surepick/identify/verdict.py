"""What a policy says in the end, or so far: the best item, how sure, and on what grounds."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick import validate
from surepick._arrays import Booleans
from surepick._cached import cached_property
from surepick.display import Displayed, View
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Displayed):
    """How many (more) questions a search will take, by simulated searches (`identify.forecast`), one entry each.

    An interval has its coverage exactly, for any number of searches, if the real one is like the simulated ones: their
    truths are drawn from what is known of the real one, so it is never called proved.
    """

    policy: str
    questions: NDArray[np.int64]
    broken_off: Booleans
    """Searches that were too long to simulate: they take at least their number of questions."""
    decided: int
    """Searches that ended with a decision; others spent their budget or were broken off."""
    wrong: int
    """Searches that decided for another item than the best."""
    price: float | None = None
    """Of one question."""
    guarantee: Guarantee = Guarantee.HEURISTIC

    @property
    def expected(self) -> float:
        """Mean number of questions; too small where searches were broken off."""
        return float(self.questions.mean())

    @property
    def cost(self) -> float | None:
        """Expected cost, where a price is given."""
        return None if self.price is None else self.price * self.expected

    def quantile(self, share: float) -> float:
        """The number that the real search stays below with this probability; infinite where too few say so."""
        # A search that was broken off is known to be longer than its number, so it counts as longer than all.
        known = np.sort(np.where(self.broken_off, np.inf, self.questions))
        # Between order statistics: a new search is equally likely to fall into any gap of those simulated.
        # (1 − 0.8)/2 is a little below 0.1: unrounded, the 80% interval of nine searches would start below the least.
        place = round(share * (len(known) + 1) - 1, 9)
        low, high = math.floor(place), math.ceil(place)
        if low < 0:
            return 0.0
        if high >= len(known) or known[high] == np.inf:
            return math.inf
        return float(known[low] + (place - low) * (known[high] - known[low]))

    def interval(self, coverage: float = 0.8) -> tuple[float, float]:
        """Between these numbers the search ends with this probability."""
        tail = (1 - validate.probability("coverage", coverage)) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    @property
    def further(self) -> float:
        """The median: as likely more as less."""
        return self.quantile(0.5)

    @property
    def low(self) -> float:
        """Lower end of the 80% interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """Upper end of the 80% interval."""
        return self.interval()[1]

    @property
    def sentence(self) -> str:
        """For people, in two digits: "about 40 more questions (25 to 70)"."""
        if not self.questions.any():
            return "no more questions"
        low, middle, high = (two_digits(number) for number in (self.low, self.further, self.high))
        if self.further == math.inf:
            return f"more than {two_digits(float(self.questions[self.broken_off].min()))} more questions"
        return f"about {middle} more questions ({low} {f'to {high}' if self.high < math.inf else 'or many more'})"

    def __str__(self) -> str:
        return self.sentence

    def view(self) -> View:
        """How many questions at most, with which probability."""
        shares = (0.1, 0.25, 0.5, 0.75, 0.9)
        return View(
            self.sentence.capitalize(),
            {"probability": shares, "at_most_questions": [self.quantile(share) for share in shares]},
            (f"By {len(self.questions)} simulated searches; {self.guarantee}.",),
            labels="probability",
            values="at_most_questions",
        )

    def after(self, answers: int) -> "Forecast":
        """The same once this many more answers are in, for a search that is not over yet."""
        # At least one more: had the search been decided, nobody would ask for a forecast.
        return self if answers == 0 else replace(self, questions=np.maximum(self.questions - answers, 1))

    def to_json(self) -> dict[str, Any]:
        """As plain values; an unbounded number is null."""
        numbers = {"further": self.further, "low": self.low, "high": self.high}
        return {name: None if value == math.inf else value for name, value in numbers.items()} | {
            "simulated": len(self.questions),
            "decided": self.decided,
            "cost": self.cost,
            "guarantee": str(self.guarantee),
            "sentence": self.sentence,
        }


def two_digits(number: float) -> str:
    """A number of questions as people say it."""
    if number == math.inf:
        return "unknown"
    return f"{round(number, min(0, 1 - math.floor(math.log10(max(number, 1))))):,.0f}"


def one_in(delta: float) -> str:
    """A probability as people say it.

    >>> one_in(0.05), one_in(0.001), one_in(0.03)
    ('1 of 20', '1 of 1,000', '3 of 100')
    """
    times = round(1 / delta)
    return f"1 of {times:,}" if abs(times * delta - 1) < 1e-9 else f"{100 * delta:g} of 100"


class Status(StrEnum):
    """How far the search got; the value is the JSON field `status`."""

    CERTAIN = "certain"
    WITHIN_EPSILON = "within epsilon"
    BUDGET_SPENT = "budget spent"
    NOT_IDENTIFIABLE = "not identifiable"
    NO_WINNER = "no winner"
    """Every item was excluded: the assumption that one wins its share of every comparison is refuted."""
    OPEN = "open"

    @property
    def final(self) -> bool:
        """Whether no more questions will be asked."""
        return self is not Status.OPEN

    @property
    def decided(self) -> bool:
        """Whether the best item is claimed with the stated probability."""
        return self in (Status.CERTAIN, Status.WITHIN_EPSILON)


@dataclass(frozen=True)
class Rival:
    """Another item, and what is known of (best − rival)ᵀθ*, its gap to the best in log-odds."""

    name: str
    gap_low: float
    """The gap is at least this ..."""
    gap_high: float
    """... and at most this, for all rivals at once with probability 1 − delta, if the verdict is `certain`."""
    evidence: float | None = None
    """Nats of evidence against "the rival is at least as good", for policies that weigh evidence."""

    def to_json(self) -> dict[str, Any]:
        """As plain values; an unbounded end is null."""
        # JSON has no infinity: Python would write one that other readers refuse.
        ends = [None if math.isinf(end) else end for end in (self.gap_low, self.gap_high)]
        return {"item": self.name, "gap": ends, "evidence": self.evidence}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Rival":
        """Read what `to_json` gave."""
        low, high = fields["gap"]
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        return cls(fields["item"], low, high, fields["evidence"])


@dataclass(frozen=True)
class Claim:
    """What the answers of a search prove under one assumption; each claim has the whole delta to itself."""

    assume: str
    """"winner", "features" or "population" (docs/assumptions.md)."""
    assumption: str
    """The assumption in a sentence."""
    status: Status
    best: str
    """Name of the best item under this assumption, or of the best guess."""
    surviving: tuple[str, ...]
    guarantee: Guarantee
    """`proved`, or `heuristic` where a check refutes the assumption."""
    ends_search: bool
    """Whether the search was run for this claim."""
    rivals: tuple[Rival, ...] = ()
    reason: str = ""
    refuted_by: tuple[str, ...] = ()
    """Names of the checks whose alarm contradicts the assumption."""
    forecaster: Callable[[], Forecast] | None = field(default=None, compare=False, repr=False)
    """Simulates how the search would go on if it were run for this claim."""

    @cached_property
    def forecast(self) -> Forecast | None:
        """How many more questions this claim would take; simulated when first asked for. None once it is reached."""
        return None if self.forecaster is None else self.forecaster()

    @property
    def reached(self) -> bool:
        """Whether the claim names a best item, and nothing contradicts its assumption."""
        return self.status.decided and not self.refuted_by

    def to_json(self) -> dict[str, Any]:
        """As plain values; the forecast only if it has been made."""
        made: Forecast | None = vars(self).get("forecast")
        return {
            "assume": self.assume,
            "assumption": self.assumption,
            "status": str(self.status),
            "reached": self.reached,
            "best": self.best,
            "surviving": list(self.surviving),
            "guarantee": str(self.guarantee),
            "ends_search": self.ends_search,
            "refuted_by": list(self.refuted_by),
            "rivals": [rival.to_json() for rival in self.rivals],
            "reason": self.reason,
            "forecast": None if made is None else made.to_json(),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Claim":
        """Read what `to_json` gave; a forecast is not kept."""
        return cls(
            assume=fields["assume"],
            assumption=fields["assumption"],
            status=Status(fields["status"]),
            best=fields["best"],
            surviving=tuple(fields["surviving"]),
            guarantee=Guarantee(fields["guarantee"]),
            ends_search=fields["ends_search"],
            rivals=tuple(Rival.from_json(rival) for rival in fields["rivals"]),
            reason=fields["reason"],
            refuted_by=tuple(fields["refuted_by"]),
        )


@dataclass(frozen=True)
class Verdict(Displayed):
    """The outcome of a search.

    `certain`: the best item is `best`, except with probability delta. `within epsilon`: no item is better than `best`
    by more than epsilon, with the same exception. Otherwise `best` is only the best guess, but the best item is among
    `surviving` with probability 1 − delta wherever the guarantee is `proved`.
    """

    status: Status
    best: str
    """Name of the best item, or of the best guess."""
    surviving: tuple[str, ...]
    """Items that are not excluded."""
    delta: float
    epsilon: float
    questions_by_stage: tuple[int, ...]
    """Answers used, stage by stage."""
    policy: str
    guarantee: Guarantee
    statement: str
    """What is claimed, and where it is proved."""
    assumptions: tuple[str, ...]
    rivals: tuple[Rival, ...] = ()
    """What is known of the gap to each other item, the closest first."""
    reason: str = ""
    """Why it is not decided, with the way out; empty if it is."""
    also: tuple[str, ...] = ()
    """Other names of the best item: items of the same features."""
    refuted_by: tuple[str, ...] = ()
    """Names of the checks whose alarm contradicts an assumption of the verdict: then nothing is proved."""
    not_evaluated: int = 0
    """Answers that count for the best guess only, since an earlier question is still open."""
    known_claims: tuple[Claim, ...] = field(default=(), compare=False, repr=False)
    """The claims as far as they are computed; see `claims`."""
    claimant: Callable[[], tuple[Claim, ...]] | None = field(default=None, compare=False, repr=False)
    """Computes the claims of a running session, which sets it."""
    forecaster: Callable[[], Forecast] | None = field(default=None, compare=False, repr=False)
    """Simulates the rest of a running session, which sets it."""

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the same answers prove under each assumption, the weakest assumption first (docs/assumptions.md).

        For an open verdict they are computed when first asked for, which may take a second; empty for policies that
        are not part of the ladder.
        """
        return self.known_claims if self.claimant is None else self.claimant()

    @property
    def stands(self) -> bool:
        """Whether a best item is named and no check contradicts what that assumes."""
        return self.status.decided and not self.refuted_by

    @cached_property
    def forecast(self) -> Forecast | None:
        """How many more questions a running session will take; simulated when first asked for. None once it is over."""
        return None if self.forecaster is None else self.forecaster()

    @property
    def questions(self) -> int:
        """Answers used in all."""
        return sum(self.questions_by_stage)

    @property
    def weakest(self) -> float | None:
        """Nats of evidence against the rival that is least refuted; None for policies that do not weigh evidence."""
        known = [rival.evidence for rival in self.rivals if rival.evidence is not None]
        return min(known, default=None)

    def view(self) -> View:
        """The best item and its rivals, the closest first."""
        named = (self.best, *(rival.name for rival in self.rivals))
        return View(
            str(self).rstrip("."),
            {
                "item": named,
                "excluded": [name not in self.surviving for name in named],
                "evidence_against_nats": [None, *(rival.evidence for rival in self.rivals)],
            },
            (self.statement, *self.assumptions),
            labels="item",
            values="evidence_against_nats",
        )

    def __str__(self) -> str:
        claim = {
            Status.CERTAIN: f"{self.best} is the best",
            Status.WITHIN_EPSILON: f"{self.best} is the best, or within {self.epsilon:g} of it",
        }.get(self.status, f"Not decided ({self.status}); the best guess is {self.best}")
        wrong = f"wrong in at most {one_in(self.delta)} such searches, {self.guarantee}"
        sure = f" ({self.guarantee if self.guarantee is Guarantee.HEURISTIC else wrong})" if self.status.decided else ""
        if self.refuted_by:
            sure += f", but the answers contradict what that assumes ({', '.join(self.refuted_by)}),"
        return f"{claim}{sure} after {self.questions:,} answers. {self.reason}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "status": str(self.status),
            "best": self.best,
            "also": list(self.also),
            "surviving": list(self.surviving),
            "delta": self.delta,
            "epsilon": self.epsilon,
            "questions": self.questions,
            "questions_by_stage": list(self.questions_by_stage),
            "policy": self.policy,
            "guarantee": str(self.guarantee),
            "statement": self.statement,
            "assumptions": list(self.assumptions),
            "rivals": [rival.to_json() for rival in self.rivals],
            "reason": self.reason,
            "refuted_by": list(self.refuted_by),
            "not_evaluated": self.not_evaluated,
            "claims": [claim.to_json() for claim in self.claims],
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Verdict":
        """Read what `to_json` gave."""
        try:
            return cls(
                status=Status(fields["status"]),
                best=fields["best"],
                surviving=tuple(fields["surviving"]),
                delta=fields["delta"],
                epsilon=fields["epsilon"],
                questions_by_stage=tuple(fields["questions_by_stage"]),
                policy=fields["policy"],
                guarantee=Guarantee(fields["guarantee"]),
                statement=fields["statement"],
                assumptions=tuple(fields["assumptions"]),
                rivals=tuple(Rival.from_json(rival) for rival in fields["rivals"]),
                reason=fields["reason"],
                also=tuple(fields["also"]),
                # Logs written before there were claims have none.
                refuted_by=tuple(fields.get("refuted_by", ())),
                not_evaluated=fields.get("not_evaluated", 0),
                known_claims=tuple(Claim.from_json(claim) for claim in fields.get("claims", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"This is not a verdict written by surepick ({error}).") from None
