"""The one wording of a verdict: what is claimed and how sure that is, for the terminal, the report and the service."""

import math
from collections.abc import Mapping, Sequence

from surepick.identify import Status
from surepick.identify.verdict import one_in
from surepick.session.judges_needed import LARGER_EPSILON, MOST_JUDGES, JudgesNeeded, fewest_judges

REFUTED = (
    "The answers refute every logistic model with these features, so intervals and ranks mean nothing; check for "
    "judges who changed their minds, missing features or miscoded answers."
)
"""Said instead of intervals where no model fits."""

ASSUMPTIONS_NOTE = "That no alarm was raised does not prove that the assumptions hold."

NOUNS = ("tie", "skip")
"""Fates of an answer that have a plural."""

MOST_NAMED = 4
"""Items of a short list that are named; of a longer one only the number is said."""

SMALL_TEAM = 3
"""Judges of whom it is said beforehand how far they will come."""

ODDS_SHOWN = 1e6
"""Odds above this are all the same to a reader."""


def claim(status: Status, name: str, epsilon: float, *, count: int | None = None, why: str = "") -> str:
    """What a verdict claims, as a clause without its full stop.

    `name` is the best item or the best guess as it is to be shown ("" where there is none yet); `count` is the number
    of items; `why` says in a few words why an open search stopped.

    >>> claim(Status.CERTAIN, "red", 0.0, count=12)
    'red is the best of 12 items'
    >>> claim(Status.OPEN, "red", 0.0, why="votes ran out")
    'Not decided (votes ran out); the best guess is red'
    """
    before, after = claim_around(status, epsilon, count=count, why=why, named=bool(name))
    return before + name + after


def claim_around(
    status: Status, epsilon: float, *, count: int | None = None, why: str = "", named: bool = True
) -> tuple[str, str]:
    """The words of `claim` before and after the item's name, for media that show the name in a style of its own."""
    of_all = "" if count is None else f" of {count} items"
    if status is Status.CERTAIN:
        return "", f" is the best{of_all}"
    if status is Status.WITHIN_EPSILON:
        return "", f" is the best{of_all}, or within {epsilon:g} of it"
    if status is Status.OPEN and not why:
        return ("Not decided yet; ", " leads") if named else ("Not decided yet", "")
    begun = {
        Status.NOT_IDENTIFIABLE: "These questions cannot decide it",
        Status.NO_WINNER: "No item wins all of its comparisons",
    }.get(status, "Not decided")
    reason = f" ({why})" if why and status is Status.OPEN else ""
    return (f"{begun}{reason}; the best guess{of_all} is ", "") if named else (f"{begun}{reason}", "")


def certainty(status: Status, delta: float, epsilon: float, guarantee: str, assumption: str = "") -> str:
    """How sure the claim is, as a sentence: each of the four guarantees in people's words.

    `assumption` is that of the claim, as a sentence.

    >>> certainty(Status.CERTAIN, 0.05, 0.0, "proved", "One item wins each of its comparisons.")
    'Wrong in at most 1 of 20 such searches, if one item wins each of its comparisons (proved).'
    >>> certainty(Status.CERTAIN, 0.05, 0.0, "heuristic")
    'A rule of thumb: nothing is proved about how often it excludes the best item or names a wrong one (heuristic).'
    """
    # A heuristic has no probability of error to state: delta is a parameter of it, and no more.
    if guarantee == "heuristic":
        return (
            "A rule of thumb: nothing is proved about how often it excludes the best item or names a wrong one "
            "(heuristic)."
        )
    if not status.decided:
        return "Nothing is claimed yet, except that the best item is among those not excluded."
    wrong = f"worse than the best by more than {epsilon:g}" if status is Status.WITHIN_EPSILON else "wrong"
    often = f"{wrong} in at most {one_in(delta)} such searches"
    condition = as_condition(assumption)
    if guarantee == "cited":
        return f"{often.capitalize()}, {condition} (cited: proved in a publication)."
    if guarantee != "proved":
        return f"Meant to be {often}, but the printed constants are not valid in general ({guarantee})."
    return f"{often.capitalize()}, {condition} (proved)."


