"""The gate of two systems: what it proves, how it counts ties, and that its error is at most delta."""

import numpy as np
import pytest

from helpers import most_failures
from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.session import Reply, compare_two
from surepick.testing import assert_at_least_as_good, assert_best

INPUTS = tuple(f"input {number}" for number in range(20))
PROBLEM = Problem.from_systems(["v1", "v2", "v3"], INPUTS)


def likes(name):
    return lambda question: int(question.first == name)


def compared(chance, seed, ties=0.0, **options):
    """v2 wins with this chance, unless it is a tie; inputs matter: it wins on some and loses on others."""
    rng = np.random.default_rng([9, seed])

    def judge(question):
        if rng.random() < ties:
            return "tie"
        return int((rng.random() < chance) == (question.first == "v2"))

    return compare_two(PROBLEM, judge, new="v2", old="v1", seed=seed, **options)


def test_a_clear_difference_is_found_soon():
    better = compare_two(PROBLEM, likes("v2"), new="v2", old="v1")
    assert (better.result, better.losses, better.inputs) == ("at least as good", 0, 20)
    assert better.questions <= 12
    assert "v2 is at least as good as v1 on average over these 20 inputs" in str(better)
    worse = compare_two(PROBLEM, likes("v1"), new="v2", old="v1", epsilon=0.2)
    assert (worse.result, worse.wins) == ("worse", 0)
    assert worse.questions <= 12
    assert "v2 is worse than v1" in str(worse)


def test_questions_show_the_two_systems_on_drawn_inputs_in_drawn_orders():
    found = compare_two(PROBLEM, lambda question: question.id % 2, new="v2", old="v1", budget=200)
    questions = [question for question, _ in found.answers]
    assert found.result == "open"
    assert "is not proved" in str(found)
    assert {question.input for question in questions} == set(INPUTS)
    assert {question.first for question in questions} == {question.second for question in questions} == {"v1", "v2"}
    for question in questions:
        assert question.swapped == (question.first == "v2")
        assert np.array_equal(question.vector != 0, [True, True, False])


def test_ties_prove_that_a_system_is_as_good_within_epsilon_and_never_that_it_is_better():
    same = compare_two(PROBLEM, lambda question: "tie", new="v2", old="v1", epsilon=0.2)
    assert same.result == "at least as good"
    assert same.ties == same.questions <= 80
    assert compare_two(PROBLEM, lambda question: "tie", new="v2", old="v1", budget=300).result == "open"


def test_skipped_questions_are_counted_and_say_nothing():
    found = compare_two(PROBLEM, lambda question: None, new="v2", old="v1", budget=50)
    assert (found.result, found.skipped, found.questions) == ("open", 50, 0)


def test_answers_count_in_the_order_of_asking():
    """A judge who hands over good news first and keeps the bad news back does not get a proof."""

    class Late:
        at_once = 30

        def replies(self, next_question):
            out = [question for question in (next_question() for _ in range(30)) if question]
            good = [question for question in out if question.id > 1]
            for question in good:
                yield question, Reply(int(question.first == "v2"))
            yield out[0], Reply(None)

    found = compare_two(PROBLEM, Late(), new="v2", old="v1", budget=30)
    assert found.answers[0][1] is None
    assert found.result == "open"  # all thirty were handed out, and their bets fixed, before the first answer


def test_a_judge_that_fails_is_not_asked_for_ever():
    class Broken:
        at_once = 2

        def replies(self, next_question):
            while question := next_question():
                yield question, Reply(None, trouble="it broke")

    assert compare_two(PROBLEM, Broken(), new="v2", old="v1").skipped == 6


@pytest.mark.parametrize("ties", [0.0, 0.5])
def test_errors_are_at_most_delta(ties):
    """At the border of both claims each is made with probability at most delta; inside, the right one is made.

    With ties of share t the mean score is t/2 + (1 − t)·p, so the border ½ − η is at p = ½ − η/(1 − t).
    """
    delta, epsilon, runs = 0.2, 1.0, 100
    eta = float(np.tanh(epsilon / 2) / 2)
    border = 0.5 - eta / (1 - ties)
    options = {"delta": delta, "epsilon": epsilon, "budget": 40, "ties": ties}
    results = [compared(border, seed, **options).result for seed in range(runs)]
    assert results.count("at least as good") <= most_failures(runs, delta)
    assert results.count("worse") <= most_failures(runs, delta)
    # The negative control: a system that is truly as good would be more often approved than an error may be.
    equal = [compared(0.5, seed, **options).result for seed in range(30)]
    assert equal.count("at least as good") > most_failures(30, delta)


def test_the_gate_fails_a_test_unless_the_claim_is_proved():
    assert assert_at_least_as_good(PROBLEM, likes("v2"), new="v2", old="v1").wins > 0
    with pytest.raises(AssertionError, match="v2 is worse than v1"):
        assert_at_least_as_good(PROBLEM, likes("v1"), new="v2", old="v1")
    with pytest.raises(AssertionError, match="not proved to be at least as good"):
        assert_at_least_as_good(PROBLEM, lambda question: question.id % 2, new="v2", old="v1", budget=20)
    assert assert_best(PROBLEM, likes("v3"), "v3").best == "v3"
    with pytest.raises(AssertionError, match="v1 is not proved to be the best"):
        assert_best(PROBLEM, likes("v3"), "v1")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"new": "v9", "old": "v1"}, "no item named 'v9'"),
        ({"new": "v1", "old": "v1"}, "both 'v1'"),
        ({"new": "v2", "old": "v1", "delta": 2.0}, "delta"),
        ({"new": "v2", "old": "v1", "epsilon": -1.0}, "epsilon"),
    ],
)
def test_what_cannot_be_compared_is_refused(options, why):
    with pytest.raises(InvalidInput, match=why):
        compare_two(PROBLEM, likes("v2"), **options)


def test_an_answer_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match="must be 1, 0"):
        compare_two(PROBLEM, lambda question: "v2", new="v2", old="v1")
