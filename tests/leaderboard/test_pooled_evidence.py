"""Bets on predictions from earlier votes: their mean is exactly one at even chances, and ranks hold with them."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import surepick as sp
from surepick.leaderboard.pooled_evidence import log_wealth, pooled_ranks

DELTA = 0.05
PAIRS = [("a", "b"), ("b", "c"), ("a", "c"), ("a", "b"), ("c", "b"), ("c", "a"), ("a", "b"), ("b", "c"), ("a", "c")]


def peeking(votes: sp.VoteCounts) -> np.ndarray:
    """Bets on the results of the very votes that settle them."""
    decisive = np.maximum(votes.wins + votes.wins.T, 1)
    chances = np.clip(votes.wins / decisive, 0.01, 0.99)
    return np.where(chances > 0.5, votes.wins * np.log(2 * chances) + votes.wins.T * np.log(2 * (1 - chances)), 0.0)


@pytest.mark.parametrize(("bets", "is_fair"), [(log_wealth, True), (peeking, False)])
def test_every_product_has_mean_one_at_even_chances(bets, is_fair):
    """Exact: all 512 results of nine votes on three items, of which each pair has even chances."""
    wealth = []
    for words in itertools.product("ab", repeat=len(PAIRS)):
        votes = [(*pair, word) for pair, word in zip(PAIRS, words, strict=True)]
        wealth.append(bets(sp.VoteCounts.of(votes, names=("a", "b", "c"))))
    for item, others in ((0, [1]), (0, [1, 2]), (1, [2]), (2, [0, 1])):
        means = [np.exp(np.array(wealth)[:, others, item].sum(axis=1)).mean()]
        means += [np.exp(np.array(wealth)[:, item, others].sum(axis=1)).mean()]
        assert np.allclose(means, 1.0, atol=1e-9) == is_fair
        assert max(means) > 1.01 or is_fair  # the negative control


def drawn(rng: np.random.Generator, scores: np.ndarray, votes: int) -> sp.VoteCounts:
    """Pairs are chosen by the votes so far: who won last is shown again, as in a tournament."""
    rows, champion = [], 0
    for _ in range(votes):
        other = int(rng.choice(np.delete(np.arange(len(scores)), champion)))
        won = rng.random() < 1 / (1 + np.exp(scores[other] - scores[champion]))
        rows.append((str(champion), str(other), "tie" if rng.random() < 0.1 else "a" if won else "b"))
        champion = champion if won else other
    return sp.VoteCounts.of(rows, names=[str(number) for number in range(len(scores))])


def wrong_ranks(bets, scores: np.ndarray, runs: int) -> int:
    """Runs in which the rank of any item is excluded; items are numbered by their true rank, equal ones anyhow."""
    rng, truth = np.random.default_rng(8), np.arange(1, len(scores) + 1)
    wrong = 0
    for _ in range(runs):
        best, worst = pooled_ranks(bets(drawn(rng, scores, 300)), DELTA)
        wrong += bool((best > truth).any() or (worst < truth).any())
    return wrong


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_ranks_hold_where_pairs_are_chosen_by_earlier_votes_and_peeking_is_caught(spread):
    """100 runs of 300 votes on 20 items; more than 13 wrong ones have probability below 1e-3 at delta = .05."""
    scores, most = np.linspace(spread, -spread, 20), int(binom.isf(1e-3, 100, DELTA))
    assert wrong_ranks(log_wealth, scores, 100) <= most
    if spread == 0.0:  # once is enough
        assert wrong_ranks(peeking, scores, 100) > most  # the negative control


def test_ranks_by_hand():
    """Evidence 10, 9 and 1 that items are better than the last; log(2K/delta) = log 160 = 5.1."""
    wealth = np.zeros((4, 4))
    wealth[:3, 3] = 10.0, 9.0, 1.0
    best, worst = pooled_ranks(wealth, DELTA)
    assert best.tolist() == [1, 1, 1, 3]  # without the two largest only 1 is left, so two are proved better
    assert worst.tolist() == [3, 3, 4, 4]
    wealth[2, 3] = -6.0  # 13, 3 without the largest
    assert pooled_ranks(wealth, DELTA)[0].tolist() == [1, 1, 1, 2]


def test_few_votes_per_pair_prove_ranks_together():
    """Twelve items with five votes per pair: no pair proves anything."""
    rng = np.random.default_rng(1)
    rows = []
    for _ in range(5):
        for i, j in itertools.combinations(range(12), 2):
            won = rng.random() < 1 / (1 + np.exp((i - j) * 0.5))
            rows.append((str(i), str(j), "a" if won else "b"))
    order = rng.permutation(len(rows))
    votes = sp.VoteCounts.of([rows[place] for place in order], names=[str(number) for number in range(12)])
    unordered = sp.VoteCounts(votes.names, votes.wins, votes.ties)
    pooled, pairs = sp.rank_votes(votes), sp.rank_votes(unordered)
    assert {row.ranks for row in pairs.rows} == {"1–12"}
    assert sum(row.ranks != "1–12" for row in pooled.rows) >= 6
    assert all(row.rank_low <= int(row.item) + 1 <= row.rank_high for row in pooled.rows)
