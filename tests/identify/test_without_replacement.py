"""Answers drawn without replacement: exact means over all orders of drawing, and searches that end."""

import copy
import math
from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from surepick import InvalidInput, Problem, Session, find_best, verify_certificate
from surepick.certificate import digest
from surepick.certificate.winner import AnswersDrawn, Process, RankingsDrawn
from surepick.errors import CertificateRefused
from surepick.evidence.betting import LOG_SHARES, REFUTED, Drawn, WinnerEvidence, above_in
from surepick.identify import Anytime, Plan, Status, Winner

INPUTS = ["x", "y"]
ONCE = Problem.from_systems(["a", "b", "c"], INPUTS, once=True)
RANKED_ONCE = Problem.from_systems(["a", "b", "c"], INPUTS, show=3, once=True)


def mean_of_process(problem, tables, steps, *, delay=0, lost=(0.0, 0.0), missing="ignorable"):
    """E of the process of item 0 over all orders of drawing.

    `tables` has the answers to each question: scores of the first item of a pair, or orders. `delay` questions are out
    when the oldest is answered; answers 0 and 1 are lost with the probabilities `lost`, and orders as if they were 1 if
    item 0 is the first.
    """
    policy = Winner(delta=1e-9, missing=missing)
    total = 0.0

    def walk(state, left, weight, number):
        nonlocal total
        if number == steps:
            wealth = state.evaluated.evidence.log_wealth[0]
            total += weight * np.exp(logsumexp(wealth + LOG_SHARES))
            return
        waiting = [stage for stage, record in enumerate(state.stages) if not record.answered]
        if len(waiting) <= delay:
            plan = policy.plan(state, np.random.default_rng(number))
            if isinstance(plan, Plan):
                assert plan.pulls.tolist() == [1] * len(plan.pulls)
                walk(policy.apply(state, plan), left, weight, number)
                return
            if not waiting:
                walk(state, left, weight, steps)
                return
        stage = waiting[0]
        plan = state.stages[stage].plan
        number_asked = int(plan.measurements[0])
        cells = left[number_asked]
        for answer in set(cells):
            rest = dict(left)
            rest[number_asked] = list(cells)
            rest[number_asked].remove(answer)
            here = weight * cells.count(answer) / len(cells)
            if problem.show > 2:
                told = policy.update(state, stage, plan.tally(problem, [0], [0]), orders=[[answer]])
                chance = lost[answer[:1] == (0,)]
            else:
                told = policy.update(state, stage, plan.tally(problem, [answer]))
                chance = lost[answer]
            walk(told, rest, here * (1 - chance), number + 1)
            if chance:
                walk(policy.close(state, stage), rest, here * chance, number + 1)

    first = len(problem.about) if problem.show > 2 else 0
    walk(policy.start(problem), {first + row: list(table) for row, table in enumerate(tables)}, 1.0, 0)
    return total


BORDER = [
    ([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]),
    ([0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 1, 0]),
]
"""Item 0 wins half of all its comparisons with one other, or with both."""


@pytest.mark.parametrize("tables", BORDER)
@pytest.mark.parametrize("delay", [0, 1, 2])
def test_a_winner_by_the_mean_over_all_answers_has_a_mean_of_at_most_one(tables, delay):
    assert mean_of_process(ONCE, tables, 7, delay=delay) <= 1 + 1e-9


RANKED_BORDER = [
    [(0, 1), (0, 1), (1, 2), (2, 1)],
    [(0, 1), (0, 2), (1, 2), (2, 1)],
    [(1, 0), (2, 0), (1, 0), (2, 0)],
    [(0, 1), (0, 2), (2, 1), ()],
]
"""In the first three, item 0 is above each other one in half of all rankings; in the last, which has a tie, in more."""


@pytest.mark.parametrize("table", RANKED_BORDER)
@pytest.mark.parametrize("delay", [0, 1, 2])
def test_a_winner_by_all_rankings_has_a_mean_of_at_most_one(table, delay):
    assert mean_of_process(RANKED_ONCE, [table], 4, delay=delay) <= 1 + 1e-9


@pytest.mark.parametrize(("missing", "lost"), [("ignorable", (0.5, 0.5)), ("charged", (0.0, 0.9))])
def test_lost_rankings_count_as_if_every_system_were_the_first(missing, lost):
    assert mean_of_process(RANKED_ONCE, [RANKED_BORDER[0]], 4, lost=lost, missing=missing) <= 1 + 1e-9


