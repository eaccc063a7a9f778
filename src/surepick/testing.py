"""For your own tests: gates for systems that are judged, and the contract of policies.

`assert_at_least_as_good` and `assert_best` fail a test unless the claim is proved (docs/systems.md, "A gate in CI").

`PolicyContract` is a test class: subclass it for a policy of your own and run pytest.

    class TestMine(PolicyContract):
        def policy(self, **limits):
            return Mine(**limits)

`policy` must accept delta, epsilon and budget. Nothing here imports pytest; the methods are plain assertions.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import qr

from surepick._arrays import Integers
from surepick.errors import InvalidInput
from surepick.glm import probability_of_yes
from surepick.guarantee import Guarantee
from surepick.identify import Plan, Policy, Problem, Status, Verdict, Wait, run
from surepick.judges import ExpectedJudge, World
from surepick.session import Comparison, Question, Session, compare_two, find_best


def assert_at_least_as_good(
    problem: Problem, judge: Any, *, new: str, old: str, epsilon: float = 0.2, **options: Any
) -> Comparison:
    """Fail unless the new system is proved at least as good as the old one within epsilon; see `compare_two`.

    A new system that is worse by more than epsilon passes with probability at most delta. One that is as good fails if
    the budget does not suffice to prove it.
    """
    found = compare_two(problem, judge, new=new, old=old, epsilon=epsilon, **options)
    _expect(found.result == "at least as good", str(found))
    return found


def assert_best(problem: Problem, judge: Any, name: str, **options: Any) -> Verdict:
    """Fail unless this system is proved to be the best, or within epsilon of it; options are those of `find_best`."""
    verdict = find_best(problem, judge, **options)
    _expect(verdict.stands and name in (verdict.best, *verdict.also), f"{name} is not proved to be the best: {verdict}")
    return verdict


class PolicyContract(ABC):
    """What every policy promises, whatever it asks."""

    delta = 0.3
    budget = 10**6
    """Of runs that answer whole stages at once."""
    session_questions = 400
    """Length of the runs that go question by question."""
    plans_ahead = False
    """Whether it plans stages while earlier ones are open: then what it asks depends on how many are out at once."""
    on_average = False
    """Whether its guarantee is on average over a population, in which exact ties have probability zero."""
    turned = 0.05
    """By how much the number of questions may change, relatively, when the same problem is written differently."""

    @abstractmethod
    def policy(self, **limits: Any) -> Policy[Any]:
        """The policy under test with these limits (delta, epsilon, budget)."""

    def world(self) -> World:
        """A small world with a clear winner that the policy's configuration fits."""
        items = np.array([[1.0, 0.2], [0.1, 0.9], [-0.8, -0.3], [0.0, 0.0]])
        return World("small", Problem.from_pairs(items, names=["a", "b", "c", "d"]), np.array([1.2, -0.5]))

    def _start(self) -> tuple[Policy[Any], Problem, Any]:
        policy, problem = self.policy(delta=self.delta), self.world().problem
        return policy, problem, policy.start(problem)

    def _answers(self, seed: int = 3) -> Callable[[Question], int]:
        """A judge whose answer depends on the question's number alone, not on when it is given."""
        theta = self.world().theta

        def answer(question: Question) -> int:
            draw = np.random.default_rng([seed, question.id]).random()
            return int(draw < probability_of_yes(question.vector @ theta))

        return answer

    def _session(self, **options: Any) -> Session:
        return Session(self.world().problem, self.policy(delta=self.delta), **options)

    def test_planning_is_pure(self) -> None:
        """Two plans from one state with equal generators are equal, and leave the state as it was."""
        policy, problem, state = self._start()
        for _ in range(3):
            before = policy.verdict(state).to_json()
            first = policy.plan(state, np.random.default_rng(5))
            second = policy.plan(state, np.random.default_rng(5))
            assert _same(first, second)
            assert policy.verdict(state).to_json() == before
            if not isinstance(first, Plan):
                break
            state = policy.update(policy.apply(state, first), first.stage, first.tally(problem, _middling(first)))

    def test_a_plan_may_go_through_json(self) -> None:
        """Plans that went through JSON lead to the same states as the plans themselves."""
        policy, problem, state = self._start()
        other = state
        for _ in range(3):
            plan = policy.plan(state, np.random.default_rng(5))
            if not isinstance(plan, Plan):
                break
            again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
            wins = _middling(plan)
            state = policy.update(policy.apply(state, plan), plan.stage, plan.tally(problem, wins))
            other = policy.update(policy.apply(other, again), plan.stage, again.tally(problem, wins))
            assert policy.verdict(state).to_json() == policy.verdict(other).to_json()
            assert _same(policy.plan(state, np.random.default_rng(6)), policy.plan(other, np.random.default_rng(6)))

    def test_partial_answers_replace_each_other(self) -> None:
        """Half the answers, then all, give what all at once give; a stage is not decided by half its answers."""
        policy, problem, state = self._start()
        plan = policy.plan(state, np.random.default_rng(5))
        assert isinstance(plan, Plan)
        planned = policy.apply(state, plan)
        wins, half = _middling(plan), plan.pulls // 2
        part = policy.update(planned, plan.stage, plan.tally(problem, np.minimum(wins, half), half))
        whole = policy.update(part, plan.stage, plan.tally(problem, wins))
        direct = policy.update(planned, plan.stage, plan.tally(problem, wins))
        assert policy.verdict(whole).to_json() == policy.verdict(direct).to_json()

    def test_refuses_answers_it_did_not_ask_for(self) -> None:
        """More answers than questions belong to no stage."""
        policy, problem, state = self._start()
        plan = policy.plan(state, np.random.default_rng(5))
        assert isinstance(plan, Plan)
        planned = policy.apply(state, plan)
        _refused(lambda: policy.update(planned, plan.stage, plan.tally(problem, plan.pulls, plan.pulls + 1)))
        _refused(lambda: policy.update(planned, plan.stage + 7, plan.tally(problem, plan.pulls)))

    def test_replay_equals_live(self) -> None:
        """The log alone rebuilds the session: same questions next, same verdict."""
        live, answer = self._session(seed=11), self._answers()
        for question in live.ask(60):
            live.tell(question.id, answer(question))
        replayed = Session.replay(live.to_lines(), policy=live.policy)
        assert [q.to_json() for q in live.ask(5)] == [q.to_json() for q in replayed.ask(5)]
        assert live.verdict().to_json() == replayed.verdict().to_json()
        assert live.to_lines() == replayed.to_lines()

    def test_answers_in_any_order_and_twice(self) -> None:
        """Batches answered backwards and repeated end where one by one does."""
        answer = self._answers()
        straight, shuffled = self._session(seed=2), self._session(seed=2)
        _answer(straight, answer, self.session_questions, 40 if self.plans_ahead else 1, backwards=False)
        _answer(shuffled, answer, self.session_questions, 40, backwards=True)
        assert straight.verdict().to_json() == shuffled.verdict().to_json()

    def test_undo_leaves_no_trace_in_the_verdict(self) -> None:
        """A misclick taken back and answered again equals no misclick."""
        answer = self._answers()
        clean, clumsy = self._session(seed=4), self._session(seed=4)
        for number, (one, two) in enumerate(zip(clean.ask(30), clumsy.ask(30), strict=True)):
            clean.tell(one.id, answer(one))
            if number % 7 == 0:
                clumsy.tell(two.id, 1 - answer(two))
                clumsy.undo(two.id)
            clumsy.tell(two.id, answer(two))
        assert clean.verdict().to_json() == clumsy.verdict().to_json()
        _refused(lambda: clumsy.undo(10_000_000))

    def test_resumes_after_a_kill_in_the_middle_of_a_stage(self) -> None:
        """Cut anywhere, replayed, and gone on with, a session ends where it would have ended."""
        answer = self._answers()
        whole = self._session(seed=6)
        _answer(whole, answer, self.session_questions, 1 if self.plans_ahead else 10, backwards=False)
        expected = whole.verdict().to_json()
        lines = whole.to_lines()
        for cut in (1, 5, len(lines) // 2, len(lines) - 2):
            resumed = Session.replay(lines[:cut], policy=self.policy(delta=self.delta))
            for question in resumed.outstanding:
                resumed.tell(question.id, answer(question))
            _answer(resumed, answer, self.session_questions, 1, backwards=False)
            assert resumed.verdict().to_json() == expected

    def test_turning_the_features_changes_nothing(self) -> None:
        """Rotated features lead to the same verdict after nearly as many questions."""
        world = self.world()
        turn = qr(np.random.default_rng(8).normal(size=(2, 2)))[0]
        turned = Problem.from_pairs(world.problem.items @ turn, names=world.problem.names)
        self._compare(world, World("turned", turned, turn.T @ world.theta))

    def test_the_order_of_items_changes_nothing(self) -> None:
        """Permuted items lead to the same verdict after nearly as many questions."""
        world = self.world()
        order = [2, 0, 3, 1]
        names = [world.problem.names[item] for item in order]
        self._compare(
            world, World("permuted", Problem.from_pairs(world.problem.items[order], names=names), world.theta)
        )

    def _compare(self, one: World, two: World) -> None:
        policy = self.policy(delta=self.delta, budget=self.budget)
        first = run(one.problem, policy, ExpectedJudge(one.theta))
        second = run(two.problem, policy, ExpectedJudge(two.theta))
        assert (first.status, first.best) == (second.status, second.best)
        assert abs(first.questions - second.questions) <= self.turned * first.questions + 20

    def test_the_budget_is_kept_and_said(self) -> None:
        """No question beyond the budget, and a status that says so."""
        world = self.world()
        for budget in (500, 5000):
            try:
                verdict = run(world.problem, self.policy(delta=1e-6, budget=budget), world.judge(1))
            except InvalidInput as refusal:  # a policy may refuse a budget that its first stage exceeds
                _expect(f"{budget:,}" in str(refusal), f"the budget is not named in: {refusal}")
                continue
            assert verdict.questions <= budget
            assert verdict.status.final
            if verdict.status is Status.BUDGET_SPENT:
                assert verdict.reason
                assert verdict.best in world.problem.names

    def test_ties_end(self) -> None:
        """Two equally good items use up the budget, or epsilon accepts one of them; the search never loops."""
        items = np.array([[1.0, 0.5], [1.0, -0.5], [-1.0, 0.0]])
        tied = World("tied", Problem.from_pairs(items, names=["a", "b", "c"]), np.array([1.0, 0.0]))
        judge = tied.judge(3) if self.plans_ahead else ExpectedJudge(tied.theta)  # no stage of one has a half answer
        # A proof allows that an item which ties for the best is taken for worse with probability delta.
        policy = self.policy(delta=self.delta / 1000, budget=self.budget)
        verdict = run(tied.problem, policy, judge)
        if verdict.status is Status.BUDGET_SPENT:
            assert set(verdict.surviving) >= {"a", "b"}
        else:  # only a rule without a proof for every truth may take chance for a difference
            assert self.on_average or policy.guarantee is Guarantee.HEURISTIC
            assert verdict.best in ("a", "b")
        close = run(
            tied.problem, self.policy(delta=self.delta, budget=self.budget, epsilon=0.5), ExpectedJudge(tied.theta)
        )
        assert close.status is Status.BUDGET_SPENT or close.best in ("a", "b")

    def test_decided_before_the_first_question(self) -> None:
        """A single item, or items that no question tells apart."""
        alone = Problem.from_pairs([[1.0, 2.0], [1.0, 2.0]], names=["x", "y"])
        policy = self.policy(delta=self.delta)
        verdict = policy.plan(policy.start(alone), np.random.default_rng(0))
        assert isinstance(verdict, Verdict)
        assert (verdict.status, verdict.best, verdict.also, verdict.questions) == (Status.CERTAIN, "x", ("y",), 0)
        blind = Problem([[1.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]])
        verdict = policy.plan(policy.start(blind), np.random.default_rng(0))
        assert isinstance(verdict, Verdict)
        assert verdict.status is Status.NOT_IDENTIFIABLE
        assert "told apart" in verdict.reason

    def test_finds_the_best_of_a_clear_case(self) -> None:
        """With expected answers and all the questions it wants, it names the best item or says that it could not."""
        world = self.world()
        verdict = run(world.problem, self.policy(delta=self.delta, budget=self.budget), ExpectedJudge(world.theta))
        assert verdict.best == world.best
        assert verdict.delta == self.delta
        assert verdict.assumptions
        assert sum(verdict.questions_by_stage) == verdict.questions
        if verdict.status is Status.CERTAIN:
            assert verdict.surviving == (world.best,)
            assert all(rival.gap_low >= 0 for rival in verdict.rivals)
        again = Verdict.from_json(json.loads(json.dumps(verdict.to_json())))
        assert again == verdict


def _middling(plan: Plan) -> Integers:
    """Some answers to a plan: about two in three are ones."""
    return (2 * plan.pulls + 1) // 3


def _same(one: Plan | Wait | Verdict, two: Plan | Wait | Verdict) -> bool:
    if isinstance(one, Wait) or isinstance(two, Wait):
        return one == two
    return one.to_json() == two.to_json()


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def _refused(call: Callable[[], Any]) -> None:
    try:
        call()
    except InvalidInput as error:
        _expect(str(error).endswith("."), f"not a sentence: {error}")
        return
    raise AssertionError("This call should have been refused with InvalidInput.")


def _answer(session: Session, answer: Callable[[Question], int], most: int, batch: int, *, backwards: bool) -> None:
    """Ask in batches until `most` are answered; with `backwards` in reverse order, and every third twice."""
    while session.answered < most and (questions := session.ask(min(batch, most - session.answered))):
        for question in reversed(questions) if backwards else questions:
            session.tell(question.id, answer(question))
            if backwards and question.id % 3 == 0:
                session.tell(question.id, answer(question))


__all__ = ["PolicyContract", "assert_at_least_as_good", "assert_best"]
