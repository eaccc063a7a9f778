"""What stages prove, what is excluded, how large stages are, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from helpers import planned
from surepick import GOptimal, InvalidInput, Passive, Problem, RageGlm, RageGlm2, RageLinear, Status, Uniform
from surepick.baselines.printed_forms import printed_burn_in
from surepick.confidence.theorem import Budget
from surepick.glm import probability_of_yes, variance
from surepick.identify import CannotClose, Plan, run
from surepick.identify.staged import rage_glm
from surepick.identify.staged.base import Stages
from surepick.identify.staged.burn_in import level
from surepick.identify.staged.elimination import shortfall, surviving
from surepick.identify.staged.stage_bounds import Estimate, best_budget, certify, smallest_stage
from surepick.judges import ExpectedJudge, World
from surepick.linalg import Span, factor
from surepick.registry import POLICIES, policy_from_json, policy_named
from surepick_experiments.worlds import example_1, one_over_kappa, soare


def small_stage(seed: int, *, scale: float = 1.0) -> tuple[World, np.ndarray, np.ndarray, np.ndarray, Budget]:
    """Answers to a design for which the theorem applies, barely."""
    world = soare(3)
    rows = world.problem.rows
    budget = best_budget(delta=0.2, rank=3, xi=0.08, asked_lines=4, query_lines=3)
    pulls = np.full(len(rows), int(1500 * scale))
    wins = np.random.default_rng(seed).binomial(pulls, probability_of_yes(rows @ world.theta))
    return world, np.arange(len(rows)), pulls, wins, budget


def test_certified_widths_and_floors_hold_as_often_as_promised() -> None:
    failed, control, runs = 0, 0, 120
    for seed in range(runs):
        world, asked, pulls, wins, budget = small_stage(seed)
        floors = np.full(len(asked), world.kappa)
        proved = certify(world.problem.rows, asked, pulls, wins, floors, budget)
        assert proved is not None
        best = int(np.argmax(world.scores))
        away = world.problem.points[best] - np.delete(world.problem.points, best, axis=0)
        error = np.abs(away @ (proved.estimate.theta - world.theta))
        width = np.linalg.norm(proved.estimate.white(away), axis=1)
        true = variance(world.problem.rows @ world.theta)
        failed += bool(np.any(error > width) or np.any(proved.floors > true * (1 + 1e-9)))
        control += bool(np.any(error > width / 4))
    # One false alarm in a thousand if the truth were delta = .2; the fourth of the width must be caught.
    assert binom.sf(failed - 1, runs, 0.2) > 1e-3
    assert binom.sf(control - 1, runs, 0.2) < 1e-3


def test_floors_only_rise_and_vectors_outside_the_span_keep_theirs() -> None:
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    budget = best_budget(delta=0.1, rank=1, xi=0.1, asked_lines=1, query_lines=1)
    floors = np.array([0.05, 0.07, 0.02])
    proved = certify(rows, np.array([0]), np.array([20_000]), np.array([11_000]), floors, budget)
    assert proved is not None
    assert proved.floors[0] > 0.2
    np.testing.assert_array_equal(proved.floors[1:], floors[1:])
    assert not proved.estimate.span.is_full


def test_nothing_is_certified_without_a_burn_in_or_an_estimate() -> None:
    world, asked, _, _, budget = small_stage(0)
    floors = np.full(len(asked), world.kappa)
    few = np.full(len(asked), 5)
    assert certify(world.problem.rows, asked, few, few // 2, floors, budget) is None
    many = np.full(len(asked), 5000)
    assert certify(world.problem.rows, asked, many, many, floors, budget) is None  # all ones: separated


def test_elimination_is_the_rule_over_all_pairs() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(200, 4))
    shape = factor(np.diag([1.0, 2.0, 0.5, 3.0]))
    assert shape is not None
    estimate = Estimate(rng.normal(size=4), Span(4, 4, None), shape, 0.7)
    alive = np.sort(rng.choice(200, size=150, replace=False))
    score = points @ estimate.theta
    inverse = np.linalg.inv(np.diag([1.0, 2.0, 0.5, 3.0]))
    expected = []
    for z in alive:
        away = points[alive] - points[z]
        width = 0.7 * np.sqrt(np.einsum("ij,jk,ik->i", away, inverse, away))
        if not np.any(score[alive] - score[z] > width):
            expected.append(int(z))
    assert surviving(points, alive, estimate).tolist() == expected
    leader, bound = shortfall(points, alive, estimate)
    away = points[alive] - points[leader]
    width = 0.7 * np.sqrt(np.einsum("ij,jk,ik->i", away, inverse, away))
    assert bound == pytest.approx(float(np.max(score[alive] - score[leader] + width)))


def test_a_difference_that_was_not_asked_about_excludes_nobody() -> None:
    shape = factor(np.array([[1e6]]))
    assert shape is not None
    span = Span(2, 1, np.array([[1.0], [0.0]]))
    estimate = Estimate(np.array([5.0, 0.0]), span, shape, 1.0)
    points = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    assert surviving(points, np.arange(3), estimate).tolist() == [0, 2]
    assert shortfall(points, np.arange(3), estimate)[1] == math.inf
    assert shortfall(points, np.arange(2), estimate)[1] < 1.0


def test_smallest_stage_is_enough_and_not_much_more() -> None:
    budget = best_budget(delta=0.05, rank=5, xi=0.05, asked_lines=10, query_lines=20)
    from surepick.confidence.theorem import radii

    questions = smallest_stage(5, budget, longest=40.0, value=3.0, target=0.1)

    def width(n: float) -> float:
        reached = radii(math.sqrt(40.0 / n), 5, budget)
        return math.inf if reached is None else reached.query * math.sqrt(3.0 / n)

    assert width(questions) <= 0.1
    assert width(0.97 * questions) > 0.1


def test_printed_burn_in_has_the_papers_size() -> None:
    problem = Problem.from_pairs(np.random.default_rng(0).normal(size=(40, 5)))
    count, d, delta = len(problem.rows), 5, 0.05
    gamma = d + math.log(6 * (2 + count) / delta)
    expected = 3 * 1.1 * d * gamma * math.log(2 * count * (2 + count) / delta) / 0.1
    assert printed_burn_in(problem, 0.1, delta, 0.1).total == math.ceil(expected)


def test_first_trial_of_the_printed_form_is_reproduced() -> None:
    world = soare(10)
    policy = RageGlm(kappa=world.kappa, constants="printed")
    verdict = run(world.problem, policy, ExpectedJudge(world.theta))
    assert verdict.status is Status.CERTAIN
    assert verdict.questions == pytest.approx(8.4e5, rel=0.05)


@pytest.mark.parametrize(("targets", "times"), [("halving", 4), ("adaptive", 8)])
def test_corrected_constants_save_questions(targets: str, times: int) -> None:
    world = soare(10)
    spent = []
    for constants in ("printed", "corrected"):
        policy = RageGlm(kappa=world.kappa, constants=constants, targets=targets)
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
    before = Stages(state.problem, state.filed[:-1])
    state = policy.close(policy.apply(before, lost), plan.stage)  # not one answer came
    _, again = planned(policy, state, rng)
    assert isinstance(again, Plan)
    assert (again.memo["kind"], again.memo["round"]) == ("explore", 3)


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


def test_closing_a_stage_early() -> None:
    world = soare(3)
    problem, rng = world.problem, np.random.default_rng(0)
    for missing in ("ignorable", "refuse"):
        policy = RageGlm(kappa=world.kappa, missing=missing)
        state, plan = planned(policy, policy.start(problem), rng)
        assert isinstance(plan, Plan)
        pulls = plan.pulls - 1
        state = policy.update(state, 0, plan.tally(problem, pulls // 2, pulls))
        assert policy.verdict(state).questions == 0  # the stage is not complete
        if missing == "refuse":
            with pytest.raises(CannotClose, match="cannot do without"):
                policy.close(state, 0)
        else:
            verdict = policy.verdict(policy.close(state, 0))
            assert verdict.questions == pulls.sum()
            assert "closed without an answer" in verdict.assumptions[-1]


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


def test_policies_survive_json() -> None:
    for name in POLICIES:
        known = {"norm_bound": 2.0} if name == "rage-glm-2" else {}
        policy = policy_named(name, delta=0.01, epsilon=0.1, **known)
        again = policy_from_json(policy.to_json())
        assert again == policy


def test_every_policy_states_its_guarantee_and_assumptions() -> None:
    tags = {name: str(policy_named(name).guarantee) for name in POLICIES}
    assert [name for name, tag in tags.items() if tag == "proved"] == [
        "anytime",
        "rage-glm",
        "rage-glm-halving",
        "passive",
        "g-optimal",
        "uniform",
    ]
    assert all(policy_named(name).assumptions and policy_named(name).statement for name in POLICIES)
    assert "norm of theta is at most 2" in RageGlm(norm_bound=2.0).assumptions[-1]


PROBLEM = soare(3).problem


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: RageGlm(delta=0.0), "delta must lie strictly between 0 and 1"),
        (lambda: RageGlm(epsilon=-1.0), "epsilon must not be negative"),
        (lambda: RageGlm(budget=0), "budget must be a whole number of at least 1, got 0"),
        (lambda: RageGlm(budget=2.5), "budget must be a whole number of at least 1, got 2.5"),
        (lambda: RageGlm(missing="guess"), "missing must be one of"),
        (lambda: RageGlm(targets="double"), "targets must be one of"),
        (lambda: RageGlm(kappa=0.3).start(PROBLEM), r"kappa .* lies in \(0, 0.25\], got 0.3"),
        (lambda: RageGlm(kappa=1e-4, norm_bound=2.0).start(PROBLEM), "kappa = 0.0001 is impossible for norm_bound = 2"),
        (lambda: RageGlm(constants="printed").start(PROBLEM), "needs kappa"),
        (lambda: GOptimal().start(PROBLEM), "g-optimal needs kappa"),
        (lambda: RageGlm2(kappa=0.1).start(PROBLEM), "needs norm_bound"),
        (lambda: policy_named("ragglm"), "no policy 'ragglm'"),
        (lambda: RageGlm2(kappa=0.1).start(PROBLEM), "rage-glm-2 needs norm_bound"),
        (lambda: RageGlm2().start(PROBLEM), "rage-glm-2 needs norm_bound"),
        (lambda: policy_from_json({"delta": 0.1}), r"no name, only \['delta'\]"),
        (lambda: policy_named("uniform", rounds=3), "does not take these options"),
        (
            lambda: (p := RageGlm(kappa=0.1, delta=1e-9, budget=100)).plan(p.start(PROBLEM), np.random.default_rng(0)),
            "budget of 100 questions: the first stage alone takes [0-9,]+, and the whole search is forecast",
        ),
        (lambda: Uniform().close(Uniform().start(PROBLEM), 0), "no stage 0"),
    ],
)
def test_bad_input_gets_a_sentence(call: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        call()
    assert str(caught.value).endswith(".")


def test_norm_bound_and_kappa_give_the_better_floor() -> None:
    short = Problem([[0.1, 0.0], [0.0, 1.0]], np.eye(2))
    both = RageGlm(kappa=0.12, norm_bound=2.0).floors(short)
    assert both is not None
    np.testing.assert_allclose(both, [float(variance(np.array(0.2))), 0.12])
    assert RageGlm().floors(short) is None


def test_levels_sum_to_delta() -> None:
    assert sum(level(0.05, number) for number in range(100_000)) == pytest.approx(0.05, rel=1e-4)


def test_exploring_after_a_burn_in_takes_the_share_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds without end in sight are rare (features that all but coincide), so the first is made one here."""
    world, planned = soare(3, angle=0.5), rage_glm._Round.adaptive
    policy, judge, memos = RageGlm(kappa=world.kappa), ExpectedJudge(world.theta), []
    levels, explored = set(), rage_glm.explored
    monkeypatch.setattr(rage_glm, "explored", lambda *given: levels.add(given[2]) or explored(*given))
    state = policy.start(world.problem)
    for questions in ({}, {"questions": math.inf}, {}):
        monkeypatch.setattr(rage_glm._Round, "adaptive", lambda *given, q=questions: replace(planned(*given), **q))
        state, plan = planned(policy, state, np.random.default_rng(0))
        assert isinstance(plan, Plan)
        wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
        state = policy.update(state, plan.stage, plan.tally(world.problem, wins))
        memos.append((plan.memo["kind"], plan.memo["round"]))
    assert memos[:2] == [("burn-in", 0), ("explore", 1)]
    assert memos[2][1] == 2
    assert levels == {level(policy.delta, 1)}


