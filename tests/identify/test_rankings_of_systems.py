"""Rankings of systems on inputs: exact means of the evidence by places, the certificate, and whole searches."""

import json
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from certificates import signed
from surepick import CertificateRefused, InvalidInput, Problem, Session, Winner, find_best, verify_certificate
from surepick.certificate.winner import Process
from surepick.evidence.betting import LOG_SHARES, WinnerEvidence, above_in, place_bets
from surepick.glm.item_scores import ItemScores
from surepick.identify import Plan, Status
from surepick.identify.set_stages import losing_to
from surepick.identify.sets import picks_of

NAMES = ["a", "b", "c", "d"]
ORDERS = list(permutations(range(3), 2))


def three_of_four(**options: Any) -> Problem:
    return Problem.from_systems(NAMES, ["one", "two"], show=3, **options)


def mean_of_process(policy: Winner, chances: Any, questions: int, *, item: int = 0, lost: Any = None) -> float:
    """E of the mixture process of an item over all answers, where `chances(shown)` has the probability of each order.

    The mean over the inputs is taken already: the input is drawn independently of everything before.
    """
    problem, leaves = three_of_four(), []

    def walk(state: Any, asked: int, weight: float) -> None:
        plan = policy.plan(state, np.random.default_rng(asked)) if asked < questions else None
        if not isinstance(plan, Plan):
            named = state.evaluated.named if policy.epsilon else ()
            evidence = named[0] if named else state.evaluated.evidence
            leaves.append((weight, logsumexp(evidence.log_wealth[item] + LOG_SHARES)))
            return
        state = policy.apply(state, plan)
        shown, nothing = problem.shown(int(plan.measurements[0])), plan.tally(problem, [0], [0])
        for order, chance in chances(shown).items():
            missing = 0.0 if lost is None else lost(shown, order)
            told = policy.update(state, plan.stage, nothing, (), [[order]])
            walk(told, asked + 1, weight * chance * (1 - missing))
            if missing:
                walk(policy.close(state, plan.stage), asked + 1, weight * chance * missing)

    walk(policy.start(problem), 0, 1.0)
    weights, logs = np.array(leaves).T
    assert weights.sum() == pytest.approx(1.0)
    return float(weights @ np.exp(logs))


