"""Anytime: what it promises, on worlds where it is hard to keep."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from surepick import Anytime, Guarantee, Problem, Session, Status, find_best
from surepick.errors import InvalidInput
from surepick.identify import Plan, anytime
from surepick.identify.anytime_state import State, after_stage
from surepick.identify.directional import ASKED, BETS
from surepick.identify.tilt import SLOPE_REMAINDER, TERMS, VALUE_REMAINDER, powers, rise
from surepick.identify.weigh import weigh
from surepick.logistic import probability_of_yes, softplus, variance
from surepick.session import run
from surepick.worlds import World

FALSE_ALARM = 1e-3


def small(seed: int, *, items: int = 4, dimension: int = 2, norm: float = 3.0) -> World:
    rng = np.random.default_rng([seed, 9])
    theta = rng.normal(size=dimension)
    return World(
        "small", Problem.from_pairs(rng.normal(size=(items, dimension))), norm * theta / float(np.linalg.norm(theta))
    )


def played(world: World, stages: int, seed: int = 0) -> State:
    policy, rng = Anytime(), np.random.default_rng(seed)
    state, judge = policy.start(world.problem), world.judge([seed, 5])
    for _ in range(stages):
        state, plan = policy.plan(state, rng)
        if not isinstance(plan, Plan):
            break
        wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
        state = policy.absorb(state, plan.stage, plan.tally(world.problem, wins))
    return state.settled


class TestGuarantee:
    """False stops where the two best items are exactly tied: any stop is one."""

    DELTA, RUNS = 0.2, 80

    def false_stops(self, policy: Anytime, monkeypatch: pytest.MonkeyPatch) -> int:
        monkeypatch.setattr(anytime, "GROWTH", 0.4)  # any batches are valid; larger ones are faster
        items = np.array([[1.0, 0.3], [1.0, -0.3], [-1.0, 0.1]])
        tied = World("tied", Problem.from_pairs(items), np.array([1.5, 0.0]))
        return sum(
            run(tied.problem, policy, tied.judge([seed, 1]), seed=seed).status.decided for seed in range(self.RUNS)
        )

    def test_ties_are_rarely_broken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wrong = self.false_stops(Anytime(delta=self.DELTA, budget=3000), monkeypatch)
        assert wrong <= binom.isf(FALSE_ALARM, self.RUNS, self.DELTA)

    def test_a_likelihood_ratio_without_the_price_of_looking_is_caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @dataclass(frozen=True, kw_only=True)
        class Broken(Anytime):
            def _decides(self, state: State) -> bool:
                settled = state.settled
                if not settled.plug_in.restarts:
                    return False
                return bool(np.min(settled.nats(settled.leader, 0.0)) >= math.log(1 / self.delta))

        wrong = self.false_stops(Broken(delta=self.DELTA, budget=3000), monkeypatch)
        assert wrong > binom.isf(FALSE_ALARM, self.RUNS, self.DELTA)


class TestMinimisation:
    @pytest.mark.parametrize("seed", range(8))
    def test_no_theta_lies_below_a_certified_bound(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """A global search on the true objective, with the localiser as it is defined, finds nothing smaller."""
        monkeypatch.setattr(anytime, "GROWTH", 0.5)
        proved = 0
        for stages in (9, 15):
            bounded, violations = excess_of_bounds(seed, stages)
            assert violations == []
            proved += bounded
        assert proved > 0

    def test_a_bound_raised_by_a_nat_would_be_found_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(anytime, "GROWTH", 0.5)
        found = [excess_of_bounds(seed, 15, raised=1.0)[1] for seed in range(6)]
        assert any(found)


def excess_of_bounds(seed: int, stages: int, *, raised: float = 0.0) -> tuple[int, list[str]]:
    """How many bounds were proved, and those that a search found to be too high."""
    world = small(seed, dimension=2 + seed % 2, norm=1.0 + seed % 5)
    state = played(world, stages, seed)
    rng = np.random.default_rng([seed, stages])
    leader, problem = state.leader, world.problem
    others = np.array([item for item in range(len(problem.items)) if item != leader])
    threshold = math.log(1 / 0.015)
    weighed = weigh(state, leader, others, 0.0, threshold, math.inf, thorough=True)
    process = state.process_of(leader)
    bounded, violations = 0, []
    for item, plug_in, tilted in zip(others, weighed.plug_in, weighed.directional, strict=True):
        y = problem.points[leader] - problem.points[item]

        def search(objective: str, y: np.ndarray = y, item: int = item) -> float:
            centre, scale, best = state.theta, 4.0, math.inf
            for _ in range(9):
                theta = centre + scale * rng.standard_t(3, size=(600, len(y)))
                ahead = np.maximum(theta @ y, 0.0)
                theta -= np.outer(ahead / float(y @ y), y)  # onto the half-space, many onto its boundary
                log_evidence = state.evidence.log_evidence(theta)
                if objective == "plug-in":
                    values = log_evidence
                else:
                    assert process is not None
                    same = np.full(len(theta), item)
                    values = logsumexp(process.values(same, problem.rows, theta), axis=1) - math.log(BETS)
                    values = np.where(log_evidence < threshold, values, math.inf)
                if np.min(values) < best:
                    best, centre = float(np.min(values)), theta[int(np.argmin(values))]
                scale *= 0.5
            return best

        for rule, bound in (("plug-in", plug_in), ("directional", tilted)):
            if np.isfinite(bound):
                bounded += 1
                if search(rule) < bound + raised - 1e-6:
                    violations.append(f"{rule} {item} {bound}")
    return bounded, violations


class TestFactors:
    """Exact: over all answers to a planned stage, the mean of every factor under θ is one, tilted or predicted."""

    @pytest.mark.parametrize("ahead", [0.0, 1.0])
    def test_no_factor_looks_ahead(self, ahead: float) -> None:
        world, theta = small(6, norm=6.0), np.array([1.0, -2.0])
        state = played(world, 30)
        _, plan = Anytime().plan(state, np.random.default_rng(0))
        assert isinstance(plan, Plan)
        rows = world.problem.rows[plan.measurements]
        chances = probability_of_yes(rows @ theta)
        mean, predicted = np.zeros((3, BETS)), 0.0
        others, mean_of_experts = np.array([z for z in range(4) if z != plan.memo["bets"][0]["leader"]]), 0.0
        pulls = np.ones(len(rows))
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
            number = memo["bets"][0]["process"]
            before = state.processes
            later = after_stage(before, memo, plan.measurements, pulls, wins, 0 * pulls, world.problem.rows)
            points = np.tile(theta, (3, 1))
            change = later[number].values(others, world.problem.rows, points) - before[number].values(
                others, world.problem.rows, points
            )
            mean += weight * np.exp(change)
            predicted += float(np.sum(later[number].sums[ASKED] - 0.0))
        assert mean == pytest.approx(np.ones((3, BETS)), abs=1e-6)
        assert predicted > 0  # some answers were predicted instead of tilted
        assert (mean_of_experts == pytest.approx(1.0, abs=1e-9)) == (ahead == 0.0)


class TestTilts:
    def test_powers_are_exact_up_to_the_stated_remainder(self) -> None:
        rng = np.random.default_rng(0)
        c, n = rng.uniform(-0.3, 0.3, size=(40, 3, 50)), rng.integers(1, 9, size=(40, 1, 50))
        v = rng.normal(size=(3, 50)) * 5
        sums = (powers(c) * n).sum(axis=1)
        yes = probability_of_yes(v)
        value = (n * (softplus(v + c) - softplus(v))).sum(axis=0)
        slope = (n * (probability_of_yes(v + c) - yes)).sum(axis=0)
        assert np.all(np.abs(rise(sums, yes, 0) - value) <= VALUE_REMAINDER * sums[TERMS] + 1e-10)
        assert np.all(np.abs(rise(sums, yes, 1) - slope) <= SLOPE_REMAINDER * sums[TERMS] * variance(v) + 1e-10)
        assert np.max(np.abs(rise(sums, yes, 0) - value)) > 1e-12  # there is a remainder to bound


class TestUse:
    def test_the_example_of_the_readme(self) -> None:
        liking = {"red": 4.0, "green": 0.0, "blue": 2.0}
        problem = Problem.from_pairs({"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.5, 0.6]})
        result = find_best(problem, lambda q: int(liking[q.first or ""] > liking[q.second or ""]), delta=0.05)
        assert (result.status, result.best, result.guarantee) == (Status.CERTAIN, "red", Guarantee.PROVED)

    def test_many_judges_at_once_never_wait(self) -> None:
        world = small(3)
        session, judge = Session(world.problem, Anytime(delta=0.1), seed=1), world.judge(8)
        questions = session.ask(50)
        assert len(questions) == 50  # nothing answered yet
        while questions:
            for question in reversed(questions):
                session.tell(question.id, judge(question))
            questions = session.ask(50)
        assert session.verdict().status is Status.CERTAIN
        assert session.verdict().best == world.best

    def test_epsilon_decides_a_tie(self) -> None:
        items = np.array([[1.0, 0.3], [1.0, -0.3], [-1.0, 0.1]])
        tied = World("tied", Problem.from_pairs(items), np.array([1.5, 0.0]))
        verdict = run(tied.problem, Anytime(epsilon=0.5), tied.judge(1))
        assert verdict.status is Status.WITHIN_EPSILON
        assert tied.correct(verdict)
        assert len(verdict.surviving) == 3  # a passed rival may still be the best

    def test_the_budget_ends_with_the_surviving_items_and_a_p_value(self) -> None:
        world = small(1)
        verdict = run(world.problem, Anytime(budget=20), world.judge(1))
        assert (verdict.status, verdict.questions) == (Status.BUDGET_SPENT, 20)
        assert "p-value" in verdict.reason
        assert world.best in verdict.surviving

    def test_the_posterior_rule_is_called_a_heuristic(self) -> None:
        world = small(3)
        verdict = run(world.problem, Anytime(stop="posterior"), world.judge(1))
        assert verdict.guarantee is Guarantee.HEURISTIC
        proved = run(world.problem, Anytime(), world.judge(1))
        assert verdict.questions < proved.questions

    def test_missing_answers_are_charged_where_wanted(self) -> None:
        world = small(2)
        states = []
        for missing in ("ignorable", "charged"):
            policy = Anytime(missing=missing)
            state = policy.start(world.problem)
            for _ in range(12):
                state, plan = policy.plan(state, np.random.default_rng(1))
                assert isinstance(plan, Plan)
                none = 0 * plan.pulls
                state = policy.close(
                    policy.absorb(state, plan.stage, plan.tally(world.problem, none, none)), plan.stage
                )
            states.append(state.settled)
        ignored, charged = states
        assert np.all(ignored.plug_in.scores == 0)
        assert np.all(charged.plug_in.scores <= 12 * math.log(0.5) + 1e-12)

    def test_refuses_what_cannot_be_meant(self) -> None:
        with pytest.raises(InvalidInput, match="missing must be one of"):
            Anytime(missing="perhaps")  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="no proved verdict"):
            Session(small(1).problem).certificate()