def as_condition(assumption: str) -> str:
    """An assumption as a clause; without one, a reference to those that are listed.

    >>> as_condition("The features explain every answer.")
    'if the features explain every answer'
    """
    text = assumption.rstrip(".")
    return f"if {text[:1].lower()}{text[1:]}" if text else "if the assumptions hold"


def if_so(assumption: str) -> str:
    """An assumption as the beginning of a sentence, without what it says after a colon.

    >>> if_so("The features explain every answer: all judges answer by one logistic model of them.")
    'If the features explain every answer'
    """
    return f"I{as_condition(assumption.partition(':')[0])[1:]}"


def accounting(counts: Mapping[str, int], *, kind: str = "answer", halves: int = 0) -> str:
    """What became of all answers, as a clause: `counts` has those counted under "counted", and others by their fate.

    `halves` of those counted are ties, each half a win of both.

    >>> accounting({"counted": 6675, "tie": 300, "after the verdict": 33})
    '7,008 answers, 6,675 counted: 300 ties, 33 after the verdict'
    >>> accounting({"counted": 12}, halves=2)
    '12 answers, 2 of them ties'
    """
    total, counted = sum(counts.values()), counts["counted"]
    ties = "" if not halves else f", {halves:,} of them {'a tie' if halves == 1 else 'ties'}"
    said = f"{total:,} {kind}{'s' * (total != 1)}"
    others = [
        f"{count:,} {fate}{'s' * (count > 1 and fate in NOUNS)}"
        for fate, count in counts.items()
        if count and fate != "counted"
    ]
    return f"{said}, {counted:,} counted{ties}: {', '.join(others)}" if others else f"{said}{ties}"


def claim_result(
    status: Status, best: str, left: int, count: int, *, refuted_by: Sequence[str] = (), further: str = ""
) -> str:
    """What one claim of the ladder has come to, in a few words: `left` of `count` items are not excluded.

    >>> claim_result(Status.CERTAIN, "red", 1, 12)
    'proved: red'
    >>> claim_result(Status.OPEN, "red", 4, 12, further="about 120 more questions (80 to 200)")
    '4 of 12 items left, red leads; about 120 more questions (80 to 200)'
    >>> claim_result(Status.CERTAIN, "red", 1, 12, refuted_by=["misfit"])
    'red, but the answers contradict the assumption (misfit): not proved'
    """
    if refuted_by:
        return f"{best}, but the answers contradict the assumption ({', '.join(refuted_by)}): not proved"
    if status.decided:
        return f"proved: {best}" + (", or nearly the best" if status is Status.WITHIN_EPSILON else "")
    if status is Status.NO_WINNER:
        return "refuted: no item wins all of its comparisons"
    if status is Status.NOT_IDENTIFIABLE:
        return "these questions cannot decide it"
    return f"{left} of {count} items left, {best} leads" + (f"; {further}" if further else "")


