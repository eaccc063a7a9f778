"""Which comparisons Winner asks where some may not be asked."""

import numpy as np
import pytest

from surepick.glm.item_scores import ItemScores
from surepick.identify import Plan, Problem, Wait, Winner, winner_sampling

ITEMS = 12


@pytest.fixture
def problem():
    return Problem.from_pairs(np.eye(ITEMS))


def answered(problem, questions=60):
    """A state after answers that favour the items with the small numbers."""
    policy, rng = Winner(), np.random.default_rng(3)
    state = policy.start(problem)
    for _ in range(questions):
        plan = policy.plan(state, rng)
        state = policy.apply(state, plan)
        first, second = problem.about[plan.measurements].T
        won = rng.random(len(first)) < 1 / (1 + np.exp((first - second) / 3))
        state = policy.update(state, plan.stage, plan.tally(problem, won.astype(float)))
    return policy, state


def test_a_blocked_comparison_is_never_asked(problem):
    policy, state = answered(problem)
    rng = np.random.default_rng(4)
    blocked = set(rng.choice(len(problem.about), size=50, replace=False).tolist())
    for _ in range(50):
        plan = policy.plan(state, rng, blocked)
        assert isinstance(plan, Plan)
        assert not blocked & set(plan.measurements.tolist())


def test_a_rival_that_may_not_meet_the_leader_meets_the_best_of_the_others(problem):
    policy, state = answered(problem)
    leader, scores = state.leader, state.beliefs.scores()
    blocked = set(problem.comparison[leader].tolist()) - {-1}
    for seed in range(20):
        plan = policy.plan(state, np.random.default_rng(seed), blocked)
        first, second = sorted(problem.about[plan.measurements[0]].tolist(), key=lambda item: -scores[item])
        others = [item for item in range(ITEMS) if item not in (leader, second)]
        assert first == max(others, key=lambda item: scores[item])


def test_every_comparison_shows_the_leader_and_mostly_a_near_rival(problem):
    """Challengers come from samples of the beliefs, so near rivals are asked about most, and all at times."""
    policy, state = answered(problem, 20)
    rng, met = np.random.default_rng(5), np.zeros(ITEMS)
    for _ in range(400):
        pair = problem.about[policy.plan(state, rng).measurements[0]].tolist()
        assert state.leader in pair
        met[sum(pair) - state.leader] += 1
    rivals = state.rivals
    scores, deviations = state.beliefs.scores(), state.beliefs.deviations_from(state.leader)
    z = ((scores[state.leader] - scores) / deviations)[rivals]
    near, far = met[rivals[z < np.median(z)]].sum(), met[rivals[z > np.median(z)]].sum()
    assert near > 2 * far > 0


def test_with_everything_blocked_the_search_says_that_nothing_is_left(problem):
    policy, state = answered(problem)
    outcome = policy.plan(state, np.random.default_rng(0), set(range(len(problem.about))))
    assert isinstance(outcome, Wait)
    assert outcome.exhausted


def test_a_question_is_planned_in_one_pass_however_many_are_blocked(problem, monkeypatch):
    """Recorded votes block most comparisons in the end; trying rivals one after the other took most of the time."""
    policy, state = answered(problem)
    calls = []
    predict_all = ItemScores.predict_all
    monkeypatch.setattr(ItemScores, "predict_all", lambda *args: calls.append(1) or predict_all(*args))
    monkeypatch.setattr(winner_sampling, "TELLING", 0.6)  # only the leader may be met, and only by the last
    last = int(np.argmin(state.beliefs.scores()))
    blocked = set(problem.comparison[state.leader].tolist()) - {problem.comparison[state.leader, last]}
    assert policy.plan(state, np.random.default_rng(0), blocked) is not None
    assert len(calls) <= 2
