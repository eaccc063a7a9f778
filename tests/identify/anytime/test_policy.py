"""Anytime: what it promises, on worlds where it is hard to keep."""

import gc
import itertools
import json
import math
import weakref
from typing import Literal

import numpy as np
import pytest
from scipy.stats import binom

from helpers import planned
from surepick import Anytime, Guarantee, Problem, Session, Status, find_best
from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.glm import probability_of_yes, softplus, variance
from surepick.identify import Plan, Verdict, run
from surepick.identify.anytime.directional import (
    BETS,
    PREDICTED,
    REMAINDER,
    SLOPE_REMAINDER,
    VALUE_REMAINDER,
    DirectionalBets,
    taylor_sum,
    tilt_powers,
)
from surepick.identify.anytime.state import AnytimeMemo, State
from surepick.identify.anytime.stopping import AGAIN, FIRST, OLDER, THOROUGH, ProofStrategy, lacking_at, rival_bounds
from surepick.identify.anytime.tuning import TUNING
from surepick.judges import World
from surepick_experiments.studies import minimisation
from surepick_experiments.studies.delta_anytime import HORIZON, Hasty, Unpaid, large_norm_tie
from surepick_experiments.worlds import catalogue, person, soare

FALSE_ALARM = 1e-3


def small(seed: int, *, items: int = 4, dimension: int = 2, norm: float = 3.0) -> World:
    rng = np.random.default_rng([seed, 9])
    theta = rng.normal(size=dimension)
    return World(
        "small", Problem.from_pairs(rng.normal(size=(items, dimension))), norm * theta / float(np.linalg.norm(theta))
    )


class TestGuarantee:
    """Stops where the two best items are exactly tied: each is excluded with probability delta at most, so any stop has
    at most 2·delta − delta_2. `surepick study delta` has the rest."""

    DELTA, RUNS = 0.1, 40
    AT_A_TIE = DELTA * (2 - TUNING.localiser_share)

    def stops(self, policy: Anytime) -> int:
        tied = large_norm_tie()
        return sum(
            run(tied.problem, policy, tied.judge([seed, 1]), seed=seed).status.decided for seed in range(self.RUNS)
        )

    def test_ties_are_rarely_broken(self) -> None:
        stops = self.stops(Hasty(delta=self.DELTA, budget=HORIZON))
        assert stops <= binom.isf(FALSE_ALARM, self.RUNS, self.AT_A_TIE)

    def test_a_likelihood_ratio_without_the_price_of_looking_is_caught(self) -> None:
        stops = self.stops(Unpaid(delta=2 * self.DELTA, budget=HORIZON))
        assert stops > binom.isf(FALSE_ALARM, self.RUNS, self.AT_A_TIE)


class TestMinimisation:
    """A global search on the true objective finds nothing below a bound; `surepick study minimisation` has the rest."""

    def test_no_theta_lies_below_a_certified_bound_and_raised_bounds_would_be_found_out(self) -> None:
        summary = minimisation.summarise(minimisation.run({"block": 0, "runs": 15}, np.random.default_rng(11)))
        assert summary["problems"] >= 10  # where no answer is about some direction nothing is claimed
        assert summary["too_high"] == 0
        caught = {each["rule"]: each for each in summary["cells"]}
        assert caught["plug-in"]["caught_if_raised_by_0.1"] > 0.8
        assert caught["directional"]["caught_if_raised_by_1"] > 0.4


class TestWitnesses:
    """A point of the null at which both processes lack evidence shows that no proof can succeed."""

    def test_what_a_witness_rules_out_no_way_can_prove(self) -> None:
        found = 0
        for seed in range(8):
            rng = np.random.default_rng([seed, 4])
            state = minimisation.played(small(seed, norm=0.7), 14, rng)
            leader, points = state.leader, state.problem.points
            rivals = state.rivals_except(())
            quick = rival_bounds(state, leader, rivals, THOROUGH[:1], deciding=True)
            thorough = rival_bounds(state, leader, rivals, THOROUGH)
            for item, witness, plain, tilted in zip(
                rivals, quick.witnesses, thorough.plug_in, thorough.directional, strict=True
            ):
                if witness is not None:
                    found += 1
                    assert (points[leader] - points[item]) @ witness <= 1e-9
                    assert lacking_at(state, leader, np.array([item]), witness[None, :]) > 0
                    assert plain < state.threshold
                    assert tilted < state.needed
        assert found >= 5