def mean_of_contrarian_rankings(drawn):
    """E of a process that bets against item 1 after every ranking with item 0 above it, over all orders of drawing."""
    total = []
    for order in permutations([(0, 1), (0, 1), (1, 2), (1, 2)]):
        evidence, past = WinnerEvidence.of(3), Drawn(4, 0, np.zeros((3, 3)))
        for number, ranking in enumerate(order):
            bet = 1.5 if number and order[number - 1][0] == 0 else 0.0
            answers = [(above_in(ranking, 3), 1)]
            bets = [(1, bet), (0, 0.0), (0, 0.0)]
            evidence = evidence.after_rankings((0, 1, 2), bets, answers, past if drawn else None)
            past = past.after(answers)
        total.append(np.exp(logsumexp(evidence.log_wealth[0] + LOG_SHARES)))
    return np.mean(total)


def test_the_share_of_independent_rankings_would_be_wrong():
    assert mean_of_contrarian_rankings(drawn=True) <= 1 + 1e-9
    assert mean_of_contrarian_rankings(drawn=False) > 1.1


@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.parametrize("leader", [None, 2])
def test_the_checker_draws_rankings_in_the_same_way(charged, leader):
    """Random bets on all of a table, with partial rankings, ties and missing ones: both programs agree to the end."""
    rng, k, eta = np.random.default_rng(8), 4, 0.1 if leader else 0.0
    shown = [0, 2, 3, 5]
    for _ in range(30):
        checker, seen = Process(6, leader, eta), RankingsDrawn(10, k)
        evidence = WinnerEvidence.of(6, -1 if leader is None else leader, eta)
        past = Drawn(10, 0, np.zeros((k, k)))
        for _ in range(10):
            order, absent = rng.permutation(k)[: rng.integers(k)].tolist(), int(rng.random() < 0.2)
            bets = [((place + int(rng.integers(1, k))) % k, float(rng.uniform(0, 2.5))) for place in range(k)]
            above = above_in(order, k)
            left = [place for place in range(k) if place not in order]
            if charged and 0 < len(order) < k - 1:
                above[np.ix_(left, left)] = 1.0
            ones = np.ones((k, k))
            answers = [(above, 1 - absent), (ones, absent if charged else 0)]
            orders = [(order, 1 - absent)]
            evidence = evidence.after_rankings(shown, bets, answers, past)
            checker.count_rankings(shown, bets, orders, absent if charged else None, k - 1, seen)
            past = past.after([(above, 1 - absent), (ones, absent)])
            seen.draw(1, orders, absent, charged, k - 1)
            reached = (np.minimum(one.reached, REFUTED) for one in (evidence, checker))
            assert np.allclose(*reached, atol=1e-9)
        with pytest.raises(CertificateRefused, match="drawn once"):
            seen.draw(1, orders, 0, charged, k - 1)


def mean_of_contrarian(drawn):
    """E of a process that bets on a loss after every win, over all orders of a table of four with two wins."""
    total = []
    for order in set(permutations([0, 0, 1, 1])):
        evidence, wins = WinnerEvidence.of(2), 0
        for number, score in enumerate(order):
            share = 0.1 if number and order[number - 1] else 0.5
            before = Drawn(4, number, (wins, number - wins)) if drawn else None
            evidence = evidence.update(
                (0, 1), ((share, 1 - share), (share, 1 - share)), [((score, 1 - score), 1)], drawn=before
            )
            wins += score
        total.append(np.exp(logsumexp(evidence.log_wealth[0] + LOG_SHARES)))
    return np.mean(total)


def test_the_share_of_independent_answers_would_be_wrong():
    """The control: after wins the rest of the table is worse than half, which only the corrected share knows."""
    assert mean_of_contrarian(drawn=True) <= 1 + 1e-9
    assert mean_of_contrarian(drawn=False) > 1.1


@pytest.mark.parametrize(
    ("missing", "lost"), [("ignorable", (0.5, 0.5)), ("charged", (0.0, 1.2)), ("charged", (0.8, 0.1))]
)
def test_lost_answers_count_as_wins_of_both(missing, lost):
    assert mean_of_process(ONCE, BORDER[0], 6, lost=lost, missing=missing) <= 1 + 1e-9


