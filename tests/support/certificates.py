"""Certificates of small searches, for tests of the checker."""

import json
from typing import Any

import numpy as np

from helpers import planned
from surepick import Anytime, Exclusion, Problem, Winner
from surepick.certificate import digest
from surepick.identify import Plan
from surepick.judges import World


def certificate_of(world: World, policy: Anytime | Exclusion | Winner, seed: int = 0) -> dict[str, Any]:
    state, rng, judge = policy.start(world.problem), np.random.default_rng(seed), world.judge([seed, 4])
    while True:
        state, plan = planned(policy, state, rng)
        if not isinstance(plan, Plan):
            break
        wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
        state = policy.update(state, plan.stage, plan.tally(world.problem, wins))
    text = json.dumps(policy.certificate(state))
    written: dict[str, Any] = json.loads(text)
    return written


def easy() -> World:
    rng = np.random.default_rng(4)
    return World("easy", Problem.from_pairs(rng.normal(size=(6, 3))), np.array([2.0, -1.0, 0.5]))


def signed(changed: dict[str, Any]) -> dict[str, Any]:
    """A forger knows how to compute a digest."""
    return changed | {"digest": digest(changed)}
