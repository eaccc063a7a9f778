"""The studies `claims` and `sticky`: their worlds are what they say, and their controls are what must be caught."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from surepick.evidence.betting import LOG_SHARES
from surepick.glm import Tally
from surepick.identify import Problem, Status, Winner
from surepick.session import Question
from surepick_experiments.studies import Options, claims, sticky
from surepick_experiments.studies.claims import EQUALS, PEEKING, WORLDS, Peeking, search, summarise


@pytest.mark.parametrize("world", WORLDS)
def test_every_world_has_a_winner_at_all_times(world: str) -> None:
    case = WORLDS[world](np.random.default_rng(1))
    others = [item for item in range(len(case.problem.items)) if item != case.winner]
    chances = [case.chance(case.winner, item, number) for item in others for number in range(0, 100, 7)]
    assert min(chances) >= 0.5
    # (W) is at its border where it says so, and nowhere else.
    assert (min(chances) == 0.5) == (world in EQUALS or world == "exact tie, epsilon")


def test_two_camps_and_drift_change_with_time() -> None:
    for world in ("two camps, one favourite", "drift below the winner"):
        case = WORLDS[world](np.random.default_rng(2))
        first, second = [item for item in range(6) if item != case.winner][:2]
        assert case.chance(first, second, 0) != case.chance(first, second, claims.CHANGES)


@pytest.mark.parametrize(("policy", "fair"), [(Winner(), True), (Peeking(), False)])
def test_bets_fixed_after_the_answer_have_a_mean_above_one(policy: Winner, fair: bool) -> None:
    """Exact means over both answers to a fair question, after every start of a search of three questions."""
    problem = Problem.from_pairs(["a", "b"])
    means = []
    for past in ((), (1,), (0,), (1, 0), (1, 1)):
        wealth = []
        for answer in (0, 1):
            state = policy.start(problem)
            for said in (*past, answer):
                before = state.evaluated.evidence.log_wealth + LOG_SHARES
                plan = policy.stage_of(state, np.array([1]))
                state = policy.update(policy.apply(state, plan), plan.stage, Tally(problem.measurements, [1], [said]))
            after = state.evaluated.evidence.log_wealth + LOG_SHARES
            wealth.append(np.exp(logsumexp(after, axis=1) - logsumexp(before, axis=1)))
        means.append(np.mean(wealth, axis=0))
    assert (np.max(means) <= 1 + 1e-12) == fair


@pytest.mark.parametrize("world", ["left bias", "30% ties", "misleading features", "exact tie, epsilon"])
def test_winner_is_right_in_one_run_of_each_kind(world: str) -> None:
    case = WORLDS[world](np.random.default_rng([5, 3]))
    verdict = search(case, "winner", 5)
    assert verdict.status.decided
    assert not case.is_wrong(verdict)


def test_the_claim_features_is_led_astray_where_the_features_are() -> None:
    """Of a few searches at least one names another item; fixed seeds."""
    cases = [(seed, WORLDS["misleading features"](np.random.default_rng([seed, 3]))) for seed in (1, 3, 4)]
    assert any(case.is_wrong(search(case, "features", seed)) for seed, case in cases)


def test_no_winner_is_an_error_and_an_item_within_epsilon_is_none() -> None:
    case = WORLDS["exact tie, epsilon"](np.random.default_rng(0))
    verdict = search(case, "winner", 0)
    tied = next(item for item in range(5) if item != case.winner and case.is_good(item))
    worse = next(item for item in range(5) if not case.is_good(item))
    named = {item: replace(verdict, best=case.problem.names[item]) for item in (tied, worse)}
    assert not case.is_wrong(named[tied])
    assert case.is_wrong(named[worse])
    assert case.is_wrong(replace(verdict, status=Status.NO_WINNER))
    assert not case.is_wrong(replace(named[worse], status=Status.BUDGET_SPENT))


def test_errors_are_judged_by_an_exact_bound() -> None:
    rows = [
        {"claim": claim, "world": "w", "decided": True, "wrong": number < wrong, "questions": 1}
        for claim, wrong in (("winner", 3), (PEEKING, 15))
        for number in range(50)
    ]
    summary = summarise(rows)
    assert (summary["broken"], summary["controls_caught"]) == (0, 1)
    assert summary["error_high"] == pytest.approx(0.165, abs=0.001)  # Clopper and Pearson for 3 of 50


def test_the_study_has_two_thousand_runs_of_winner() -> None:
    listed = claims.tasks(Options())
    assert sum(task["runs"] for task in listed if task["claim"] == "winner") >= 2000
    assert {task["claim"] for task in listed} == {"winner", "features", PEEKING}


def test_a_sticky_person_repeats_the_answer_whichever_side_is_left() -> None:
    problem = Problem.from_pairs(["a", "b"])
    judge = sticky.StickyPerson(problem, np.zeros(2), np.random.default_rng(0))
    questions = [
        Question(number, 0, 0, problem.measurements[0], *(("b", "a") if swapped else ("a", "b")), swapped=swapped)
        for number, swapped in enumerate([False, True, False, True, True])
    ]
    preferred = [question.first if judge(question) else question.second for question in questions]
    assert len(set(preferred)) == 1


@pytest.mark.parametrize("repeats", ["once", "spaced"])
def test_people_who_stick_to_their_answers_are_not_taken_for_proof(repeats: str) -> None:
    task = {"judge": "sticky", "claim": "winner", "world": "no features", "repeats": repeats, "block": 0, "runs": 4}
    rows = sticky.run_task(task, np.random.default_rng(3))
    assert all(row["nothing_left_to_ask"] and not row["wrong"] for row in rows)
    control = sticky.run_task(task | {"repeats": "independent"}, np.random.default_rng(3))
    assert sum(row["wrong"] for row in control) >= 2
    cells: list[dict[str, Any]] = sticky.summarise(rows + control)["cells"]
    assert [cell["wrong"] for cell in cells] == [0, sum(row["wrong"] for row in control)]
    assert all(math.isfinite(cell["error_high"]) for cell in cells)