def table_judge(problem, seed, lead):
    """A judge who always says the same: answers by pair, input and order, in which the last system is ahead."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=(len(problem.names), len(problem.inputs)))
    quality[-1] += lead  # enough to win on average in every comparison
    place = {name: number for number, name in enumerate(problem.names)}
    inputs = {name: number for number, name in enumerate(problem.inputs)}

    def judge(question):
        one, other, shown = place[question.first], place[question.second], inputs[question.input]
        return int(quality[one, shown] + 0.1 > quality[other, shown])

    return judge


def test_nothing_is_asked_twice_and_the_search_ends_sooner():
    names, inputs = [f"s{n}" for n in range(5)], [f"i{n}" for n in range(40)]
    asked = {}
    for once in (True, False):
        problem = Problem.from_systems(names, inputs, once=once)
        counts = []
        for seed in range(6):
            verdict = find_best(problem, table_judge(problem, seed, 0.9), seed=seed)
            assert verdict.status is Status.CERTAIN
            assert verdict.best == "s4"
            counts.append(verdict.questions)
        asked[once] = np.mean(counts)
    assert asked[True] < 0.85 * asked[False]
    session = Session(Problem.from_systems(names, inputs, once=True), seed=3)
    judge = table_judge(session.problem, 3, 0.9)
    while questions := session.ask(4):
        for question in questions:
            session.tell(question.id, judge(question))
    cells = [(question.measurement, question.input, question.swapped) for question in session.questions.values()]
    assert len(set(cells)) == len(cells)
    assert "over both orders" in session.verdict().assumptions[-1]
    assert Session.replay(session.to_lines()).verdict() == session.verdict()


def ranking_judge(problem, seed, lead):
    """A judge who always says the same, and for whom the place shown matters a little; the last system is ahead."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=(len(problem.names), len(problem.inputs)))
    quality[-1] += lead
    place = {name: number for number, name in enumerate(problem.names)}
    inputs = {name: number for number, name in enumerate(problem.inputs)}

    def judge(question):
        worth = {
            name: quality[place[name], inputs[question.input]] - 0.1 * shown
            for shown, name in enumerate(question.items)
        }
        return sorted(question.items, key=lambda name: -worth[name])

    return judge


def test_rankings_are_drawn_once_in_an_order_and_its_reverse():
    names, inputs = [f"s{n}" for n in range(6)], [f"i{n}" for n in range(60)]
    asked = {}
    for once in (True, False):
        problem = Problem.from_systems(names, inputs, show=6, once=once)
        verdicts = [find_best(problem, ranking_judge(problem, seed, 0.6), seed=seed) for seed in range(8)]
        assert all((verdict.best, verdict.status) == ("s5", Status.CERTAIN) for verdict in verdicts)
        asked[once] = np.mean([math.log(verdict.questions) for verdict in verdicts])
    assert asked[True] < asked[False] - 0.15
    problem = Problem.from_systems(names, inputs[:12], show=6, once=True)
    session, judge = Session(problem, seed=3), ranking_judge(problem, 8, 0.2)
    while questions := session.ask(3):
        for question in questions:
            session.tell(question.id, judge(question))
    shown = {}
    for question in session.questions.values():
        shown.setdefault(question.input, []).append(question.items)
    assert len(session.questions) <= 24
    twice = [orders for orders in shown.values() if len(orders) > 1]
    assert twice
    assert all(first == second[::-1] for first, second in twice)
    assert "in its reverse" in session.verdict().assumptions[-1]
    again = Session.replay(session.to_lines())
    assert [question.items for question in again.questions.values()] == [
        question.items for question in session.questions.values()
    ]
    assert again.verdict().rivals == session.verdict().rivals


