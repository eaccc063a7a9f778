"""RAGE-GLM: rounds, exploring, and what they cost."""

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers import planned
from surepick import Problem, RageGlm, RageGlmPrinted, Session, Status, Uniform
from surepick.identify import Plan, Stages, run
from surepick.identify.staged import rage_glm, stage_bounds
from surepick.identify.staged.rage_glm import RoundMemo
from surepick.identify.staged.stage_bounds import level
from surepick.judges import ExpectedJudge, World
from surepick.registry import policy_named
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
    """Gaps three hundred times smaller take 1e5 times the questions, and one evaluation per doubling at most."""
    rows = []
    for gap in (0.3, 0.001):
        world = example_1(1.0, gap=gap)
        verdict = run(world.problem, RageGlm(kappa=world.kappa), world.judge(2))
        assert verdict.best == world.best
        rows.append((verdict.questions, len(verdict.questions_by_stage)))
    assert rows[1][0] > 1e4 * rows[0][0]
    assert rows[1][1] <= rows[0][1] + math.log2(rows[1][0] / rows[0][0])


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
    world, usual = soare(3, angle=0.3), rage_glm._adaptive
    policy, judge, memos = RageGlm(kappa=world.kappa), ExpectedJudge(world.theta), []
    levels, explored = set(), rage_glm.explored
    monkeypatch.setattr(rage_glm, "explored", lambda *given: levels.add(given[1]) or explored(*given))
    state = policy.start(world.problem)
    for endless in ({}, {"need": lambda *_: math.inf, "most": math.inf}, {}):
        monkeypatch.setattr(rage_glm, "_adaptive", lambda *given, more=endless: replace(usual(*given), **more))
        state, plan = planned(policy, state, np.random.default_rng(0))
        assert isinstance(plan, Plan)
        wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
        state = policy.update(state, plan.stage, plan.tally(world.problem, wins))
        memos.append((plan.memo["kind"], plan.memo["round"]))
    assert memos[:2] == [("burn-in", 0), ("explore", 1)]
    assert memos[2][1] == 2
    assert levels == {level(policy.delta, 1)}


def long_search(policy: RageGlm, world: World, seed: int) -> Stages:
    """All stages of a search that explores for nothing: it knows kappa."""
    state, rng, judge = policy.start(world.problem), np.random.default_rng(seed), world.judge(seed)
    while True:
        state, plan = planned(policy, state, rng)
        if not isinstance(plan, Plan):
            return state
        wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
        state = policy.update(state, plan.stage, plan.tally(world.problem, wins))


def test_a_round_goes_on_with_its_design_and_pools_its_answers() -> None:
    """All looks of a round follow from its first, and all that is spent on them is the delta of the round."""
    world, policy = example_1(2.0, gap=0.1), RageGlm(kappa=example_1(2.0, gap=0.1).kappa)
    state = long_search(policy, world, 1)
    memos = [RoundMemo.from_json(record.plan.memo) for record in state.records]
    looks = [place for place, memo in enumerate(memos) if memo.kind == "round" and memo.round == 1]
    assert len(looks) >= 3
    first = state.records[looks[0]].plan
    for place, before in zip(looks[1:], looks[:-1], strict=True):
        np.testing.assert_array_equal(state.records[place].plan.measurements, first.measurements)
        more = 2 ** memos[place].look - 2 ** memos[before].look
        assert more > 0
        np.testing.assert_array_equal(state.records[place].plan.pulls, first.pulls * more)
    spent = sum(rage_glm.look_share(look) for look in range(10**5))
    assert spent <= 1
    assert spent == pytest.approx(1, abs=1e-4)
    for place in looks:  # each look is evaluated with its own share, on the answers of all looks up to it
        memo, upto = memos[place], [state.records[one] for one in looks if one <= place]
        share = level(policy.delta, 1) * rage_glm.look_share(memo.look)
        rows = world.problem.rows
        asked_lines = stage_bounds.count_lines(rows[first.measurements])
        lines = len(world.problem.items) - 1
        assert memo.budget == stage_bounds.best_budget(
            delta=share, rank=2, xi=rage_glm.ROUND_XI / math.sqrt(2), asked_lines=asked_lines, query_lines=lines
        )
        pulls, wins = (sum(getattr(record, name) for record in upto) for name in ("pulls", "wins"))
        found = stage_bounds.stage_bounds(rows, first.measurements, pulls, wins, memo.floors, memo.budget)
        said = state.eliminations[place].estimate
        assert found is not None
        assert said is not None
        np.testing.assert_array_equal(said.theta, found.estimate.theta)
        assert said.radius == found.estimate.radius


def test_two_coins_take_about_as_many_questions_as_a_static_design() -> None:
    """There is nothing to adapt to. Rounds on fresh answers alone, the control, take 1.6 to 1.8 times as many."""
    world = example_1(4.0, gap=0.1)
    means = {
        name: np.mean(
            [
                run(world.problem, policy_named(name, kappa=world.kappa), world.judge(seed)).questions
                for seed in range(24)
            ]
        )
        for name in ("rage-glm", "rage-glm-halving", "passive")
    }
    assert means["rage-glm"] <= 1.25 * means["passive"]
    assert means["rage-glm-halving"] > 1.3 * means["passive"]


@pytest.mark.parametrize("policy", [RageGlm(delta=0.2), Uniform(delta=0.2)])
def test_the_order_of_large_stages_is_drawn_and_logged(policy: RageGlm | Uniform, monkeypatch: pytest.MonkeyPatch):
    """Every evaluation and every replay split the same stages alike, and no two searches do."""
    used, usual = [], rage_glm.ConfidenceSet.of
    monkeypatch.setattr(
        rage_glm.ConfidenceSet,
        "of",
        lambda batches, order_seed: used.append(order_seed) or usual(batches, order_seed=order_seed),
    )
    world, seeds = soare(3, angle=0.5), []
    for seed in (1, 2):
        session = Session(world.problem, policy, seed=seed)
        judge = np.random.default_rng(seed)
        while len(session.log) < 800 and session.final is None:
            for question in session.ask(50):
                session.tell(question.id, int(judge.random() < 1 / (1 + np.exp(-question.vector @ world.theta))))
        live = session.verdict()
        drawn = session.log[1]["memo"]["order_seed"]
        assert used
        assert set(used) == {drawn}
        used.clear()
        assert Session.replay(session.to_lines()).verdict() == live
        assert set(used) == {drawn}
        used.clear()
        seeds.append(drawn)
    assert seeds[0] != seeds[1]


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
