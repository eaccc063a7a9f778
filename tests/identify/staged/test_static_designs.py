"""Static designs: what is pooled, and what is refused."""

import math

import numpy as np
import pytest

from helpers import planned
from surepick import InvalidInput, Passive, Uniform
from surepick.identify import Plan
from surepick.judges import ExpectedJudge
from surepick_experiments.worlds import one_over_kappa, soare


def test_the_static_policies_do_not_pool_the_burn_in() -> None:
    world = soare(3, angle=0.5)
    policy = Passive(kappa=world.kappa)
    state, plan = planned(policy, policy.start(world.problem), np.random.default_rng(0))
    assert isinstance(plan, Plan)
    wins = ExpectedJudge(world.theta).wins(world.problem.measurements[plan.measurements], plan.pulls)
    state = policy.update(state, 0, plan.tally(world.problem, wins))
    state, look = planned(policy, state, np.random.default_rng(0))
    assert isinstance(look, Plan)
    assert look.memo["look"] == 1
    nothing = policy.update(state, 1, look.tally(world.problem, look.pulls * 0, look.pulls * 0))
    assert policy.verdict(policy.close(nothing, 1)).rivals[0].gap_high == math.inf  # no look, no width


def test_a_first_stage_beyond_counting_is_refused_and_not_rehearsed() -> None:
    world = one_over_kappa(80, seed=0)
    policy = Uniform(delta=0.05, kappa=world.kappa)
    with pytest.raises(InvalidInput, match=r"the first stage alone takes [0-9,]*; raise"):
        policy.plan(policy.start(world.problem), np.random.default_rng(0))