class TestStrategies:
    """Each way to prove a bound finds what it can, whatever the others found before it."""

    @pytest.fixture
    def state(self) -> State:
        """Soon after a restart, which then has most evidence and little information."""
        world = catalogue("comfort", items=60, pairs=150, gap=0.35, seed=3)
        policy, judge, rng = Anytime(), world.judge(3), np.random.default_rng(3)
        state = policy.start(world.problem)
        while state.asked < 1800:
            state, plan = planned(policy, state, rng)
            assert isinstance(plan, Plan)
            wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
            state = policy.update(state, plan.stage, plan.tally(world.problem, wins))
        return state.evaluated

    def bounds(self, state: State, *strategies: ProofStrategy) -> Floats:
        close = np.argsort(state.nats(state.leader), kind="stable")[:6]
        return rival_bounds(state, state.leader, close, strategies).directional

    def test_a_poor_first_bound_does_not_hide_that_older_restarts_prove_more(self, state: State) -> None:
        first, older = self.bounds(state, FIRST), self.bounds(state, OLDER)
        poor = first < state.needed - TUNING.hopeless
        assert np.any(poor & (older > first + 1))
        assert np.all(self.bounds(state, FIRST, OLDER) >= older)

    def test_shares_at_the_least_point_prove_more_than_those_where_the_rival_has_caught_up(self, state: State) -> None:
        once, again = self.bounds(state, FIRST), self.bounds(state, FIRST, *AGAIN)
        assert np.all(again >= once)
        assert np.any(again > once + 1)


