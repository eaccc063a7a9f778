"""The wording of a verdict: one for the terminal, the report and the service."""

import pytest

from surepick import Anytime, Problem, Status, find_best
from surepick.report.sentences import certainty, checks_note, claim, claim_around, equally_good, intervals_note, odds


@pytest.mark.parametrize(
    ("status", "count", "why", "said"),
    [
        (Status.CERTAIN, None, "", "red is the best"),
        (Status.CERTAIN, 12, "interrupted", "red is the best of 12 items"),
        (Status.WITHIN_EPSILON, None, "", "red is the best, or within 0.5 of it"),
        (Status.WITHIN_EPSILON, 12, "", "red is the best of 12 items, or within 0.5 of it"),
        (Status.BUDGET_SPENT, 12, "", "Not decided; the best guess of 12 items is red"),
        (Status.NOT_IDENTIFIABLE, None, "", "These questions cannot decide it; the best guess is red"),
        (Status.OPEN, None, "", "Not decided yet; red leads"),
        (Status.OPEN, 12, "votes ran out", "Not decided (votes ran out); the best guess of 12 items is red"),
    ],
)
def test_what_is_claimed(status, count, why, said):
    assert claim(status, "red", 0.5, count=count, why=why) == said
    before, after = claim_around(status, 0.5, count=count, why=why)
    assert f"{before}red{after}" == said


def test_nothing_is_claimed_of_an_item_that_is_not_known():
    assert claim(Status.OPEN, "", 0.0) == "Not decided yet"
    assert claim(Status.BUDGET_SPENT, "", 0.0) == "Not decided"


@pytest.mark.parametrize("charged", [True, False])
@pytest.mark.parametrize("ranks_by_intervals", [True, False])
def test_intervals_and_the_verdict_are_two_claims_on_a_stated_condition(charged, ranks_by_intervals):
    said = intervals_note(0.05, "proved", charged=charged, ranks_by_intervals=ranks_by_intervals)
    assert "two claims: both are right with probability 0.9 at least" in said
    assert said.count("probability 0.95") == 2
    # With whichever of the two the ranks hold, they are named there, and only there.
    assert said.startswith("All intervals and ranks hold") == ranks_by_intervals
    assert ("The ranks and the verdict hold" in said) != ranks_by_intervals
    assert ("whatever the reason why answers are missing" in said) == charged
    assert ("if whether an answer comes depends neither on what it would have been" in said) != charged
    heuristic = intervals_note(0.05, "heuristic", charged=charged, ranks_by_intervals=ranks_by_intervals)
    assert "both are right" not in heuristic
    assert "(heuristic, not proved)" in heuristic


def test_how_sure_it_is_depends_on_what_is_proved():
    assert "1 of 20 such searches, if the assumptions hold (proved)" in certainty(Status.CERTAIN, 0.05, 0.5, "proved")
    said = certainty(Status.WITHIN_EPSILON, 0.03, 0.5, "proved", "The features explain every answer.")
    assert said == (
        "Worse than the best by more than 0.5 in at most 3 of 100 such searches, if the features explain every answer "
        "(proved)."
    )
    assert "not valid in general (as printed)" in certainty(Status.CERTAIN, 0.05, 0.0, "as printed")
    assert "(cited: proved in a publication)" in certainty(Status.CERTAIN, 0.05, 0.0, "cited")
    for status in Status:  # no probability, and no word on who is among the survivors
        said = certainty(status, 0.05, 0.5, "heuristic")
        assert said.startswith("A rule of thumb: nothing is proved")
        assert "1 of 20" not in said
    assert certainty(Status.OPEN, 0.05, 0.0, "proved").startswith("Nothing is claimed yet")


def test_small_sentences():
    assert odds(None) == odds(0.0) == "–"
    assert odds(7.0) == "1,097 to 1"
    assert odds(20.0) == "over 1,000,000 to 1"
    assert equally_good([]) == ""
    assert equally_good(["red", "blue"]).endswith("red, blue.")
    assert "at most 5%" in checks_note(0.05)


@pytest.mark.parametrize(("epsilon", "budget"), [(0.0, 500), (1.0, 500), (0.0, 2)])
def test_a_verdict_printed_by_itself_says_the_same(epsilon, budget):
    items = {"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.5, 0.6]}
    verdict = find_best(
        Problem.from_pairs(items),
        lambda question: int(items[question.first][0] > items[question.second][0]),
        policy=Anytime(epsilon=epsilon, budget=budget),
    )
    why = "" if verdict.status.decided else str(verdict.status)
    status = verdict.status if verdict.status.decided else Status.OPEN
    assert str(verdict).startswith(claim(status, verdict.best, epsilon, why=why))