def one_of(names: Sequence[str], count: int) -> str:
    """A short list of `count` items in all, as words.

    >>> one_of(["red", "blue", "plum"], 8), one_of(list("abcdef"), 8), one_of(list("abcdef"), 6)
    ('red, blue or plum', 'one of 6 items', 'any of the 6 items')
    """
    if len(names) == count > 1:
        return f"any of the {count} items"
    if len(names) > MOST_NAMED:
        return f"one of {len(names)} items"
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def headline(
    status: Status,
    best: str,
    epsilon: float,
    left: Sequence[str],
    count: int,
    *,
    over: bool,
    refuted: bool = False,
    other: tuple[str, str] | None = None,
) -> str:
    """What a study has come to, in the words that stand above all others.

    `left` of `count` items are not excluded; `over` says that nobody is asked any more; `refuted` that the answers
    contradict what the verdict assumes. `other` is a claim that is reached where the one that ends the study is not:
    its assumption and the item it names.

    >>> headline(Status.OPEN, "red", 0.0, ["red", "blue"], 8, over=False)
    'Not decided yet; red leads'
    >>> headline(Status.OPEN, "red", 0.0, ["red", "blue"], 8, over=True)
    'The best is red or blue; the best guess is red'
    >>> headline(Status.OPEN, "red", 0.0, ["red", "blue"], 8, over=True, other=("The features explain all.", "red"))
    'If the features explain all: red, proved. Without that: red or blue.'
    """
    if status.decided and not refuted:
        return claim(status, best, epsilon)
    if other is not None and (refuted or status in (Status.OPEN, Status.BUDGET_SPENT)):
        without = "" if refuted else f" Without that: {one_of(left, count)}."
        return f"{if_so(other[0])}: {other[1]}, proved.{without}"
    if refuted:
        return f"Not proved, because the answers contradict an assumption; the best guess is {best}"
    if status is Status.OPEN and over and best:
        listed = f"The best is {one_of(left, count)}" if len(left) < count else "No item is excluded"
        return f"{listed}; the best guess is {best}"
    return claim(status, best, epsilon)


def short_list(
    left: Sequence[str], count: int, delta: float, guarantee: str, assumption: str, *, named: bool = True
) -> str:
    """How sure it is that the best item is one of those left, as a sentence; "" where that is not proved.

    Unless they are to be `named`, it follows a headline that names them.

    >>> short_list(["red", "blue"], 8, 0.05, "proved", "One item wins its comparisons.")
    'The best is red or blue: wrong in at most 1 of 20 such searches, if one item wins its comparisons (proved).'
    """
    if guarantee != "proved" or not 0 < len(left) < count:
        return ""
    often = how_often(delta, assumption)
    return f"The best is {one_of(left, count)}: {often}" if named else f"W{often[1:]}"


def how_often(delta: float, assumption: str) -> str:
    """How often a proved claim is wrong and on what condition, as the end of a sentence."""
    return f"wrong in at most {one_in(delta)} such searches, {as_condition(assumption)} (proved)."


def all_answered(exhausted: int, answered: int) -> str:
    """That judges have had every question that could decide, as a sentence; `answered` of them gave an answer."""
    if exhausted < answered:
        have = f"{exhausted} of {answered} judges {'has' if exhausted == 1 else 'have'}"
        return f"{have} answered every question that could decide it, and nobody is answering now."
    have = "The judge has" if exhausted == 1 else f"All {exhausted} judges have"
    return f"{have} answered every question that could decide it; it takes further judges."


def judges_wanted(needed: JudgesNeeded, answered: int, *, delta: float, epsilon: float, count: int) -> str:
    """How many judges have to answer, if all agree, as sentences; `answered` of them have, and there are `count` items.

    >>> needed = JudgesNeeded(in_all=8, from_start=8, larger_epsilon=6, left=[8, 5, 3, 2, 2, 2, 2, 1])
    >>> judges_wanted(needed, 3, delta=0.05, epsilon=0.0, count=8).partition(";")[0]
    'If all agree, about 5 more judges are needed, each of whom is asked a pair once'
    >>> judges_wanted(needed, 0, delta=0.05, epsilon=0.0, count=8).partition("Even then ")[2].partition(" A ")[0]
    'fewer than 5 cannot prove one winner.'
    """
    if needed.in_all is None:
        return f"Even if all agree, more than {MOST_JUDGES} judges are needed, each of whom is asked a pair once."
    more = needed.in_all - answered
    if more < 1:
        return "If they go on to agree, those who have answered can decide it."
    judges = f"{more}{' more' if answered else ''} judge{' is' if more == 1 else 's are'} needed"
    whom = "who is asked a pair once" if more == 1 else "each of whom is asked a pair once"
    said = f"If all agree, about {judges}, {whom}; more if tastes differ or many answer at once."
    if answered or not needed.left:
        return said
    fewest = fewest_judges(delta)
    if not epsilon and fewest > 1:
        said += f" Even then fewer than {fewest} cannot prove one winner."
    if len(needed.left) > SMALL_TEAM and needed.left[SMALL_TEAM - 1] < count:
        left = f"{SMALL_TEAM} who agree leave about {needed.left[SMALL_TEAM - 1]} of {count} items"
        said += f" A smaller team proves a short list: {left}."
    return said


