"""Forecasts: they simulate what happens, leave the session alone, and refuse what they cannot use."""

import numpy as np
import pytest
from scipy.stats import binom

from surepick.errors import InvalidInput
from surepick.glm import Tally
from surepick.identify import Forecast, Problem, run
from surepick.identify.forecast import forecast, forecast_further
from surepick.identify.simulation import plausible_truths
from surepick.judges import World
from surepick.registry import policy_named
from surepick.session import Session
from surepick_experiments.studies import forecast as study

ITEMS = {"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.4, 0.3]}
THETA = np.array([1.2, 0.2])


def made(questions: list[int], broken_off: int = 0) -> Forecast:
    """A forecast of these numbers, the last ones broken off."""
    cut = np.arange(len(questions)) >= len(questions) - broken_off
    return Forecast("uniform", np.array(questions), cut, len(questions) - broken_off, 0)


@pytest.fixture
def problem() -> Problem:
    return Problem.from_pairs(ITEMS)


def test_a_forecast_is_what_searches_take(problem):
    policy = policy_named("uniform", delta=0.1, kappa=0.1)
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
    policy = policy_named("uniform", delta=0.1, kappa=0.1)
    mixed = forecast(problem, policy, [THETA, THETA / 4], runs=4)
    assert mixed.questions[1::2].min() > mixed.questions[::2].max()


def test_a_running_session_is_forecast_and_left_alone(problem):
    session = Session(problem, policy_named("uniform", delta=0.1, kappa=0.1), seed=1)
    judge = World("truth", problem, THETA).judge(5)
    at_first = session.forecast(draws=6)
    for question in session.ask(60):
        session.tell(question.id, judge(question))
    before = session.to_lines()
    later = session.forecast(draws=6, seed=2)
    assert session.to_lines() == before
    assert len(later.questions) == len(at_first.questions) == 6
    assert later.decided == 6
    assert later.questions.min() >= 0
    # What remains of the stage at hand has to be asked in any case.
    _, stages = session.progress()
    missing = sum(int(stage.left.sum()) for stage in stages)
    assert later.questions.min() >= missing
    assert np.array_equal(session.forecast(draws=6, seed=2).questions, later.questions)


def test_intervals_have_their_coverage_with_few_searches():
    """Of ten equally distributed numbers the tenth lies between the ends of the other nine in eight cases of ten."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(2000):
        *simulated, real = rng.exponential(1000, size=10).astype(int).tolist()
        found = made(simulated)
        assert (found.low, found.high) == (min(simulated), max(simulated))
        inside += found.low <= real <= found.high
    assert binom.ppf(0.0005, 2000, 0.8) <= inside <= binom.ppf(0.9995, 2000, 0.8)
    assert made(list(range(1, 20))).interval() == (2, 18)
    assert made([5, 7]).interval() == (0.0, np.inf)  # two searches do not show a tenth


@pytest.mark.parametrize(
    ("questions", "broken_off", "sentence"),
    [
        ([25, 30, 31, 35, 41, 44, 50, 60, 72], 0, "about 41 more questions (25 to 72)"),
        ([251, 300, 310, 350, 414, 440, 500, 600, 1234], 0, "about 410 more questions (250 to 1,200)"),
        ([25, 30, 31, 35, 41, 44, 50, 60, 7200], 1, "about 41 more questions (25 or many more)"),
        ([25, 30, 31, 3511, 4111, 4411, 5011, 6011, 7211], 6, "more than 3,500 more questions"),
        ([0] * 9, 0, "no more questions"),
    ],
)
def test_the_sentence_is_for_people(questions, broken_off, sentence):
    found = made(questions, broken_off)
    assert str(found) == found.to_json()["sentence"] == sentence


def test_the_verdict_of_a_running_session_has_a_forecast(problem, monkeypatch):
    session = Session(problem, policy_named("uniform", delta=0.3, kappa=0.15), seed=1)
    judge, simulated = World("truth", problem, 2 * THETA).judge(5), []

    def answer(count: int) -> None:
        for question in session.ask(count):
            session.tell(question.id, judge(question))

    def counted(*args, **options):
        simulated.append(session.answered)
        return forecast_further(*args, **options)

    monkeypatch.setattr("surepick.session.session.forecast_further", counted)
    answer(40)
    lines = session.to_lines()
    verdict = session.verdict()
    assert simulated == []  # only when it is looked at
    first = session.forecast(price=0.1)
    assert first.cost == pytest.approx(0.1 * first.expected)
    assert verdict.forecast.questions.tolist() == first.questions.tolist()
    answer(10)  # a quarter more: the same forecast, moved on
    assert session.forecast().questions.tolist() == (first.questions - 10).tolist()
    assert simulated == [40]
    answer(1)
    assert session.forecast().questions.min() > 0
    assert simulated == [40, 51]
    assert session.to_lines()[: len(lines)] == lines
    while session.ask(1):
        for question in session.outstanding:
            session.tell(question.id, judge(question))
        answer(10_000)
    assert session.verdict().status.final
    assert session.verdict().forecast is None
    assert str(session.forecast()) == "no more questions"


def test_skipped_questions_are_not_forecast(problem):
    session = Session(problem, policy_named("uniform", delta=0.1, kappa=0.1), seed=1)
    for question in session.ask(30):
        session.skip(question.id)
    _, (stage,) = session.progress()
    assert stage.left.sum() == stage.plan.total - 30
    assert session.forecast(draws=2).questions.min() >= stage.plan.total - 30


def test_a_tie_in_a_stage_after_an_open_one_does_not_stop_the_forecast(problem):
    session = Session(problem, policy_named("anytime", delta=0.3, budget=2000), seed=1)
    judge = World("truth", problem, 2 * THETA).judge(5)
    for _ in range(20):
        for question in session.ask(1):
            session.tell(question.id, judge(question))
    _, tied, answered = session.ask(3)  # the first stays open, so that the tie's stage is not closed yet
    session.tie(tied.id)
    session.tell(answered.id, judge(answered))
    assert session.forecast(draws=3).decided == 3


def test_plausible_truths_follow_the_answers(problem):
    rows = problem.measurements
    none = Tally(rows, np.zeros(len(rows), dtype=int), np.zeros(len(rows), dtype=int))
    before = plausible_truths(problem, none, 4000, 0) @ rows.T
    assert np.mean(before**2) == pytest.approx((1 + 4 + 16) / 3, rel=0.1)  # each spread as likely as the others
    assert np.abs(before.mean(axis=0)).max() < 0.2
    pulls = np.full(len(rows), 4000)
    wins = np.rint(pulls / (1 + np.exp(-rows @ THETA))).astype(int)
    after = plausible_truths(problem, Tally(rows, pulls, wins), 4000, 0) @ rows.T
    np.testing.assert_allclose(after.mean(axis=0), rows @ THETA, atol=0.02)
    assert after.std(axis=0).max() < 0.06
    # A judge who is never in doubt is taken for one with a large spread.
    wins = np.where(rows @ THETA > 0, 20, 0)
    sure = plausible_truths(problem, Tally(rows, np.full(len(rows), 20), wins), 4000, 0) @ rows.T
    assert np.mean(sure**2) > 16


def test_refusals_are_one_sentence(problem):
    policy = policy_named("uniform")
    for call, sentence in (
        (lambda: forecast(problem, policy, [1.0]), "theta must be a list of 2 numbers"),
        (lambda: forecast(problem, policy, THETA, runs=0), "runs must be at least 1, got 0"),
        (lambda: forecast(problem, policy, THETA, price=-1), "price must not be negative"),
        (lambda: Session(problem, policy).forecast(draws=0), "draws must be at least 1, got 0"),
        (lambda: made([1, 2]).interval(1.5), "coverage must lie strictly between"),
    ):
        with pytest.raises(InvalidInput) as refusal:
            call()
        assert sentence in str(refusal.value)


def test_the_study_replays_a_quarter_and_counts_what_holds(tmp_path, monkeypatch):
    """One search of a cheap policy; the summary counts a row on either side of its interval as outside."""
    monkeypatch.setattr(study, "DRAWS", 2)
    (row,) = study.run({"world": "items", "run": 0, "policy": "rage-linear"}, np.random.default_rng(4))
    assert row["asked_before"] == row["questions"] // 4
    assert row["further"] == row["questions"] - row["asked_before"]
    row |= {"low": 20.0, "forecast": 30.0, "high": 50.0}
    rows = [row | {"further": further, "inside": 20 <= further <= 50} for further in (10, 20, 30, 60)]
    summary = study.summarise([*rows, row | {"used": False}])
    assert (summary["too_short"], summary["all"]["inside"]) == (1, 2)
    assert (summary["all"]["below"], summary["all"]["above"]) == (1, 1)
    assert study.draw(rows, summary, tmp_path)[0].stat().st_size > 5000
    assert study.tables(summary)[0][1][0]["share"] == 0.5
