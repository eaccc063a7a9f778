"""The processes of single items: exact means over all answers, at the border of the assumption and beyond it."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from surepick import Problem
from surepick.evidence.betting import LOG_SHARES, WinnerEvidence, experts, log_factors
from surepick.identify import Plan
from surepick.identify.winner import Winner

SCHEDULES = {
    "one by one": "pA" * 4,
    "all at once": "pppp" + "AAAA",
    "the newest first": "ppZpZpZZ",
    "delays": "ppApZpAA",
}
"""p plans a question, A answers the oldest that is open, Z the newest."""


def mean_of_process(policy, chances, schedule, *, item=0, missing=None, process=None):
    """E of the mixture process of an item over all answers; `chances` are P(first wins) by pair of items.

    A process that never began counts as 1, which is where it would have begun.

    `missing` maps an answer to the probability that it is lost; `process` picks the process of a final state.
    """
    problem = Problem.from_pairs(np.eye(3))
    lost = missing or {0: 0.0, 1: 0.0}
    leaves = []

    def walk(state, steps, weight, number):
        if not steps or weight == 0:
            evidence = (process or (lambda final: final.evidence))(state.evaluated)
            if evidence is not None:
                leaves.append((weight, logsumexp(evidence.log_wealth[item] + LOG_SHARES)))
            else:
                leaves.append((weight, 0.0))
            return
        if steps[0] == "p":
            plan = policy.plan(state, np.random.default_rng(number))
            after = policy.apply(state, plan) if isinstance(plan, Plan) else state
            walk(after, steps[1:], weight, number + 1)
            return
        waiting = [stage for stage, record in enumerate(state.stages) if not record.answered]
        if not waiting:
            walk(state, steps[1:], weight, number)
            return
        stage = waiting[0 if steps[0] == "A" else -1]
        plan = state.stages[stage].plan
        first, second = problem.about[plan.measurements[0]].tolist()
        chance = chances[first, second]
        for won, here in ((1, chance), (0, 1 - chance)):
            told = policy.update(state, stage, plan.tally(problem, [won]))
            walk(told, steps[1:], weight * here * (1 - lost[won]), number)
            if lost[won]:
                walk(policy.close(state, stage), steps[1:], weight * here * lost[won], number)

    walk(policy.start(problem), schedule, 1.0, 0)
    weights, logs = np.array(leaves).T
    assert weights.sum() == pytest.approx(1.0)
    return float(weights @ np.exp(logs))


def worlds(against_first=0.5):
    """Item 0 wins exactly its share of every comparison; the other two meet in any way."""
    return [{(0, 1): against_first, (0, 2): 0.5, (1, 2): chance} for chance in (0.0, 0.3, 0.5, 1.0)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("chances", worlds(), ids=lambda chances: f"others {chances[1, 2]}")
def test_at_the_border_of_the_assumption_the_mean_is_one(schedule, chances):
    assert mean_of_process(Winner(), chances, SCHEDULES[schedule]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_winner_has_a_mean_of_at_most_one_and_a_loser_a_larger(schedule):
    winner = {(0, 1): 0.9, (0, 2): 0.6, (1, 2): 0.4}
    assert mean_of_process(Winner(), winner, SCHEDULES[schedule]) <= 1
    loser = {(0, 1): 0.05, (0, 2): 0.05, (1, 2): 0.5}
    assert mean_of_process(Winner(), loser, SCHEDULES[schedule] + "pA" * 4) > 1.1


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("lost", [{0: 0.5, 1: 0.5}, {0: 0.0, 1: 0.7}, {0: 0.9, 1: 0.1}])
def test_charged_answers_may_be_lost_for_what_they_are(schedule, lost):
    charged = Winner(missing="charged")
    for chances in worlds():
        assert mean_of_process(charged, chances, SCHEDULES[schedule], missing=lost) <= 1 + 1e-9
    same = {0: 0.4, 1: 0.4}
    assert mean_of_process(Winner(), worlds()[1], SCHEDULES[schedule], missing=same) == pytest.approx(1.0, abs=1e-9)


def test_answers_that_are_lost_for_what_they_are_must_be_charged():
    """The control: ignoring lost wins makes the process of an item that wins half the time grow."""
    assert mean_of_process(Winner(), worlds()[2], "pA" * 6, missing={0: 0.0, 1: 0.9}) > 1.05


class Hindsight(Winner):
    """The broken rule: predictions are made after the answer."""

    def update(self, state, stage, tally):
        won = float(tally.wins[0])
        record = state.stages[stage]
        record.plan.memo.pop("stakes", None)
        record.plan.memo["shares"] = [(0.8 if won else 0.2, 0.5)]
        return super().update(state, stage, tally)


def test_predictions_after_the_answer_are_caught():
    assert mean_of_process(Hindsight(), worlds()[2], SCHEDULES["one by one"]) > 1.5


@pytest.mark.parametrize("schedule", ["pA" * 6, "ppApZpAA" + "ppZA", "ppppAAAA" + "ppAA"])
def test_with_epsilon_a_winner_by_more_than_that_keeps_a_mean_of_at_most_one(schedule):
    epsilon = 0.8
    policy = Winner(epsilon=epsilon, delta=0.3)
    beats = 1 / (1 + math.exp(-epsilon))

    def against(leader):
        return lambda state: next((named for named in state.named if named.against == leader), None)

    for chances in ({(0, 1): beats, (0, 2): 0.5, (1, 2): 0.5}, {(0, 1): beats, (0, 2): 0.5, (1, 2): 1.0}):
        mean = mean_of_process(policy, chances, schedule, process=against(1))
        assert mean == pytest.approx(1.0, abs=1e-9)  # item 0 is exactly at the border: by epsilon, and by one half
    weaker = {(0, 1): 1 / (1 + math.exp(-epsilon / 2)), (0, 2): 0.5, (1, 2): 0.5}
    assert mean_of_process(policy, weaker, schedule, process=against(1)) > 1 + 1e-4


def test_factors_are_affine_in_the_score_and_fair_at_the_fair_share():
    for fair, share in product((0.5, 0.25, 0.6), (0.01, 0.1, 0.2)):
        w, f = np.array([[share]]), np.array([[fair]])
        at = [math.exp(log_factors(w, np.array([[score]]), f)[0, 0]) for score in (0.0, fair, 0.5, 1.0)]
        assert at[1] == pytest.approx(1.0)
        assert at[0] == pytest.approx((1 - share) / (1 - fair))
        assert at[3] == pytest.approx(share / fair)
        assert at[2] == pytest.approx((at[0] + at[3]) / 2)


def test_picks_of_four_have_a_fair_share_of_a_quarter():
    evidence = WinnerEvidence.of(4)
    shares = ([0.1, 0.3, 0.3, 0.3], [0.25] * 4)
    mean = 0.0
    for picked in range(4):
        scores = [float(item == picked) for item in range(4)]
        after = evidence.update(range(4), shares, [(scores, 1)])
        mean += 0.25 * math.exp(logsumexp(after.log_wealth[0] + LOG_SHARES))
    assert mean == pytest.approx(1.0)


def test_an_expert_never_bets_on_an_item():
    fair = np.array([0.5, 0.5])
    assert np.all(experts(([0.9, 0.1], [0.4, 0.6]), fair) <= 0.5)
    assert np.all(experts(([0.9, 0.1], [0.6, 0.4]), fair)[0] == 0.5)


def test_what_was_reached_stays_reached():
    evidence, shares = WinnerEvidence.of(2), ([0.9, 0.1], [0.9, 0.1])
    lost = evidence.update((0, 1), shares, [((1.0, 0.0), 12)])
    assert lost.surviving(0.05).tolist() == [0]
    won_back = lost.update((0, 1), shares, [((0.0, 1.0), 40)])
    assert won_back.log_wealth[1].max() < 0
    assert won_back.surviving(0.05).tolist() == [0]


@pytest.mark.parametrize("share", [0.02, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("begun", [0, 2])
def test_aimed_bets_reach_the_threshold_exactly_after_a_whole_number_of_losses(share, begun):
    shares, shown, needed = ([1 - share, share], [0.5, 0.5]), (0, 1), math.log(20)
    evidence = WinnerEvidence.of(2)
    for _ in range(begun):
        evidence = evidence.update(shown, shares, [((1.0, 0.0), 1)])
    by_experts = evidence
    losses = 0
    while len(evidence.surviving(0.05)) == 2:
        bets = evidence.aimed_bets(shown, shares, needed)
        assert bets[0] == 0
        assert 0 < bets[1] < 2
        evidence = evidence.update(shown, shares, [((1.0, 0.0), 1)], bets=bets)
        losses += 1
    assert evidence.reached[1] == pytest.approx(needed, abs=1e-8)
    more = 0
    while len(by_experts.surviving(0.05)) == 2:
        by_experts, more = by_experts.update(shown, shares, [((1.0, 0.0), 1)]), more + 1
    assert losses <= more
    assert by_experts.reached[1] > needed + 0.01


def questions_to_exclude(share, seed, *, aim):
    """How many answers it takes to exclude an item that loses with probability 1 − share, as is predicted."""
    rng, shares, shown = np.random.default_rng(seed), ([1 - share, share], [1 - share, share]), (0, 1)
    evidence, asked = WinnerEvidence.of(2), 0
    while len(evidence.surviving(0.05)) == 2:
        won = float(rng.random() < share)
        bets = evidence.aimed_bets(shown, shares, math.log(20)) if aim else None
        evidence, asked = evidence.update(shown, shares, [((1 - won, won), 1)], bets=bets), asked + 1
    return asked


def test_aimed_bets_take_fewer_questions():
    aimed, mixed = (
        np.mean([questions_to_exclude(share, seed, aim=aim) for share in (0.1, 0.2) for seed in range(250)])
        for aim in (True, False)
    )
    assert aimed < 0.96 * mixed


class Careless(WinnerEvidence):
    """The broken rule: what experts have is divided again only if an answer comes."""

    def update(self, shown, shares, answers, spread=1.0, drawn=None, bets=None):
        if bets is not None and not any(times for _, times in answers):
            return self
        return super().update(shown, shares, answers, spread, drawn, bets)


@pytest.mark.parametrize("kind", [WinnerEvidence, Careless])
def test_whether_an_answer_comes_may_depend_on_later_ones(kind):
    """A question with fixed bets is out when a second is planned; it is lost if, and only if, the second was lost.

    Item 1 wins half the time, so its process must keep its mean.
    """
    begun, shares, shown = kind.of(2), ([0.9, 0.1], [0.6, 0.4]), (0, 1)
    for won in (0.0, 1.0, 0.0):  # with aimed bets, so that what experts have is not what they deserve
        bets = begun.aimed_bets(shown, shares, 1.5)
        begun = begun.update(shown, shares, [((1 - won, won), 1)], bets=bets)
    bets = begun.aimed_bets(shown, shares, 1.5)
    mean = 0.0
    for first, second in product((0.0, 1.0), repeat=2):
        answers = [((1 - first, first), int(second))]
        after = begun.update(shown, shares, answers, bets=bets).update(shown, shares, [((1 - second, second), 1)])
        mean += math.exp(logsumexp(after.log_wealth[1] + LOG_SHARES)) / 4
    fair = math.exp(logsumexp(begun.log_wealth[1] + LOG_SHARES))
    assert (mean == pytest.approx(fair, rel=1e-12)) == (kind is WinnerEvidence)


def test_bets_are_fixed_only_where_no_question_is_out():
    policy, problem = Winner(), Problem.from_pairs(np.eye(3))
    state, rng = policy.start(problem), np.random.default_rng(0)
    first = policy.plan(state, rng)
    second = policy.plan(policy.apply(state, first), rng)
    assert "stakes" in first.memo
    assert "stakes" not in second.memo
    assert "stakes" not in policy.stage_of(state, np.array([2, 0, 0])).memo


def test_any_epsilon_gives_a_finite_process():
    policy = Winner(epsilon=200.0, delta=0.3)
    problem = Problem.from_pairs(np.eye(3))
    state, rng = policy.start(problem), np.random.default_rng(0)
    for _ in range(20):
        plan = policy.plan(state, rng)
        if not isinstance(plan, Plan):
            break
        state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(problem, [0]))
    assert state.evaluated.named
    assert all(np.all(np.isfinite(named.log_wealth)) for named in state.evaluated.named)


def test_items_of_equal_features_are_one_item_by_assumption():
    distinct, merged = Problem.from_pairs([[0.0], [1.0]]), Problem.from_pairs([[0.0], [1.0], [1.0]])
    policy = Winner()
    said = [policy.verdict(policy.start(problem)).assumptions for problem in (distinct, merged)]
    assert len(said[1]) == len(said[0]) + 1


def test_a_stage_of_several_questions_keeps_the_mean():
    """Two comparisons of item 0, asked three and two times in one stage: all are predicted alike."""
    policy, problem = Winner(), Problem.from_pairs(np.eye(3))
    state = policy.start(problem)
    for _ in range(3):  # item 0 loses at first, so that there is something to bet on
        plan = policy.stage_of(state, np.array([1, 1, 0]))
        state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(problem, [0, 0]))
    begun = math.exp(logsumexp(state.evaluated.evidence.log_wealth[0] + LOG_SHARES))
    plan = policy.stage_of(state.evaluated, np.array([3, 2, 0]))
    applied, mean = policy.apply(state, plan), 0.0
    for first, second in product(range(4), range(3)):
        weight = math.comb(3, first) * math.comb(2, second) / 2**5
        after = policy.update(applied, plan.stage, plan.tally(problem, [first, second])).evaluated
        mean += weight * math.exp(logsumexp(after.evidence.log_wealth[0] + LOG_SHARES))
    assert begun > 1.5
    assert mean == pytest.approx(begun)
