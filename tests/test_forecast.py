"""Forecasts: they simulate what happens, leave the session alone, and refuse what they cannot use."""

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.forecast import Forecast, forecast, forecast_session, plausible_truths
from surepick.identify import Problem, policy_named
from surepick.logistic import Tally
from surepick.session import Session, run
from surepick.worlds import World

ITEMS = {"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.4, 0.3]}
THETA = np.array([1.2, 0.2])


@pytest.fixture
def problem() -> Problem:
    return Problem.from_pairs(ITEMS)


def test_a_forecast_is_what_searches_take(problem):
    policy = policy_named("uniform", delta=0.1)
    found = forecast(problem, policy, THETA, runs=4, seed=3, price=0.5)
    world = World("same", problem, THETA)
    again = [run(problem, policy, world.judge([3, number]), seed=number).questions for number in range(4)]
    assert found.questions.tolist() == again
    assert found.decided == 4
    assert found.expected == pytest.approx(np.mean(again))
    assert found.cost == pytest.approx(0.5 * np.mean(again))
    assert found.interval()[0] <= found.expected <= found.interval(0.999)[1]
    assert found.guarantee == "heuristic"
    # A harder truth takes longer.
    assert forecast(problem, policy, THETA / 4, runs=4).expected > 4 * found.expected


def test_a_sample_of_truths_is_used_in_turn(problem):
    policy = policy_named("uniform", delta=0.1)
    mixed = forecast(problem, policy, [THETA, THETA / 4], runs=4)
    assert mixed.questions[1::2].min() > mixed.questions[::2].max()


def test_a_running_session_is_forecast_and_left_alone(problem):
    session = Session(problem, policy_named("uniform", delta=0.1), seed=1)
    judge = World("truth", problem, THETA).judge(5)
    at_first = forecast_session(session, draws=6)
    for question in session.ask(60):
        session.tell(question.id, judge(question))
    before = session.to_lines()
    later = forecast_session(session, draws=6, seed=2)
    assert session.to_lines() == before
    assert len(later.questions) == len(at_first.questions) == 6
    assert later.decided == 6
    assert later.questions.min() >= 0
    # What remains of the stage at hand has to be asked in any case.
    _, stages = session.progress()
    missing = sum(int((plan.pulls - pulls).sum()) for plan, pulls, _ in stages)
    assert later.questions.min() >= missing
    assert np.array_equal(forecast_session(session, draws=6, seed=2).questions, later.questions)


def test_plausible_truths_follow_the_answers(problem):
    rows = problem.measurements
    none = Tally(rows, np.zeros(len(rows), dtype=int), np.zeros(len(rows), dtype=int))
    before = plausible_truths(problem, none, 4000, 0) @ rows.T
    assert np.sqrt(np.mean(before**2)) == pytest.approx(2.0, rel=0.05)
    assert np.abs(before.mean(axis=0)).max() < 0.2
    pulls = np.full(len(rows), 4000)
    wins = np.rint(pulls / (1 + np.exp(-rows @ THETA))).astype(int)
    after = plausible_truths(problem, Tally(rows, pulls, wins), 4000, 0) @ rows.T
    np.testing.assert_allclose(after.mean(axis=0), rows @ THETA, atol=0.02)
    assert after.std(axis=0).max() < 0.06


def test_refusals_are_one_sentence(problem):
    policy = policy_named("uniform")
    for call, sentence in (
        (lambda: forecast(problem, policy, [1.0]), "theta must be a list of 2 numbers"),
        (lambda: forecast(problem, policy, THETA, runs=0), "runs must be at least 1, got 0"),
        (lambda: forecast(problem, policy, THETA, price=-1), "price must not be negative"),
        (lambda: forecast_session(Session(problem, policy), draws=0), "draws must be at least 1, got 0"),
        (lambda: Forecast("uniform", np.array([1, 2]), 2, 0).interval(1.5), "coverage must lie strictly between"),
    ):
        with pytest.raises(InvalidInput) as refusal:
            call()
        assert sentence in str(refusal.value)