class TestFactors:
    """Exact: over all answers to a planned stage, the mean of every factor under θ is one, tilted or predicted."""

    @pytest.mark.parametrize("ahead", [0.0, 1.0])
    def test_no_factor_looks_ahead(self, ahead: float) -> None:
        world, theta = small(6, norm=6.0), np.array([1.0, -2.0])
        policy, judge, rng = Anytime(delta=1e-6), world.judge([0, 5]), np.random.default_rng(0)
        state, plan = planned(policy, policy.start(world.problem), rng)
        for _ in range(30):
            assert isinstance(plan, Plan)
            wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
            before_plan = policy.update(state, plan.stage, plan.tally(world.problem, wins)).evaluated
            state, plan = planned(policy, before_plan, rng)
        assert isinstance(plan, Plan)
        state = before_plan
        rows = world.problem.rows[plan.measurements]
        chances = probability_of_yes(rows @ theta)
        mean, predicted = np.zeros((3, BETS)), 0.0
        others, mean_of_experts = np.array(plan.memo["bets"]["rivals"][:3]), 0.0
        pulls = np.ones(len(rows))
        bets = DirectionalBets.from_json(plan.memo["bets"])
        for answers in itertools.product((0.0, 1.0), repeat=len(rows)):
            wins = np.array(answers)
            weight = float(np.prod(np.where(wins == 1, chances, 1 - chances)))
            memo = dict(plan.memo)
            if ahead:  # negative control: a prediction that knows the answers
                memo["predictions"] = (np.array(memo["predictions"]) + ahead * (2 * wins - 1)).tolist()
            after = state.plug_in.after(
                plan.measurements, pulls, wins, np.array(memo["predictions"]), restart=False, missing=0 * pulls
            )
            likelihood = math.log(weight)
            mean_of_experts += weight * math.exp(after.scores[0] - state.plug_in.scores[0] - likelihood)
            later = state.process.after(bets, plan.measurements, pulls, wins, 0 * pulls, world.problem.rows)
            points = np.tile(theta, (3, 1))
            change = later.log_bets(others, world.problem.rows, points) - state.process.log_bets(
                others, world.problem.rows, points
            )
            mean += weight * np.exp(change)
            predicted += float(np.sum(later.sums[PREDICTED] - 0.0))
        assert mean == pytest.approx(np.ones((3, BETS)), abs=1e-6)
        assert predicted > 0  # some answers were predicted instead of tilted
        assert (mean_of_experts == pytest.approx(1.0, abs=1e-9)) == (ahead == 0.0)

    @pytest.mark.parametrize("missing", ["ignorable", "charged"])
    def test_questions_out_at_once_are_bet_on_without_looking_ahead(
        self, missing: Literal["ignorable", "charged"]
    ) -> None:
        """Three stages are out; which answer comes first depends on the answers themselves."""
        world, theta = small(6, norm=6.0), np.array([1.0, -2.0])
        policy, judge, rng = Anytime(delta=1e-6, missing=missing), world.judge([0, 5]), np.random.default_rng(0)
        state = policy.start(world.problem)
        for _ in range(30):
            state, plan = planned(policy, state, rng)
            assert isinstance(plan, Plan)
            wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
            state = policy.update(state, plan.stage, plan.tally(world.problem, wins))
        before, plans = state.evaluated, []
        for _ in range(3):
            state, plan = planned(policy, state, rng)
            assert isinstance(plan, Plan)
            assert plan.total == 1
            plans.append(plan)
        assert [("predictions" in each.memo) for each in plans] == [True, missing == "charged", missing == "charged"]
        chances = [float(probability_of_yes(world.problem.rows[each.measurements[0]] @ theta)) for each in plans]
        others = np.array([z for z in range(4) if z != before.leader])
        points = np.tile(theta, (3, 1))
        start = before.process.log_bets(others, world.problem.rows, points)
        means, mean_of_experts = np.zeros((3, BETS)), np.zeros(4)
        for answers in itertools.product((0, 1), repeat=3):
            after = state
            for place in sorted(range(3), key=lambda place: (answers[place], -place)):
                tally = plans[place].tally(world.problem, [answers[place]])
                after = policy.update(after, plans[place].stage, tally)
            end = after.evaluated
            assert end.evaluated_stages == before.evaluated_stages + 3
            weight = math.prod(p if y else 1 - p for p, y in zip(chances, answers, strict=True))
            mean_of_experts += np.exp(end.plug_in.scores - before.plug_in.scores)  # the likelihood cancels the weight
            means += weight * np.exp(end.process.log_bets(others, world.problem.rows, points) - start)
        assert mean_of_experts == pytest.approx(np.ones(4), abs=1e-9)
        assert means == pytest.approx(np.ones((3, BETS)), abs=1e-6)


class TestTilts:
    def test_powers_are_exact_up_to_the_stated_remainder(self) -> None:
        rng = np.random.default_rng(0)
        c, n = rng.uniform(-0.3, 0.3, size=(40, 3, 50)), rng.integers(1, 9, size=(40, 1, 50))
        v = rng.normal(size=(3, 50)) * 5
        sums = (tilt_powers(c) * n).sum(axis=1)
        yes = probability_of_yes(v)
        value = (n * (softplus(v + c) - softplus(v))).sum(axis=0)
        slope = (n * (probability_of_yes(v + c) - yes)).sum(axis=0)
        assert np.all(np.abs(taylor_sum(sums, yes, 0) - value) <= VALUE_REMAINDER * sums[REMAINDER] + 1e-10)
        assert np.all(
            np.abs(taylor_sum(sums, yes, 1) - slope) <= SLOPE_REMAINDER * sums[REMAINDER] * variance(v) + 1e-10
        )
        assert np.max(np.abs(taylor_sum(sums, yes, 0) - value)) > 1e-12  # there is a remainder to bound


