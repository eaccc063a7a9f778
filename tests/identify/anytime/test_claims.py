"""Ranks and top sets: what is proven of them is true, and agrees with the verdict."""

from dataclasses import replace

import numpy as np

from helpers import most_failures
from surepick import Anytime, Problem, Session, Uniform
from surepick.identify import DrawnAnswers
from surepick.identify.anytime.claims import proven_better
from surepick.judges import World
from surepick.report.history import score_table

ITEMS = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.0], [0.9, 0.9], [-0.5, 0.4]])
THETA = np.array([2.5, 1.5])


def searched(seed: int, theta: np.ndarray = THETA, **options) -> Session:
    problem = Problem.from_pairs(ITEMS)
    judge = World("small", problem, theta).judge(seed)
    session = Session(problem, Anytime(**options), seed=seed)
    while questions := session.ask(1):
        session.tell(questions[0].id, judge(questions[0]))
    return session


def test_the_best_has_rank_one_and_ranks_hold_the_truth():
    session = searched(1)
    known = score_table(session, delta=0.05)
    truth = 1 + ((ITEMS @ THETA)[:, None] < ITEMS @ THETA).sum(axis=1)
    best = session.problem.index(session.verdict().best)
    assert known.items[0] == best
    assert (known.best_rank[0], known.worst_rank[0]) == (1, 1)
    assert list(known.top(1)) == [best]
    assert np.all((known.best_rank <= truth[known.items]) & (truth[known.items] <= known.worst_rank))
    assert np.all(known.low <= known.score)
    assert not np.any(known.better & known.better.T)


def test_false_ranks_are_rarer_than_delta_and_estimates_are_not():
    runs, delta, items = 20, 0.2, np.arange(5)
    close = THETA / 8
    higher = (ITEMS @ close)[:, None] > (ITEMS @ close)[None, :]
    false, false_of_estimates = 0, 0
    for seed in range(runs):
        session = searched(seed, close, delta=delta, budget=25)
        state, _ = session.progress()
        better = proven_better(state, session.verdict(), items)
        scores = state.problem.points @ state.theta
        false += bool(np.any(better & ~higher))
        false_of_estimates += bool(np.any((scores[:, None] > scores[None, :]) & ~higher))
    assert false <= most_failures(runs, delta)
    assert false_of_estimates > most_failures(runs, delta)  # the control: unproved claims are often false


def test_an_open_verdict_claims_no_rank_that_the_localiser_does_not_prove():
    """Twelve tied items: every rank is false, and passes of the directional rule are many, one for each rival."""
    problem, policy, items = Problem.from_items(np.eye(12), intercept=False), Anytime(delta=0.9), np.arange(12)
    passed = 0
    for seed in range(3, 9):
        judge = DrawnAnswers(np.zeros(12), np.random.default_rng([seed, 4]))
        state = policy.start(problem)
        for _ in range(26):
            counts = np.full(12, max(1, int(0.4 * state.asked / 12)))
            plan = policy.stage_of(state, counts)
            wins = judge.wins(problem.measurements[plan.measurements], plan.pulls)
            state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(problem, wins))
            verdict = policy.verdict(state)
            assert not verdict.status.decided
            if len(verdict.surviving) < 12:
                passed += 1
                better, by_localiser = (
                    proven_better(state, replace(verdict, surviving=names), items)
                    for names in (verdict.surviving, problem.names)
                )
                assert np.array_equal(better, by_localiser)
    assert passed > 0  # else the test would show nothing


def test_before_any_answer_nothing_is_known():
    assert score_table(Session(Problem.from_pairs(ITEMS)), delta=0.05) is None


def test_other_policies_rank_by_their_intervals():
    problem = Problem.from_pairs(ITEMS[:3])
    judge = World("small", problem, THETA).judge(2)
    session = Session(problem, Uniform(budget=300), seed=2)
    while questions := session.ask(1):
        session.tell(questions[0].id, judge(questions[0]))
    known = score_table(session, delta=0.05)
    assert np.all(known.best_rank <= known.worst_rank)
    assert known.better.any()


def test_intervals_cover_though_a_judge_withholds_wins():
    """A judge who skips 60% of the wins of item b: charged, the intervals must not take the rest for all answers."""
    runs, missed = 12, 0
    problem = Problem.from_pairs(np.eye(3), names=["a", "b", "c"])
    for seed in range(runs):
        judge, rng = World("even", problem, np.zeros(3)).judge(seed), np.random.default_rng([seed, 9])
        session = Session(problem, Anytime(missing="charged", budget=500), seed=seed)
        while questions := session.ask(1):
            answer = judge(questions[0])
            winner = questions[0].first if answer else questions[0].second
            if winner == "b" and rng.random() < 0.6:
                session.skip(questions[0].id)
            else:
                session.tell(questions[0].id, answer)
        known = score_table(session, delta=0.05)
        missed += bool(np.any((known.low > 0) | (known.high < 0)))
    assert missed <= most_failures(runs, 0.05)
    assert "whatever the reason" in known.note
    assert any("charged" in sentence for sentence in session.verdict().assumptions)


def test_charged_intervals_are_those_without_a_charge_where_all_answers_came():
    """Nothing is missing, so nothing is charged: both sets are nearly the same, and hold the truth."""
    charged, plain = (score_table(searched(1, missing=missing), delta=0.05) for missing in ("charged", "ignorable"))
    truth = (ITEMS - ITEMS.mean(axis=0)) @ THETA
    assert np.array_equal(charged.items, plain.items)
    assert np.all((charged.low <= truth[charged.items]) & (truth[charged.items] <= charged.high))
    width = plain.high - plain.low
    for ours, theirs in ((charged.score, plain.score), (charged.low, plain.low), (charged.high, plain.high)):
        assert np.all(np.abs(ours - theirs) <= 0.1 * width)
