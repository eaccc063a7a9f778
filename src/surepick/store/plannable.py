"""Whether a study's questions can be planned while people wait: one that cannot is refused when it is created."""

import time
from typing import Any

from surepick.errors import InvalidInput
from surepick.identify import Policy, Problem
from surepick.session import Session

MOST_COMPARED = 2_000
"""Items that can be compared live: beliefs about them take 56·items² bytes with features, 224 MB."""

MOST_COORDINATES = 300
"""For policies that fit a model: fits take a time that grows with the cube of the coordinates."""

TRIAL_QUESTIONS = 10
"""Asked and answered on trial."""

QUESTION_SECONDS = 0.3
"""A question that takes longer to plan, on average, lets judges wait."""


def require_size(problem: Problem, policy: Policy[Any]) -> None:
    """Refuse what takes too much time or memory, before anything is computed."""
    items, coordinates = problem.items.shape
    if policy.name == "winner" and items > MOST_COMPARED:
        raise InvalidInput(
            f"A study compares at most {MOST_COMPARED:,} items, got {items:,}: beyond, planning its questions takes "
            "gigabytes of memory; leave out items that cannot win."
        )
    if policy.name != "winner" and coordinates > MOST_COORDINATES:
        remedy = "use assume='winner', or" if policy.name in ("anytime", "exclusion") else "use the policy winner, or"
        raise InvalidInput(
            f"A study with the policy {policy.name} takes at most {MOST_COORDINATES} coordinates, got {coordinates:,} "
            f"(one for each item where there are no features): judges would wait for its plans; {remedy} fewer."
        )


def require_plannable(session: Session) -> None:
    """Refuse a study whose first questions, asked and answered on trial, take too long to plan.

    In processor time, so that a busy machine refuses nothing. It takes at most about TRIAL_QUESTIONS·QUESTION_SECONDS,
    and the last plan.
    """
    trial = Session(session.problem, session.policy, seed=session.seed)
    begun, asked = time.process_time(), 0
    while asked < TRIAL_QUESTIONS:
        questions = trial.ask(1)
        if not questions:
            return
        for question in questions:
            trial.tell(question.id, (1,) if question.about_set else question.id % 2)
            asked += 1
        taken = time.process_time() - begun
        if taken > TRIAL_QUESTIONS * QUESTION_SECONDS:
            items, coordinates = session.problem.items.shape
            raise InvalidInput(
                f"A question of this study takes about {taken / asked:.1f} s to plan ({items:,} items, {coordinates:,} "
                f"coordinates, policy {session.policy.name}), so judges would wait; use fewer items or features, or "
                "another policy."
            )