class TestMemo:
    """A stage's memo goes into logs that later versions replay: its fields are a format."""

    KEYS = ("restart", "passed", "tried", "examined", "rehearsed")
    FIXED = ("experts", "predictions", "bets")
    BETS = ("rivals", "shifts", "logits", "limits")

    def test_every_memo_is_read_and_written_alike(self) -> None:
        world, rng = small(6, norm=6.0), np.random.default_rng(0)
        policy, judge = Anytime(), world.judge([0, 5])
        state = policy.start(world.problem)
        kinds, bets = set(), 0
        for _ in range(40):
            first, plan = planned(policy, state, rng)
            if not isinstance(plan, Plan):
                break
            state, second = planned(policy, first, rng)  # planned while the first is out: its factors come later
            for one in (plan, second):
                if isinstance(one, Plan):
                    kinds.add(tuple(one.memo))
                    assert AnytimeMemo.from_json(json.loads(json.dumps(one.memo))).to_json() == one.memo
                    if one.memo.get("bets") is not None:
                        bets += 1
                        assert tuple(one.memo["bets"]) == self.BETS
                    wins = judge.wins(world.problem.measurements[one.measurements], one.pulls)
                    state = policy.update(state, one.stage, one.tally(world.problem, wins))
        assert kinds == {self.KEYS, self.KEYS + self.FIXED}
        assert bets > 0

    def test_bets_for_each_leader_are_read_as_bets_against_items(self) -> None:
        """Logs once had a process for each leader, of five bets; what was passed by it is tried again."""
        bets = [
            {"process": 0, "leader": 0, "rivals": [1, 2], "shifts": [[[n + k] for k in range(5)] for n in (0, 10)]},
            {"process": 1, "leader": 1, "rivals": [0, 2], "shifts": [[[n + k] for k in range(5)] for n in (20, 30)]},
        ]
        passed = [
            {"leader": 0, "item": item, "stages": 3, "nats": 4.0, "proof": {"rule": rule, "bets": [0.2] * 5}}
            for item, rule in ((1, "directional"), (2, "plug-in"))
        ]
        old = {
            "restart": False,
            "passed": passed,
            "tried": [],
            "examined": 3,
            "rehearsed": 0,
            "experts": [[0.0]] * 4,
            "predictions": [[0.0]] * 4,
            "bets": [bet | {"logits": [0.5], "limits": [0.4]} for bet in bets],
        }
        read = AnytimeMemo.from_json(old)
        assert [(proved.item, proved.proof["rule"]) for proved in read.passed] == [(2, "plug-in")]
        assert read.factors is not None
        assert read.factors.bets is not None
        shifts = dict(zip(read.factors.bets.rivals.tolist(), read.factors.bets.D[:, :, 0].tolist(), strict=True))
        assert shifts == {1: [1, 2, 3, 4], 2: [11, 12, 13, 14], 0: [21, 22, 23, 24]}


class TestLeader:
    def test_what_was_passed_stays_passed_when_another_item_leads_and_never_leads(self) -> None:
        world, policy, changed = soare(4, angle=0.5), Anytime(delta=0.2), 0
        for seed in (3, 10):
            state, rng, judge = policy.start(world.problem), np.random.default_rng(seed), world.judge([seed, 4])
            while True:
                state, plan = planned(policy, state, rng)
                passed = state.passed_before(state.leader)
                assert state.leader not in passed
                changed += any(proved.leader != state.leader for proved in passed.values())
                if not isinstance(plan, Plan):
                    break
                wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
                state = policy.update(state, plan.stage, plan.tally(world.problem, wins))
            assert isinstance(plan, Verdict)
            assert plan.status is Status.CERTAIN
        assert changed > 0


