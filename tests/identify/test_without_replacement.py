"""Answers drawn without replacement: exact means over all orders of drawing, and searches that end."""

import copy
from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp

from surepick import InvalidInput, Problem, Session, find_best, verify_certificate
from surepick.certificate import digest
from surepick.errors import CertificateRefused
from surepick.evidence.betting import LOG_SHARES, Drawn, WinnerEvidence
from surepick.identify import Anytime, Plan, Status, Winner

INPUTS = ["x", "y"]
ONCE = Problem.from_systems(["a", "b", "c"], INPUTS, once=True)
PAIRS = [tuple(pair) for pair in ONCE.about.tolist()]


def mean_of_process(problem, tables, steps, *, delay=0, lost=(0.0, 0.0), missing="ignorable"):
    """E of the process of item 0 over all orders of drawing; `tables` has the scores of the first item of each pair.

    `delay` questions are out when the oldest is answered; answers 0 and 1 are lost with the probabilities `lost`.
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
        pair = PAIRS[plan.measurements[0]]
        cells = left[pair]
        for score in set(cells):
            rest = dict(left)
            rest[pair] = list(cells)
            rest[pair].remove(score)
            here = weight * cells.count(score) / len(cells)
            told = policy.update(state, stage, plan.tally(problem, [score]))
            chance = lost[score]
            walk(told, rest, here * (1 - chance), number + 1)
            if chance:
                walk(policy.close(state, stage), rest, here * chance, number + 1)

    walk(policy.start(problem), {pair: list(table) for pair, table in zip(PAIRS, tables, strict=True)}, 1.0, 0)
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


def test_other_policies_weights_and_rules_for_repeats_are_refused():
    with pytest.raises(InvalidInput, match="equal weights"):
        Problem.from_systems(["a", "b"], INPUTS, weights=[1, 2], once=True)
    with pytest.raises(InvalidInput, match="asks nothing twice"):
        Session(ONCE, repeats="once")
    with pytest.raises(InvalidInput, match="Winner"):
        Session(Problem.from_systems({"a": [1.0], "b": [2.0], "c": [4.0]}, INPUTS, once=True), Anytime())
