"""Repeats: is a judge's second answer to the same question a new answer, or the first one remembered?

A judge who remembers gives the old answer again with probability ρ, and otherwise answers as if asked for the first
time. Against an independent answer that agrees with probability c, agreement then multiplies the evidence by
(ρ + (1 − ρ)c)/c and disagreement by 1 − ρ (docs/checks.md, 6).
"""

import math
from dataclasses import dataclass

from surepick import validate
from surepick.checks.prequential import before
from surepick.checks.table import Answers, Check, e_value, exceeds
from surepick.checks.tastes import with_own_taste
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee

REMEMBERED = (0.1, 0.3, 0.6, 0.9)
"""Shares ρ of repeats that are remembered: each has an even part of the bet."""

STABLE = 8.0
"""This many earlier answers of a judge to the same question weigh as much as what is predicted without them: a judge
may have a firm opinion of two items that no scores explain, which is not memory."""


@dataclass(frozen=True)
class MemoryEvidence:
    """The bet that a judge remembers, after some repeated questions; a value that every repeat replaces by a new one.

    If every repeat agrees, given the past, with at most the probability stated for it, then `found(level)` ever becomes
    true with probability at most `level` (Ville): each factor has mean at most one. O(1) per repeat.

    >>> evidence = MemoryEvidence()
    >>> for _ in range(12):
    ...     evidence = evidence.after(0.6, agreed=True)
    >>> evidence.found(0.05)
    True
    """

    log_wealth: tuple[float, ...] = (0.0,) * len(REMEMBERED)
    """Nats of the bet on each share."""
    highest: float = 0.0
    """The most that the mean of all bets has ever been, in nats."""

    @property
    def nats(self) -> float:
        """Evidence now: log of the mean of all bets."""
        largest = max(self.log_wealth)
        return largest + math.log(sum(math.exp(nats - largest) for nats in self.log_wealth) / len(REMEMBERED))

    def after(self, chance_of_agreeing: float, agreed: bool) -> "MemoryEvidence":
        """With one more repeat, for which an independent answer agrees with `chance_of_agreeing` or less.

        Agreement that was certain is no evidence.
        """
        chance = validate.positive("chance_of_agreeing", chance_of_agreeing)
        if chance > 1.0:
            raise InvalidInput(f"chance_of_agreeing must be at most 1, got {chance_of_agreeing!r}.")
        gained = [math.log(rho / chance + 1 - rho) if agreed else math.log(1 - rho) for rho in REMEMBERED]
        wealth = tuple(nats + more for nats, more in zip(self.log_wealth, gained, strict=True))
        return MemoryEvidence(wealth, max(self.highest, MemoryEvidence(wealth).nats))

    def found(self, level: float) -> bool:
        """Whether memory was found at this level at any time so far: what was found once stays found."""
        return exceeds(self.highest, level)


@dataclass(frozen=True)
class JudgeRepeats:
    """One judge's repeated questions."""

    evidence: MemoryEvidence = MemoryEvidence()
    count: int = 0
    agreed: int = 0
    expected: float = 0.0

    def after(self, chance: float, agreed: bool) -> "JudgeRepeats":
        """With one more."""
        evidence = self.evidence.after(chance, agreed)
        return JudgeRepeats(evidence, self.count + 1, self.agreed + agreed, self.expected + chance)


def repeats(answers: Answers, *, level: float = 0.05) -> Check:
    """Do judges repeat themselves more often than independent answers would?

    The chance of agreement is what earlier answers predict of this judge (`tastes.with_own_taste`). A prediction that
    is too low makes a false alarm more likely, so the level is heuristic (docs/checks.md, 6). Judges share it as in
    `judges`; those without a name count as one person.
    """
    validate.probability("level", level)
    found = repeats_of(answers)
    # The number of a judge is the order of appearance: a fixed share of the level, however many are to come.
    nats = {judge: each.evidence.nats - math.log((judge + 1) * (judge + 2)) for judge, each in found.items()}
    names = dict(zip(answers.judge.tolist(), answers.judges, strict=True))
    accused = [judge for judge in found if exceeds(nats[judge], level)]
    if accused:
        counts = "; ".join(
            f"{names[judge] or 'the judge without a name'} gave the same answer in {found[judge].agreed:,} of "
            f"{found[judge].count:,} repeated questions where about {found[judge].expected:,.0f} were expected"
            for judge in accused
        )
        sentence = f"{counts[0].upper()}{counts[1:]}: repeats are remembered, not new evidence."
    elif found:
        agreed, count = (sum(getattr(each, name) for each in found.values()) for name in ("agreed", "count"))
        sentence = f"Repeated questions got the same answer {agreed:,} of {count:,} times, as new answers would."
    else:
        sentence = "Not checked: no judge was asked the same question twice."
    return Check(
        "repeats",
        level,
        bool(accused),
        e_value(max(nats.values(), default=0.0)),
        sentence,
        "A judge who is asked the same question again answers independently of the first time.",
        Guarantee.HEURISTIC,
        ("features", "population", "winner"),
        tuple(names[judge] or "" for judge in accused),
    )


def repeats_of(answers: Answers) -> dict[int, JudgeRepeats]:
    """The repeats of each judge that has any; an answer is compared with the latest one before."""
    counted, judge = answers.counted, answers.judge[answers.decisive]
    asked, won = before(counted.place + len(counted.rows) * judge, counted.ones)
    chances = (won + STABLE * with_own_taste(answers)) / (asked + STABLE)
    latest: dict[tuple[int, int], int] = {}
    result: dict[int, JudgeRepeats] = {}
    rows = zip(judge.tolist(), counted.place.tolist(), counted.ones.tolist(), chances.tolist(), strict=True)
    for number, place, one, yes in rows:
        last = latest.get((number, place))
        if last is not None:
            result[number] = result.get(number, JudgeRepeats()).after(yes if last else 1 - yes, one == last)
        latest[number, place] = one
    return result