def test_a_search_by_rankings_drawn_once_is_certified():
    names, inputs = ["s0", "s1", "s2", "s3"], [f"i{n}" for n in range(9)]
    problem = Problem.from_systems(names, inputs, show=4, once=True)
    assert Problem.from_json(problem.to_json()).once
    session, judge = Session(problem, seed=2), ranking_judge(problem, 1, 1.2)
    while questions := session.ask(2):
        for question in questions:
            session.tell(question.id, judge(question))
    assert (session.verdict().best, session.verdict().status) == ("s3", Status.CERTAIN)
    certificate = session.certificate()
    assert verify_certificate(certificate).best == "s3"
    content = {name: value for name, value in certificate.items() if name not in ("digest", "chain")}
    for other in (inputs[:2], [f"i{n}" for n in range(900)]):  # asked too often, and with less evidence than it says
        forged = copy.deepcopy(content)
        forged["problem"]["inputs"] = other
        with pytest.raises(CertificateRefused):
            verify_certificate(forged | {"digest": digest(forged)})


def test_systems_that_rankings_leave_equal_are_said_to_be_equal():
    session = Session(RANKED_ONCE, seed=1)
    while questions := session.ask(1):
        answer = ["a", "b", "c"] if questions[0].input == "x" else ["b", "a", "c"]
        session.tell(questions[0].id, answer)
    assert (session.exhausted is not None, len(session.questions)) == (True, 4)
    assert "Every ranking that could decide" in session.verdict().reason


def test_equal_systems_are_said_to_be_equal_when_everything_was_asked():
    problem = Problem.from_systems(["a", "b"], INPUTS, once=True)
    session = Session(problem, seed=1)
    while questions := session.ask(1):
        session.tell(questions[0].id, int((questions[0].first == "a") == (questions[0].input == "x")))
    assert session.exhausted
    assert len(session.questions) == 4
    assert "as good as equal on these inputs" in session.verdict().reason


def test_a_search_is_certified_and_a_forged_table_refused():
    names, inputs = ["s0", "s1", "s2"], [f"i{n}" for n in range(6)]
    session = Session(Problem.from_systems(names, inputs, once=True), seed=2)
    judge = table_judge(session.problem, 1, 2.0)
    while questions := session.ask(2):
        for question in questions:
            session.tell(question.id, judge(question))
    assert session.verdict().status is Status.CERTAIN
    certificate = session.certificate()
    checked = verify_certificate(certificate)
    assert checked.best == "s2"

    def forged(change):
        content = copy.deepcopy({name: value for name, value in certificate.items() if name not in ("digest", "chain")})
        change(content)
        return content | {"digest": digest(content)}

    def fewer_inputs(content):
        content["problem"]["inputs"] = content["problem"]["inputs"][:2]

    def asked_again(content):
        for stage in content["stages"]:
            stage["planned"] = [5] * len(stage["planned"])

    for change in (fewer_inputs, asked_again):
        with pytest.raises(CertificateRefused):
            verify_certificate(forged(change))


def test_nothing_is_bet_on_where_nothing_has_to_be_won_any_more():
    """After two wins of four the rest may all be lost: a bet at the least share that is computed with would gain."""
    shares = [[0.01, 0.99], [0.01, 0.99]]
    process, past = Process(2), AnswersDrawn(4, 2)
    past.draw(1, [([1.0, 0.0], 1)], 0)
    past.draw(1, [([1.0, 0.0], 1)], 0)
    process.count([0, 1], shares, [([0.0, 1.0], 1)], 1.0, past, [1.0, 0.0])
    assert process.reached[0] < 1e-12
    evidence = WinnerEvidence.of(2).update((0, 1), shares, [((0, 1), 1)], 1.0, Drawn(4, 2, (2, 0)), [1.0, 0.0])
    assert evidence.reached[0] < 1e-12
    process.count_rankings([0, 1], [[1, 1.0], [0, 0.0]], [([1], 1)], None, 1, seen := RankingsDrawn(4, 2))
    for _ in range(2):
        seen.draw(1, [([0], 1)], 0, charged=False, top=1)
    before = process.reached[0]
    process.count_rankings([0, 1], [[1, 1.0], [0, 0.0]], [([1], 1)], None, 1, seen)
    assert process.reached[0] == before


def test_other_policies_weights_and_rules_for_repeats_are_refused():
    with pytest.raises(InvalidInput, match="equal weights"):
        Problem.from_systems(["a", "b"], INPUTS, weights=[1, 2], once=True)
    with pytest.raises(InvalidInput, match="asks nothing twice"):
        Session(ONCE, repeats="once")
    with pytest.raises(InvalidInput, match="Winner"):
        Session(Problem.from_systems({"a": [1.0], "b": [2.0], "c": [4.0]}, INPUTS, once=True), Anytime())