def plackett_luce(weights: dict[int, float], shown: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """The probability of every order."""
    found = {}
    for order in ORDERS:
        chance = 1.0
        for left, picked in picks_of(order, 3):
            chance *= weights[shown[picked]] / sum(weights[shown[place]] for place in left)
        found[order] = chance
    return found


def on_inputs(*inputs: tuple[float, list[float]]) -> Any:
    """Orders drawn on an input that is drawn with its probability, where each system has a weight."""

    def chances(shown: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        by_input = [(share, plackett_luce(dict(enumerate(weights)), shown)) for share, weights in inputs]
        return {order: sum(share * chance[order] for share, chance in by_input) for order in ORDERS}

    return chances


def above(chances: dict[tuple[int, ...], float], one: int, other: int) -> float:
    """The probability that one place is above another."""
    return sum(chance * above_in(order, 3)[one, other] for order, chance in chances.items())


BALANCED = on_inputs((0.5, [1.0, 1.0, 1.0, 1.0]), (0.5, [1.0, 1.0, 1.0, 1.0]))
CAMPS = on_inputs((0.5, [2.0, 4.0, 0.5, 0.1]), (0.5, [2.0, 1.0, 0.5, 0.1]))
"""The first two systems are equal on average, each better on one input; the others are worse on both."""

MIXED = on_inputs((0.6, [30.0, 5.0, 1.0, 0.1]), (0.4, [1.0, 5.0, 30.0, 0.1]))
"""The first system wins every pair on average, but where the third is picked first it loses to the second."""


def test_a_winner_on_average_may_lose_the_later_picks_of_a_ranking() -> None:
    """Why rankings on inputs do not count pick by pick: pairwise (W) holds, and the form for picks does not."""
    chances = MIXED((0, 1, 2))
    assert min(above(chances, 0, 1), above(chances, 0, 2)) > 0.5
    third_first = {order: chance for order, chance in chances.items() if order[0] == 2}
    assert third_first[2, 1] > 1.5 * third_first[2, 0]


@pytest.mark.parametrize("world", [BALANCED, CAMPS, MIXED])
def test_the_mean_of_the_evidence_against_a_winner_on_average_is_at_most_one(world: Any) -> None:
    for shown in combinations(range(4), 3):
        if 0 in shown:
            assert min(above(world(shown), 0, place) for place in (1, 2)) > 0.5 - 1e-12
    mean = mean_of_process(Winner(), world, 3)
    assert mean <= 1 + 1e-9
    if world is BALANCED:
        assert mean == pytest.approx(1.0, abs=1e-9)


def test_picks_one_after_the_other_would_accuse_it() -> None:
    """The negative control: the same answers counted as picks have a mean above 1 against the winner on average."""
    after_third = WinnerEvidence.of(4)
    mean = 0.0
    for order, chance in MIXED((0, 1, 2)).items():
        if order[0] == 2:
            counted = after_third.after_order((0, 1), ([0.25, 0.75], [0.25, 0.75]), (order[1],))
            mean += chance * np.exp(logsumexp(counted.log_wealth[0] + LOG_SHARES))
        else:
            mean += chance  # no bet on other picks
    assert mean > 1.01
    against = [(1, 1.0), (0, 0.0), (0, 0.0)]  # the bet that it would lose to the second, whatever is picked before
    placed = WinnerEvidence.of(4)
    by_places = sum(
        chance * np.exp(placed.after_rankings((0, 1, 2), against, [(above_in(order, 3), 1)]).log_wealth[0, 0])
        for order, chance in MIXED((0, 1, 2)).items()
    )
    assert by_places <= 1


def test_a_system_that_loses_on_average_is_found_out() -> None:
    loses = on_inputs((0.5, [3.0, 1.0, 2.0, 1.0]), (0.5, [0.05, 1.0, 2.0, 1.0]))
    assert mean_of_process(Winner(), loses, 3) > 1.01


def test_a_bet_against_the_sign_would_break_the_proof() -> None:
    """The negative control of the form itself: bets for an item, in place of against it, have a mean above 1."""
    world = on_inputs((1.0, [3.0, 1.0, 1.0, 1.0]))
    mean = {
        sign: sum(
            chance * (1 + sign * 0.6 * (0.5 - above_in(order, 3)[0, 1])) for order, chance in world((0, 1, 2)).items()
        )
        for sign in (1, -1)
    }
    assert mean[1] < 1 < mean[-1]


@dataclass(frozen=True)
class InHindsight(Winner):
    """The negative control of the plan: bets as if the answer were known, here that the first system is below."""

    def update(self, state: Any, stage: int, tally: Any, partial: Any = (), orders: Any = ()) -> Any:
        record = state.stages[stage]
        shown = state.problem.shown(int(record.plan.measurements[0]))
        place = shown.index(0) if 0 in shown else -1
        if orders and place >= 0:
            below = [other for other in range(3) if above_in(orders[0][0], 3)[place, other] == 0]
            bets = [list(bet) for bet in record.plan.memo["stakes"][0][0]]
            bets[place] = [below[0], 0.5] if below else [bets[place][0], 0.0]
            plan = replace(record.plan, memo={"stakes": [[bets]]})
            state = state.with_stage(stage, replace(record, plan=plan))
        return super().update(state, stage, tally, partial, orders)


def test_bets_that_know_the_answer_are_caught() -> None:
    assert mean_of_process(InHindsight(), BALANCED, 3) > 1.2


def test_bets_are_for_a_narrow_loss_or_for_the_one_that_is_nearly_certain() -> None:
    nothing, half = np.zeros((2, 2)), np.full((2, 2), 0.5)
    lost = np.array([[0.0, 1.0], [-1.0, 0.0]])
    narrow = place_bets(lost, nothing, nothing, half)
    assert narrow[0] == (1, pytest.approx(4 * 0.055))  # Kelly's bet for .555
    assert narrow[1] == (0, 0.0)
    later = place_bets(lost, nothing, np.full((2, 2), 4000.0), half)
    assert later[0] == (1, pytest.approx(4 * 0.0275))
    certain = np.array([[0.0, 0.7], [0.2, 0.0]])
    assert place_bets(lost, certain, nothing, half)[0] == (1, pytest.approx(4 * 0.2))
    # An item that is as good as the frozen leader is bet against where the winner must be above it in 65%.
    margin = np.array([[0.5, 0.5], [0.65, 0.5]])
    assert place_bets(nothing, half, nothing, margin)[1] == (0, pytest.approx(0.15 / (0.65 * 0.35)))


def test_no_bet_risks_everything_and_each_is_against_the_worst_for_the_item() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        k = int(rng.integers(2, 13))
        fair = np.full((k, k), 0.5)
        fair[:, 0] += rng.choice([0.0, 0.3, 0.49])
        least, met = rng.beta(0.5, 0.5, size=(k, k)), rng.integers(5000, size=(k, k)).astype(float)
        for place, (other, bet) in enumerate(place_bets(rng.uniform(-1, 1, size=(k, k)), least, met, fair)):
            assert other != place
            assert 0 <= bet * (1 - fair[place, other]) <= 0.99 + 1e-12


def test_an_item_that_seems_the_best_is_taken_to_be_a_little_worse_than_the_second() -> None:
    """Only if it is not the winner does the evidence against it have to grow, and then the second is the likeliest."""
    beliefs = ItemScores.of(None, 4)
    for _ in range(60):
        beliefs = beliefs.update(0, 1, 3.0, 5.0).update(1, 2, 3.0, 4.0).update(2, 3, 3.0, 4.0)
    lost = losing_to(beliefs, (0, 1, 2), {})
    assert lost[0, 1] > 0.9
    assert lost[1, 0] > 0.9
    assert lost[1, 2] < -0.9
    assert lost[0, 2] < -0.9
    hidden = losing_to(beliefs, (1, 2), {})
    assert hidden[0, 1] < -0.9  # it does not lose to the third only because the first is not shown
    raised = losing_to(beliefs, (0, 1, 2), {2: 9.0})
    assert raised[0, 2] > 0.9
    assert raised[1, 2] > 0.9


def test_beliefs_after_rankings_of_two_are_those_after_comparisons() -> None:
    one = ItemScores.of(None, 4).update(1, 3, 2.0, 3.0)
    other = ItemScores.of(None, 4).update_ranked((1, 3), np.array([[0.0, 2.0], [1.0, 0.0]]))
    assert other.mean == pytest.approx(one.mean, abs=1e-9)
    assert other.variance == pytest.approx(one.variance, abs=1e-9)
    assert other.log_weights == pytest.approx(one.log_weights, abs=1e-9)


def test_the_margin_of_epsilon_is_kept_and_missing_answers_are_charged() -> None:
    """Theorem 2: who is above the leader with exactly ½ + eta keeps a mean of 1; and charged answers never gain."""
    policy = Winner(epsilon=0.8)
    eta = np.tanh(0.4) / 2
    ahead = (0.5 + eta) / (0.5 - eta)

    def world(shown: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        return plackett_luce({0: ahead, 1: 1.0, 2: 1.0, 3: 1.0}, shown)

    assert mean_of_process(policy, world, 3) <= 1 + 1e-9

    def when_it_wins(shown: tuple[int, ...], order: tuple[int, ...]) -> float:
        return 0.9 if shown[order[0]] == 0 else 0.0

    charged = Winner(missing="charged")
    assert mean_of_process(charged, BALANCED, 4, lost=when_it_wins) <= 1 + 1e-9
    assert mean_of_process(Winner(), BALANCED, 4, lost=when_it_wins) > 1.001  # the control: it is not ignorable


TASTE = {"a": 1.6, "b": 0.4, "c": 0.0, "d": -0.6, "e": -0.8}


def ranked(seed: int) -> Any:
    """A judge for whom quality differs by input, on average by TASTE."""
    rng = np.random.default_rng(seed)
    luck = {(name, given): rng.normal(0, 0.7) for name in TASTE for given in "uvwxyz"}

    def judge(question: Any) -> list[str]:
        assert question.input in "uvwxyz"
        worth = {name: TASTE[name] + luck[name, question.input] + rng.gumbel() for name in question.items}
        return sorted(question.items, key=lambda name: -worth[name])

    return judge


@pytest.mark.parametrize("show", [3, 4, 5])
def test_a_search_by_rankings_finds_the_best_and_its_certificate_is_accepted(show: int, tmp_path: Any) -> None:
    problem = Problem.from_systems(list(TASTE), list("uvwxyz"), show=show)
    session = Session(problem, seed=3, path=tmp_path / "log.jsonl")
    judge = ranked(5)
    while session.final is None:
        for question in session.ask(3):
            session.tell(question, judge(question))
    verdict = session.verdict()
    assert (verdict.best, verdict.status) == ("a", Status.CERTAIN)
    assert any("placed above each other one" in sentence for sentence in verdict.assumptions)
    assert any("on average over these 6 inputs" in sentence for sentence in verdict.assumptions)
    certificate = json.loads(json.dumps(session.certificate()))
    checked = verify_certificate(certificate)
    assert checked.best == "a"
    assert "placed above each other system" in checked.assumed
    assert Session.resume(tmp_path / "log.jsonl").verdict() == verdict
    changed = json.loads(json.dumps(certificate))
    for stage in changed["stages"]:
        stage["stakes"] = [[[[other, 0.0] for other, _ in bets] for bets in one] for one in stage["stakes"]]
    with pytest.raises(CertificateRefused, match="is not excluded"):
        verify_certificate(signed(changed))
    for bet, reason in (([0, 2.5], "out of range"), ([0, -0.1], "out of range"), ([1, 0.1], "against itself")):
        forged = json.loads(json.dumps(certificate))
        forged["stages"][0]["stakes"][0][0][1] = bet
        with pytest.raises(CertificateRefused, match=reason):
            verify_certificate(signed(forged))
    short = json.loads(json.dumps(certificate))
    short["stages"][0]["stakes"][0][0].pop()
    with pytest.raises(CertificateRefused):
        verify_certificate(signed(short))


@pytest.mark.parametrize("epsilon", [0.0, 0.6])
@pytest.mark.parametrize("missing", ["ignorable", "charged"])
def test_the_checker_multiplies_the_same_factors(epsilon: float, missing: Any) -> None:
    """Random bets, whole and partial rankings, ties and missing answers: both programs agree."""
    rng = np.random.default_rng(9)
    eta = float(np.tanh(epsilon / 2) / 2)
    charged = missing == "charged"
    for _ in range(40):
        k = int(rng.integers(3, 8))
        shown = sorted(rng.choice(9, size=k, replace=False).tolist())
        bets = [((place + int(rng.integers(1, k))) % k, float(rng.uniform(0, 1.9))) for place in range(k)]
        leader = int(rng.choice(shown)) if epsilon else -1
        orders = [(rng.permutation(k)[: int(rng.integers(0, k))].tolist(), int(rng.integers(1, 4))) for _ in range(3)]
        checker = Process(9, leader if epsilon else None, eta)
        checker.count_rankings(shown, bets, orders, 2 if charged else None, k - 1)
        answers = []
        for order, times in orders:
            placed = above_in(order, k)
            left = [place for place in range(k) if place not in order]
            if charged and 0 < len(order) < k - 1:
                placed[np.ix_(left, left)] = 1.0
            answers.append((placed, times))
        answers.append((np.ones((k, k)), 2 if charged else 0))
        evidence = WinnerEvidence.of(9, leader, eta).after_rankings(shown, bets, answers)
        assert evidence.reached == pytest.approx(checker.reached, abs=1e-9)


def test_a_problem_of_rankings_of_systems_says_what_it_asks() -> None:
    problem = Problem.from_systems(NAMES, ["one", "two"], show=4, weights=[1, 3])
    assert problem.by_places
    again = Problem.from_json(json.loads(json.dumps(problem.to_json())))
    assert (again.show, again.top, again.inputs, again.by_places) == (4, 3, ("one", "two"), True)
    picks = three_of_four(answer="pick")
    assert not picks.by_places  # a pick has no later picks
    assert not Problem.from_sets(NAMES, show=3).by_places
    with pytest.raises(InvalidInput, match="Only comparisons and rankings can be drawn once"):
        three_of_four(once=True, answer="pick")
    question = Session(problem, seed=2).ask(1)[0]
    assert question.input in ("one", "two")
    assert question.kind == "rank"
    assert question.to_json()["input"] == question.input


def test_picks_of_systems_and_the_top_of_a_ranking_work_too() -> None:
    judge = ranked(7)
    for options in ({"answer": "pick"}, {"top": 2}):
        problem = Problem.from_systems(list(TASTE), list("uvwxyz"), show=4, **options)
        assert find_best(problem, lambda question: judge(question)[: question.top], seed=1).best == "a"


def test_the_first_ranking_of_a_set_on_an_input_stands() -> None:
    """With "once" a repeated question counts as it was answered first, in the order shown this time."""
    problem = Problem.from_systems(["a", "b", "c"], ["only"], show=3)
    session = Session(problem, repeats="once", seed=4)
    first, second = session.ask(2)
    assert first.order != second.order
    session.tell(first, ["b", "a", "c"])
    session.tell(second, ["c", "a", "b"])
    event = [event for event in session.log if event["event"] == "answer"][-1]
    assert [second.items[place - 1] for place in event["stands"]] == ["b", "a"]
    stage = session._record.stages[second.stage]
    assert stage.orders[0] == [(1, 0)]
    assert Session.replay(session.to_lines()).to_lines() == session.to_lines()


def test_a_spent_budget_leaves_a_short_list() -> None:
    problem = Problem.from_systems(list(TASTE), list("uvwxyz"), show=4)
    verdict = find_best(problem, ranked(5), budget=10)
    assert verdict.status is Status.BUDGET_SPENT
    assert "a" in verdict.surviving
