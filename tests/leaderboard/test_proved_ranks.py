"""Proved ranks are wrong with probability at most delta; without the union over pairs they would be more often."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

import surepick as sp
from surepick.leaderboard.proved_ranks import (
    ROUNDING,
    better_in_every_vote,
    better_on_average,
    cycle,
    log_evidence,
    transitive,
)

DELTA = 0.05


def counts(wins: np.ndarray, ties: np.ndarray | None = None) -> sp.VoteCounts:
    names = tuple(f"item {number}" for number in range(len(wins)))
    return sp.VoteCounts(names, wins, np.zeros_like(wins) if ties is None else ties)


def round_robin(rng: np.random.Generator, chances: np.ndarray, votes: int, ties: float = 0.0) -> sp.VoteCounts:
    """Every pair the same number of times; chances[i, j] of i winning where they do not tie."""
    upper = np.triu_indices(len(chances), 1)
    wins, tied = np.zeros((2, *chances.shape), dtype=np.int64)
    decisive = rng.binomial(votes, 1 - ties, size=len(upper[0]))
    wins[upper] = rng.binomial(decisive, chances[upper])
    wins.T[upper] = decisive - wins[upper]
    tied[upper] = tied.T[upper] = votes - decisive
    return counts(wins, tied)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (3, 1), (1, 3), (40, 22)])
def test_the_closed_form_is_the_integral(wins, losses):
    integral, _ = quad(lambda p: 2 * (2 * p) ** wins * (2 - 2 * p) ** losses, 0.5, 1.0, epsabs=0, epsrel=1e-12)
    assert float(log_evidence(np.array(wins), np.array(losses))) == pytest.approx(math.log(integral), abs=1e-9)


def test_evidence_is_finite_for_very_many_votes_and_safe_where_it_underflows():
    many = log_evidence(np.array([500_500_000, 499_500_000, 0]), np.array([499_500_000, 500_500_000, 10**9]))
    assert many[0] == pytest.approx(2 * (5e-4) ** 2 * 1e9, abs=15)
    assert many[1] < -10
    for wins, losses in ((500_100_000, 499_900_000), (520_000, 480_000)):
        with mpmath.workdps(60):
            total = mpmath.beta(wins + 1, losses + 1) * mpmath.mpf(2) ** (wins + losses + 1)
            error = float(log_evidence(np.array(wins), np.array(losses)) - mpmath.log(total))
        # The probability of more than ½ is at most one and here nearly one.
        assert abs(error) < ROUNDING + 1e-13 * (wins + losses)
    assert many[2] == -np.inf


@pytest.mark.parametrize("better_wins", [0.5, 0.6])
@pytest.mark.parametrize("stop_at", [0.5, 2.0, 4.0])
def test_mean_evidence_for_the_worse_item_is_at_most_one_whenever_the_voting_stops(better_wins, stop_at):
    """Exact: all sequences of 12 votes, where the voting stops once the evidence reaches a level."""
    mean = 0.0
    for length in range(13):
        for sequence in itertools.product((0, 1), repeat=length):  # 1: the worse item won
            levels = [evidence(sum(sequence[:n]), n - sum(sequence[:n])) for n in range(length + 1)]
            if any(level >= stop_at for level in levels[1:-1]) or (levels[-1] < stop_at and length < 12):
                continue  # stopped earlier, or goes on
            if length == 0:
                continue
            mean += levels[-1] * np.prod([1 - better_wins if won else better_wins for won in sequence])
    assert 0.3 < mean <= 1 + 1e-9


def evidence(wins: int, losses: int, cache: dict = {}) -> float:  # noqa: B006
    if (wins, losses) not in cache:
        cache[wins, losses] = math.exp(float(log_evidence(np.array(wins), np.array(losses))))
    return cache[wins, losses]


def share_of_wrong_claims(better, votes: int, runs: int, **options: float) -> int:
    """Runs in which anything is claimed among 20 items of which none is better."""
    rng, equal = np.random.default_rng(11), np.full((20, 20), 0.5)
    return sum(bool(better(round_robin(rng, equal, votes, ties=0.2), **options).any()) for _ in range(runs))


@pytest.mark.parametrize("better", [better_in_every_vote, better_on_average])
def test_among_equal_items_almost_nothing_is_claimed_and_without_the_union_it_is_caught(better):
    """200 runs; more than 22 of them have probability below 1e-3 if delta = .05 holds.

    All 190 pairs are equal, so that either direction is false: twice the risk of an order, hence delta / 2.
    """
    most = int(binom.isf(1e-3, 200, DELTA))
    assert share_of_wrong_claims(better, 200, 200, delta=DELTA / 2) <= most
    # The negative control: with the whole delta for each of the 190 pairs.
    assert share_of_wrong_claims(better, 200, 200, delta=DELTA / 2 * 190) > most


def test_exact_probability_of_a_wrong_claim_among_twenty_items():
    """From the binomial distribution of the votes on each pair, at the worst case of the assumption: even chances."""
    votes, items = 200, 20
    pairs = items * (items - 1) // 2
    chance = binom.pmf(np.arange(votes + 1), votes, 0.5)
    # Each pair has a better item by assumption; a claim against it needs evidence for the other one.
    found = log_evidence(np.arange(votes + 1), votes - np.arange(votes + 1))
    wrong = [1 - (1 - chance[found >= math.log(share / DELTA)].sum()) ** pairs for share in (pairs, 1)]
    assert wrong[0] <= DELTA
    assert wrong[1] > 2 * DELTA  # without the union over pairs
    # The threshold of the code is the first of the two.
    least = int(np.flatnonzero(found >= math.log(pairs / DELTA))[0])
    for won in (least - 1, least):
        wins = np.zeros((items, items), dtype=np.int64)
        wins[0, 1], wins[1, 0] = won, votes - won
        assert better_in_every_vote(counts(wins), DELTA)[0, 1] == (won == least)


def test_a_rank_by_the_mean_score_holds_where_preferences_go_in_a_circle():
    """Item 0 beats 1, 1 beats 2, 2 beats 0 barely: the means are .725, .45 and .325."""
    chances = np.array([[0.5, 0.9, 0.45], [0.1, 0.5, 0.8], [0.55, 0.2, 0.5]])
    mean = np.array([(0.9 + 0.45) / 2, (0.1 + 0.8) / 2, (0.55 + 0.2) / 2])
    rng = np.random.default_rng(2)
    for _ in range(50):
        votes = round_robin(rng, chances, 2000, ties=0.1)
        better = better_on_average(votes, DELTA)
        assert not (better & (mean[:, None] <= mean[None, :])).any()
    assert better[0].tolist() == [False, True, True]
    fixed = sp.rank_votes(votes, data="fixed")
    assert {row.item: row.ranks for row in fixed.rows}["item 0"] == "1"


def test_the_hoeffding_margin_by_hand():
    """Two items: the difference of mean scores is 2p − 1, its margin 2·√(log(1/δ)/(2n))."""
    for wins in range(1001):
        votes = counts(np.array([[0, wins], [1000 - wins, 0]]))
        margin = 2 * math.sqrt(math.log(1 / DELTA) / 2000)
        assert better_on_average(votes, DELTA)[0, 1] == (2 * wins / 1000 - 1 > margin + 1e-6)


def test_a_pair_without_votes_may_go_either_way():
    wins = np.zeros((3, 3), dtype=np.int64)
    wins[0, 1] = 10**6
    assert not better_on_average(counts(wins), DELTA).any()  # item 1 may win all against item 2, and item 0 none
    wins[0, 2] = 10**6
    assert better_on_average(counts(wins), DELTA)[0].tolist() == [False, True, True]  # a mean of 1 against at most ½
    wins[2, 1] = 10**6
    assert better_on_average(counts(wins), DELTA).tolist() == [[False, True, True], [False] * 3, [False, True, False]]


def test_ties_count_half_on_average_and_nothing_in_the_order():
    wins = np.array([[0, 60], [10, 0]])
    ties = np.array([[0, 10**4], [10**4, 0]])
    assert better_in_every_vote(counts(wins, ties), DELTA)[0, 1]
    assert not better_on_average(counts(wins, ties), DELTA).any()


def test_what_follows_is_claimed_and_ranks_are_counted():
    better = np.zeros((4, 4), dtype=bool)
    better[0, 1] = better[1, 2] = True
    assert transitive(better)[0].tolist() == [False, True, True, False]
    wins = np.zeros((4, 4), dtype=np.int64)
    wins[0, 1] = wins[1, 2] = 100
    board = sp.rank_votes(counts(wins))
    assert {row.item: row.ranks for row in board.rows} == {
        "item 0": "1–2",
        "item 1": "2–3",
        "item 2": "3–4",
        "item 3": "1–4",
    }


def test_votes_in_a_circle_refute_the_order_and_nothing_is_claimed():
    wins = np.zeros((4, 4), dtype=np.int64)
    wins[0, 1] = wins[1, 2] = wins[2, 0] = 100
    wins[3, 0] = 5
    assert sorted(cycle(wins >= 100)) == [0, 1, 2]
    assert cycle(np.triu(np.ones((4, 4), dtype=bool), 1)) is None
    board = sp.rank_votes(counts(wins))
    assert {row.ranks for row in board.rows} == {"1–4"}
    assert "item 0 > item 1 > item 2 > item 0" in board.notes[0]
    assert "refuted" in board.notes[0]


def test_an_order_is_found_when_votes_are_many():
    score = np.linspace(1.5, -1.5, 6)
    chances = 1 / (1 + np.exp(score[None, :] - score[:, None]))
    votes = round_robin(np.random.default_rng(4), chances, 2000, ties=0.2)
    for data in ("adaptive", "fixed"):
        board = sp.rank_votes(votes, data=data)
        assert [row.ranks for row in board.rows] == list("123456")
        assert [row.item for row in board.rows] == list(votes.names)
        assert {row.guarantee for row in board.rows} == {sp.Guarantee.PROVED}
        assert all(row.low < row.score < row.high for row in board.rows)