@pytest.mark.parametrize("name", POLICIES)
def test_a_stage_that_got_no_answer_is_not_the_end(name: str) -> None:
    world = soare(3, angle=0.5)
    for known in ({}, {"norm_bound": 2.0}):
        try:
            policy = policy_named(name, delta=0.2, **known)
            state = policy.start(world.problem)
        except InvalidInput:  # some need knowledge, some take none
            continue
        for answered in (False, True, False):
            state, plan = planned(policy, state, np.random.default_rng(0))
            assert isinstance(plan, Plan)
            pulls = plan.pulls * answered
            wins = ExpectedJudge(world.theta).wins(world.problem.measurements[plan.measurements], pulls)
            state = policy.close(policy.update(state, plan.stage, plan.tally(world.problem, wins, pulls)), plan.stage)
            verdict = policy.verdict(state)
            if verdict.status.final:
                break
        assert verdict.questions > 0


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


def test_the_printed_passive_form_doubles_its_rounds_where_one_vector_is_all_there_is_to_ask() -> None:
    tied = Problem.from_pairs({"a": [0.0], "b": [1.0]})
    policy = Passive(kappa=0.2, constants="printed", delta=0.1)
    verdict = run(tied, policy, ExpectedJudge(np.zeros(1)), stages=5)
    assert verdict.questions_by_stage[1:] == (2, 4, 8, 16)


def test_linear_rage_is_marked_as_misspecified() -> None:
    world = soare(3, angle=0.5)
    verdict = run(world.problem, RageLinear(), world.judge(0))
    assert verdict.guarantee == "heuristic"
    assert "1/2 + x'theta" in verdict.assumptions[0]


def test_a_first_stage_beyond_counting_is_refused_and_not_rehearsed() -> None:
    world = one_over_kappa(80, seed=0)
    policy = Uniform(delta=0.05, kappa=world.kappa)
    with pytest.raises(InvalidInput, match=r"the first stage alone takes [0-9,]*; raise"):
        policy.plan(policy.start(world.problem), np.random.default_rng(0))
