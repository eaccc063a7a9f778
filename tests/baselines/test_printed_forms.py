"""The paper's printed forms: sizes and rules as printed."""

import math

import numpy as np
import pytest

from surepick import PassivePrinted, Problem, RageGlmPrinted, Status
from surepick.identify import run
from surepick.judges import ExpectedJudge
from surepick_experiments.worlds import soare


def test_printed_burn_in_has_the_papers_size() -> None:
    problem = Problem.from_pairs(np.random.default_rng(0).normal(size=(40, 5)))
    count, d, delta = len(problem.rows), 5, 0.05
    gamma = d + math.log(6 * (2 + count) / delta)
    expected = 3 * 1.1 * d * gamma * math.log(2 * count * (2 + count) / delta) / 0.1
    _, pulls = RageGlmPrinted(kappa=0.1, delta=delta, rounding=0.1).burn_in(problem)
    assert pulls.sum() == math.ceil(expected)


def test_first_trial_of_the_printed_form_is_reproduced() -> None:
    world = soare(10)
    policy = RageGlmPrinted(kappa=world.kappa)
    verdict = run(world.problem, policy, ExpectedJudge(world.theta))
    assert verdict.status is Status.CERTAIN
    assert verdict.questions == pytest.approx(8.4e5, rel=0.05)


def test_the_printed_passive_form_doubles_its_rounds_where_one_vector_is_all_there_is_to_ask() -> None:
    tied = Problem.from_pairs({"a": [0.0], "b": [1.0]})
    policy = PassivePrinted(kappa=0.2, delta=0.1)
    verdict = run(tied, policy, ExpectedJudge(np.zeros(1)), stages=5)
    assert verdict.questions_by_stage[1:] == (2, 4, 8, 16)
