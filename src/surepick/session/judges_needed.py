"""How many judges a search takes where each of them is asked a question once, so that a team knows whom to invite.

Whatever beats the runner-up meets it once for each judge, and one answer at most doubles the evidence against it. So
three people cannot prove one winner at delta = 0.05, however much they agree: 2³ < 1/0.05 (`fewest_judges`). They
prove a short list. The other numbers here are simulated, for judges who all agree and answer one after the other; they
are heuristics. Where tastes differ it takes more judges, and also where many answer at once, because bets on questions
that are out at the same time do not learn from each other.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any

from surepick.identify import Anytime, Exclusion, Problem, Winner
from surepick.identify.ladder import compares, expected_costs, has_features
from surepick.identify.policy import ENOUGH
from surepick.session.session import Session

MOST_ITEMS = 20
"""Searches of more items are not simulated: that would take many seconds."""

MOST_JUDGES = 60
"""No more judges are simulated."""

LARGER_DELTAS = (0.1, 0.2)
"""Values of delta that are tried beside the one chosen ..."""

LARGER_EPSILON = 1.0
"""... and the epsilon, in log-odds: up to 73% of answers may then prefer the winner to the item named."""


@dataclass(frozen=True)
class JudgesNeeded:
    """How many judges who all agree it takes; None where it is more than MOST_JUDGES."""

    in_all: int | None
    """In this search, those who have answered included, if everybody agrees with what most have answered."""
    from_start: int | None
    """In a new search of as many items with the same options ..."""
    larger_epsilon: int | None
    """... with LARGER_EPSILON ..."""
    by_delta: Sequence[tuple[float, int | None]] = ()
    """... and with each of LARGER_DELTAS that is larger than the one chosen."""
    by_features: int | None = None
    """In a new search that ends by the claim "features"; None also where there are none."""
    left: Sequence[int] = ()
    """In a new search, how many items are not excluded after the first judge, after the second, and so on."""

    def to_json(self) -> dict[str, Any]:
        """The numbers by their names."""
        return asdict(self)

    @classmethod
    def from_json(cls, known: Mapping[str, Any]) -> "JudgesNeeded":
        """Read what `to_json` gave, also what it gave in an earlier version."""
        return cls(**{field.name: known[field.name] for field in fields(cls) if field.name in known})


def fewest_judges(delta: float) -> int:
    """Fewer judges than this cannot prove one winner, if they agree that it alone beats the runner-up (epsilon 0).

    The runner-up then loses once per judge at most, and a lost comparison multiplies the evidence against it by at most
    2 (docs/assumptions.md, Theorem 1: bets are at most 2). So it takes n judges with 2ⁿ ≥ 1/delta.

    >>> fewest_judges(0.05), fewest_judges(0.125)
    (5, 3)
    """
    return max(1, math.ceil(math.log2(1 / delta) - 1e-9))


def judges_needed(session: Session) -> JudgesNeeded | None:
    """What it takes to decide, by simulation: a few milliseconds for each answer.

    None where judges may be asked the same again, for policies of neither claim, for questions that are no comparisons
    of two items, for more than MOST_ITEMS items, and after the verdict. For the claim "features" it is by the forecast
    of answers alone.
    """
    problem, policy = session.problem, session.policy
    if (
        session.repeats != "once"
        or not compares(problem)
        or problem.inputs
        or problem.show > 2
        or len(problem.items) > MOST_ITEMS
        or session.final is not None
    ):
        return None
    if isinstance(policy, Anytime | Exclusion):
        from_start = _by_features(problem, policy.delta)
        return JudgesNeeded(_going_on_by_features(session) if session.answered else from_start, from_start, None)
    if not isinstance(policy, Winner):
        return None
    items, policy = len(problem.items), replace(policy, warm=(), population=None, budget=ENOUGH)
    from_start, left = _from_start(items, policy)
    in_all = from_start
    if session.answered:
        trial = Session.replay(session.log)
        for question in trial.outstanding:  # nobody knows whether their answers come
            trial.skip(question.id)
        in_all, _ = _simulated(trial)
    return JudgesNeeded(
        in_all,
        from_start,
        _from_start(items, replace(policy, epsilon=max(policy.epsilon, LARGER_EPSILON)))[0],
        [
            (larger, _from_start(items, replace(policy, delta=larger))[0])
            for larger in LARGER_DELTAS
            if larger > policy.delta
        ],
        _by_features(problem, policy.delta),
        left,
    )


def _by_features(problem: Problem, delta: float) -> int | None:
    """Judges that the claim "features" takes: each of them answers every pair, until there are about enough answers."""
    costs = expected_costs(problem, delta=delta) if has_features(problem) else {}
    return math.ceil(costs["features"] / len(problem.about)) if "features" in costs else None


def _going_on_by_features(session: Session) -> int | None:
    """The same once there are answers: those who have given them, and judges for the answers that are forecast."""
    known = {event["judge"] for event in session.log if event.get("judge") and event["event"] == "answer"}
    further = session.forecast().further / len(session.problem.about)
    return len(known) + math.ceil(further) if further < MOST_JUDGES else None


@lru_cache(maxsize=256)
def _from_start(items: int, policy: Winner) -> tuple[int | None, tuple[int, ...]]:
    """What `_simulated` gives for a new search. Features only guide it, so it is simulated without them."""
    return _simulated(Session(Problem.from_pairs([str(item) for item in range(items)]), policy, repeats="once"))


def _simulated(session: Session) -> tuple[int | None, tuple[int, ...]]:
    """Let judges who agree answer until the verdict, first those who have answered before.

    How many these are, and how many items are left after each of them.
    """
    order, left = _ranking(session), list[int]()
    known = sorted({str(event["judge"]) for event in session.log if event.get("judge") and event["event"] == "answer"})
    # No judge of the service has a space in their id.
    for number, judge in enumerate([*known, *(f"judge {number}" for number in range(MOST_JUDGES - len(known)))], 1):
        while asked := session.ask(1, without=session.had_by(judge)):
            session.tell(asked[0], min(asked[0].items, key=order.index), judge=judge)
        left.append(len(session.verdict().surviving))
        if session.final is not None:
            return max(number, len(known)), tuple(left)
    return None, tuple(left)


def _ranking(session: Session) -> Sequence[str]:
    """The names of all items, the best guess first and the others by the beliefs of the policy."""
    names, best = session.problem.names, session.verdict().best
    scores = dict(zip(names, session.progress()[0].beliefs.scores().tolist(), strict=True))
    return sorted(names, key=lambda name: (name != best, -scores[name]))