def fewer_judges(needed: JudgesNeeded, epsilon: float) -> str:
    """In which new study fewer judges are enough, as a sentence; "" where none of those tried helps.

    >>> needed = JudgesNeeded(in_all=8, from_start=8, larger_epsilon=6, by_delta=[(0.1, 7), (0.2, 5)], by_features=3)
    >>> fewer_judges(needed, 0.0)
    'Instead of 8 judges a new study takes about 7 with delta 0.1, 5 with delta 0.2, 6 with epsilon 1, or 3 if it ends \
by the claim features and these explain every answer.'
    """
    usual = needed.from_start or MOST_JUDGES + 1
    tried = [
        *((number, f"with delta {larger:g}") for larger, number in needed.by_delta),
        *([(needed.larger_epsilon, f"with epsilon {LARGER_EPSILON:g}")] if epsilon < LARGER_EPSILON else []),
        (needed.by_features, "if it ends by the claim features and these explain every answer"),
    ]
    ways = [f"{number} {way}" for number, way in tried if number is not None and number < usual]
    if not ways:
        return ""
    usually = f"{needed.from_start or f'more than {MOST_JUDGES}'} judges"
    return (
        f"Instead of {usually} a new study takes about {', or '.join(filter(None, (', '.join(ways[:-1]), ways[-1])))}."
    )


def equally_good(labels: Sequence[str]) -> str:
    """Items that no answer can tell from the best; "" where there are none."""
    return f"Equally good, because their features are the same: {', '.join(labels)}." if labels else ""


def intervals_note(delta: float, guarantee: str, *, charged: bool, ranks_by_intervals: bool = False) -> str:
    """What the intervals of scores claim, on what condition, and what they claim together with verdict and ranks.

    `charged` says that missing answers were charged the worst; `ranks_by_intervals` that the ranks follow from the
    intervals instead of from the evidence of the verdict, which is of this guarantee.

    >>> intervals_note(0.05, "proved", charged=True).split(". ")[1]
    'The ranks and the verdict hold with probability 0.95, too'
    """
    condition = (
        "whatever the reason why answers are missing, since each of these is charged the worse answer"
        if charged
        else "if whether an answer comes depends neither on what it would have been nor on other answers of the same "
        "or later stages"
    )
    sure, both = f"{1 - delta:.6g}", f"{max(1 - 2 * delta, 0):.6g}"
    first = "intervals and ranks" if ranks_by_intervals else "intervals"
    second = "The verdict holds" if ranks_by_intervals else "The ranks and the verdict hold"
    said = f"All {first} hold at once and at all times with probability {sure} (proved), {condition}. "
    if guarantee != "proved":
        return f"{said}The verdict is a claim of its own ({guarantee}, not proved)."
    return (
        f"{said}{second} with probability {sure}, too. "
        f"These are two claims: both are right with probability {both} at least."
    )


def odds(nats: float | None) -> str:
    """Evidence as odds; less than one to one is no evidence.

    >>> odds(3.0), odds(-1.0), odds(99.0)
    ('20 to 1', '–', 'over 1,000,000 to 1')
    """
    if nats is None or nats <= 0:
        return "–"
    return f"{math.exp(nats):,.0f} to 1" if nats < math.log(ODDS_SHOWN) else f"over {ODDS_SHOWN:,.0f} to 1"


def checks_note(level: float) -> str:
    """What the silence of all checks together is worth; `level` is their joint chance of a false alarm."""
    return f"The chance of any false alarm among these checks is at most {100 * level:g}%. {ASSUMPTIONS_NOTE}"