class TestUse:
    def test_the_example_of_the_readme(self) -> None:
        liking = {"red": 4.0, "green": 0.0, "blue": 2.0}
        problem = Problem.from_pairs({"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.5, 0.6]})
        result = find_best(problem, lambda q: int(liking[q.first or ""] > liking[q.second or ""]), delta=0.05)
        assert (result.status, result.best, result.guarantee) == (Status.CERTAIN, "red", Guarantee.PROVED)

    def test_many_judges_wait_only_where_the_questions_that_are_out_may_decide(self) -> None:
        world = small(3)
        session, judge = Session(world.problem, Anytime(delta=0.1), seed=1), world.judge(8)
        questions, waited = session.ask(50), 0
        assert len(questions) == 50  # nothing answered yet
        while questions:
            assert session.ask(1) == [] or len(questions) == 50
            waited += len(questions) < 50
            for question in reversed(session.outstanding):
                session.tell(question.id, judge(question))
            questions = session.ask(50)
        assert waited > 0
        assert session.verdict().status is Status.CERTAIN
        assert session.verdict().best == world.best

    def test_nobody_waits_for_answers_that_never_come(self) -> None:
        world = person(colours=12, gap=1.0, seed=1)
        session, judge = Session(world.problem, Anytime(delta=0.1), seed=1), world.judge(8)
        while len(questions := session.ask(50)) == 50:
            for question in questions:
                session.tell(question.id, judge(question))
        assert session.final is None
        for question in questions:
            session.skip(question.id)
        assert len(session.ask(1)) == 1

    @pytest.mark.parametrize("missing", ["ignorable", "charged"])
    def test_what_was_closed_is_not_waited_for(self, missing: Literal["ignorable", "charged"]) -> None:
        world, rng = small(3), np.random.default_rng(0)
        policy = Anytime(missing=missing)
        state, plan = planned(policy, policy.start(world.problem), rng)
        assert isinstance(plan, Plan)
        assert state.waiting == plan.total
        assert policy.close(state, plan.stage).evaluated.waiting == 0

    def test_epsilon_decides_a_tie(self) -> None:
        items = np.array([[1.0, 0.3], [1.0, -0.3], [-1.0, 0.1]])
        tied = World("tied", Problem.from_pairs(items), np.array([1.5, 0.0]))
        verdict = run(tied.problem, Anytime(epsilon=0.5), tied.judge(1))
        assert verdict.status is Status.WITHIN_EPSILON
        assert tied.correct(verdict)
        assert len(verdict.surviving) == 3  # a passed rival may still be the best

    def test_the_budget_ends_with_the_surviving_items_and_how_likely_the_leader_is(self) -> None:
        world = small(1)
        verdict = run(world.problem, Anytime(budget=20), world.judge(1))
        assert (verdict.status, verdict.questions) == (Status.BUDGET_SPENT, 20)
        assert "with probability about" in verdict.reason
        assert world.best in verdict.surviving

    def test_missing_answers_are_charged_where_wanted(self) -> None:
        world = small(2)
        states = []
        for missing in ("ignorable", "charged"):
            policy = Anytime(missing=missing)
            state = policy.start(world.problem)
            for _ in range(12):
                state, plan = planned(policy, state, np.random.default_rng(1))
                assert isinstance(plan, Plan)
                none = 0 * plan.pulls
                state = policy.close(
                    policy.update(state, plan.stage, plan.tally(world.problem, none, none)), plan.stage
                )
            states.append(state.evaluated)
        ignored, charged = states
        assert np.all(ignored.plug_in.scores == 0)
        assert np.all(charged.plug_in.scores <= 12 * math.log(0.5) + 1e-12)

    def test_nothing_keeps_a_finished_problem_alive(self) -> None:
        world = small(2)
        run(world.problem, Anytime(budget=40), world.judge(1))
        problem = weakref.ref(world.problem)
        assert problem() is not None
        del world
        gc.collect()
        assert problem() is None

    def test_refuses_what_cannot_be_meant(self) -> None:
        with pytest.raises(InvalidInput, match="missing must be one of"):
            Anytime(missing="perhaps")
        with pytest.raises(InvalidInput, match="no proved verdict"):
            Session(small(1).problem, Anytime()).certificate()


def test_where_every_rival_is_passed_nothing_is_bet(monkeypatch):
    """Bets against nobody once had no shape when a log with them was read."""
    world = small(3)
    policy, rng = Anytime(), np.random.default_rng(4)
    everybody = dict.fromkeys(range(len(world.problem.items)))
    monkeypatch.setattr(State, "passed_before", lambda self, leader: everybody)
    state, counts = policy.start(world.problem), np.ones(len(world.problem.measurements), dtype=np.int64)
    for _ in range(10):
        plan = policy.stage_of(state, counts, prove=False)
        memo = AnytimeMemo.from_json(json.loads(json.dumps(plan.memo)))
        assert memo.factors is not None
        assert memo.factors.bets is None
        wins = rng.binomial(plan.pulls, 0.5)
        state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(world.problem, wins)).evaluated
    assert state.evaluated_stages == 10
    assert state.asked > TUNING.bets_from * world.problem.span.rank
