"""How many judges a search takes where each of them is asked a question once, so that a team knows whom to invite.

Whatever beats the runner-up meets it once for each judge, and one answer at most doubles the evidence against it. So
three people cannot decide at delta = 0.05, however much they agree: 2³ < 1/0.05. The numbers here are simulated, for
judges who all agree and answer one after the other; they are heuristics. Where tastes differ it takes more judges, and
also where many answer at once, because bets on questions that are out at the same time do not learn from each other.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from surepick.identify import Problem, Winner
from surepick.identify.policy import ENOUGH
from surepick.session.session import Session

MOST_ITEMS = 20
"""Searches of more items are not simulated: that would take many seconds."""

MOST_JUDGES = 60
"""No more judges are simulated."""

LARGER_DELTA = 0.2
"""The delta that is tried beside the one chosen ..."""

LARGER_EPSILON = 1.0
"""... and the epsilon, in log-odds: up to 73% of answers may then prefer the winner to the item named."""


@dataclass(frozen=True)
class JudgesNeeded:
    """How many judges who all agree it takes; None where it is more than MOST_JUDGES."""

    in_all: int | None
    """In this search, those who have answered included, if everybody agrees with what most have answered."""
    from_start: int | None
    """In a new search of as many items with the same options ..."""
    larger_delta: int | None
    """... with LARGER_DELTA ..."""
    larger_epsilon: int | None
    """... and with LARGER_EPSILON."""

    def to_json(self) -> dict[str, Any]:
        """The numbers by their names."""
        return asdict(self)


def judges_needed(session: Session) -> JudgesNeeded | None:
    """What it takes to decide, by simulation: a few milliseconds for each answer.

    None where judges may be asked the same again, for policies other than Winner, for questions that are no
    comparisons of two items, for more than MOST_ITEMS items, and after the verdict.
    """
    problem, policy = session.problem, session.policy
    if (
        session.repeats != "once"
        or not isinstance(policy, Winner)
        or problem.inputs
        or problem.show > 2
        or len(problem.items) > MOST_ITEMS
        or session.final is not None
    ):
        return None
    items, policy = len(problem.items), replace(policy, warm=(), budget=ENOUGH)
    in_all = from_start = _from_start(items, policy)
    if session.answered:
        trial = Session.replay(session.log)
        for question in trial.outstanding:  # nobody knows whether their answers come
            trial.skip(question.id)
        in_all = _simulated(trial)
    return JudgesNeeded(
        in_all,
        from_start,
        _from_start(items, replace(policy, delta=max(policy.delta, LARGER_DELTA))),
        _from_start(items, replace(policy, epsilon=max(policy.epsilon, LARGER_EPSILON))),
    )


@lru_cache(maxsize=256)
def _from_start(items: int, policy: Winner) -> int | None:
    """Judges that a new search of this size takes. Features only guide it, so it is simulated without them."""
    return _simulated(Session(Problem.from_pairs([str(item) for item in range(items)]), policy, repeats="once"))


def _simulated(session: Session) -> int | None:
    """Let judges who agree answer until the verdict, first those who have answered before; how many these are."""
    order = _ranking(session)
    known = sorted({str(event["judge"]) for event in session.log if event.get("judge") and event["event"] == "answer"})
    # No judge of the service has a space in their id.
    for number, judge in enumerate([*known, *(f"judge {number}" for number in range(MOST_JUDGES - len(known)))], 1):
        while asked := session.ask(1, without=session.had_by(judge)):
            session.tell(asked[0], min(asked[0].items, key=order.index), judge=judge)
        if session.final is not None:
            return max(number, len(known))
    return None


def _ranking(session: Session) -> Sequence[str]:
    """The names of all items, the best guess first and the others by the beliefs of the policy."""
    names, best = session.problem.names, session.verdict().best
    scores = dict(zip(names, session.progress()[0].beliefs.scores().tolist(), strict=True))
    return sorted(names, key=lambda name: (name != best, -scores[name]))
