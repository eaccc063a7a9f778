"""RAGE-GLM: rounds, exploring, and what they cost."""

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers import planned
from surepick import Problem, RageGlm, RageGlmPrinted, Session, Status, Uniform
from surepick.identify import Plan, Stages, run
from surepick.identify.staged import rage_glm
from surepick.identify.staged.stage_bounds import level
from surepick.judges import ExpectedJudge
from surepick_experiments.worlds import example_1, soare


@pytest.mark.parametrize(("targets", "times"), [("halving", 4), ("adaptive", 8)])
def test_corrected_constants_save_questions(targets: str, times: int) -> None:
    world = soare(10)
    spent = []
    for policy in (RageGlmPrinted(kappa=world.kappa), RageGlm(kappa=world.kappa, targets=targets)):
        verdicts = [run(world.problem, policy, world.judge(seed)) for seed in range(2)]
        assert all(world.correct(verdict) and verdict.status is Status.CERTAIN for verdict in verdicts)
        spent.append(float(np.median([verdict.questions for verdict in verdicts])))
    assert spent[0] >= times * spent[1]


def test_the_cost_depends_on_stages_not_on_questions() -> None:
    """Gaps three hundred times smaller take 1e5 times the questions and about as long, counted in evaluations."""
    rows = []
    for gap in (0.3, 0.001):
        world = example_1(1.0, gap=gap)
        verdict = run(world.problem, RageGlm(kappa=world.kappa), world.judge(2))
        assert verdict.best == world.best
        rows.append((verdict.questions, len(verdict.questions_by_stage)))
    assert rows[1][0] > 1e4 * rows[0][0]
    assert rows[1][1] <= rows[0][1] + 8


def test_nothing_needs_to_be_known() -> None:
    world = soare(3, angle=0.5)
    verdict = run(world.problem, RageGlm(), world.judge(5))
    assert verdict.status is Status.CERTAIN
    assert verdict.best == world.best
    assert len(verdict.questions_by_stage) > 2


@pytest.mark.parametrize("targets", ["halving", "adaptive"])
def test_answers_that_are_nearly_certain_end_with_the_budget(targets: str) -> None:
    """With |x'theta| of 40 the answers never vary: no floor can be shown, and exploring ends with the budget."""
    world = soare(3, length=40.0)
    policy = RageGlm(targets=targets, budget=3000)
    verdict = run(world.problem, policy, world.judge(0))
    assert verdict.status is Status.BUDGET_SPENT
    assert "e1" in verdict.surviving


def test_exploring_again_spends_no_round_twice() -> None:
    """Should a later round want vectors without a floor, the search explores and goes on with the next round."""
    world = soare(3, angle=0.5)
    policy, rng = RageGlm(), np.random.default_rng(0)
    state = policy.start(world.problem)
    judge = world.judge(4)
    while True:
        state, plan = planned(policy, state, rng)
        assert isinstance(plan, Plan)
        wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
        state = policy.update(state, plan.stage, plan.tally(world.problem, wins))
        if plan.memo["kind"] == "round":
            break
    blind = {**plan.memo, "round": 3, "alive": [0, 1, 2, 3], "floors": [0.0] * 4}
    lost = Plan(plan.stage, plan.measurements, plan.pulls, blind)
    before = Stages(state.problem, state.records[:-1], state.eliminations[:-1])
    state = policy.close(policy.apply(before, lost), plan.stage)  # not one answer came
    _, again = planned(policy, state, rng)
    assert isinstance(again, Plan)
    assert (again.memo["kind"], again.memo["round"]) == ("explore", 3)


def test_exploring_after_a_burn_in_takes_the_share_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds without end in sight are rare (features that all but coincide), so the first is made one here."""
    world, usual = soare(3, angle=0.5), rage_glm._adaptive
    policy, judge, memos = RageGlm(kappa=world.kappa), ExpectedJudge(world.theta), []
    levels, explored = set(), rage_glm.explored
    monkeypatch.setattr(rage_glm, "explored", lambda *given: levels.add(given[1]) or explored(*given))
    state = policy.start(world.problem)
    for endless in ({}, {"size": lambda *_: math.inf}, {}):
        monkeypatch.setattr(rage_glm, "_adaptive", lambda *given, more=endless: replace(usual(*given), **more))
        state, plan = planned(policy, state, np.random.default_rng(0))
        assert isinstance(plan, Plan)
        wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
        state = policy.update(state, plan.stage, plan.tally(world.problem, wins))
        memos.append((plan.memo["kind"], plan.memo["round"]))
    assert memos[:2] == [("burn-in", 0), ("explore", 1)]
    assert memos[2][1] == 2
    assert levels == {level(policy.delta, 1)}


def test_epsilon_accepts_what_is_nearly_best() -> None:
    world = soare(3)
    exact = run(world.problem, RageGlm(kappa=world.kappa), world.judge(1))
    near = run(world.problem, RageGlm(kappa=world.kappa, epsilon=0.1), world.judge(1))
    assert near.status is Status.WITHIN_EPSILON or near.status is Status.CERTAIN
    assert near.questions < exact.questions
    assert world.shortfall(near) <= 0.1


def test_rivals_gaps_are_bracketed() -> None:
    world = soare(4)
    verdict = run(world.problem, RageGlm(kappa=world.kappa, delta=0.01), world.judge(3))
    for rival in verdict.rivals:
        gap = world.scores.max() - world.scores[world.problem.index(rival.name)]
        assert rival.gap_low <= gap <= rival.gap_high


def test_lost_answers_cost_questions_not_validity() -> None:
    """A stage that lost most of its answers proves nothing, and the search goes on from what it knew."""
    world = soare(3)
    policy = RageGlm(kappa=world.kappa)
    state, plan = planned(policy, policy.start(world.problem), np.random.default_rng(0))
    assert isinstance(plan, Plan)
    pulls = np.maximum(plan.pulls // 50, 1)
    state = policy.close(policy.update(state, 0, plan.tally(world.problem, pulls // 2, pulls)), 0)
    assert len(policy.verdict(state).surviving) == len(world.problem.items)
    _, again = planned(policy, state, np.random.default_rng(0))
    assert isinstance(again, Plan)
    np.testing.assert_allclose(again.memo["floors"], world.kappa)


def test_missing_answers_assume_independence_of_all_answers_evaluated_together():
    problem = Problem.from_pairs({"red": [1.0, 0.0], "blue": [0.0, 1.0]})
    session = Session(problem, Uniform(budget=10_000), seed=1)
    questions = session.ask(10_000)
    for question in questions[1:]:
        session.tell(question.id, 1)
    session.skip(questions[0].id)
    assert any("any other answer of its stage" in sentence for sentence in session.verdict().assumptions)
