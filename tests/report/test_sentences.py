"""The wording of a verdict: one for the terminal, the report and the service."""

import pytest

from surepick import Anytime, Problem, Status, find_best
from surepick.report.sentences import certainty, checks_note, claim, claim_around, equally_good, odds


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


def test_how_sure_it_is_depends_on_what_is_proved():
    assert "with probability at most 5%. Proved" in certainty(Status.CERTAIN, 0.05, 0.5, "proved")
    assert "worse than the best by more than 0.5" in certainty(Status.WITHIN_EPSILON, 0.05, 0.5, "proved")
    assert "at most 5% (as printed, not proved)" in certainty(Status.CERTAIN, 0.05, 0.0, "as printed")
    for status in Status:  # no probability, and no word on who is among the survivors
        said = certainty(status, 0.05, 0.5, "heuristic")
        assert said == "A heuristic: nothing is proved about how often it excludes the best item or names a wrong one."
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
