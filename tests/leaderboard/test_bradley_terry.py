"""Estimates agree with other programs and with a direct optimiser; items that votes do not connect have none."""

import math

import choix
import evalica
import numpy as np
import pytest
import scipy.optimize

import surepick as sp
from surepick.leaderboard.bradley_terry import Davidson, HalfWins, fit_scores

WORDS = {"a": evalica.Winner.X, "b": evalica.Winner.Y, "tie": evalica.Winner.Draw}


def drawn(seed: int, items: int, votes: int, ties: float) -> list[tuple[str, str, str]]:
    rng = np.random.default_rng(seed)
    score = rng.normal(size=items)
    result = []
    for _ in range(votes):
        i, j = rng.choice(items, 2, replace=False)
        won = rng.random() < 1 / (1 + math.exp(score[j] - score[i]))
        result.append((f"m{i}", f"m{j}", "tie" if rng.random() < ties else "a" if won else "b"))
    return result


@pytest.fixture(scope="module", params=[(0, 12, 20_000, 0.25), (1, 6, 400, 0.3), (2, 4, 300, 0.0)], ids=str)
def votes(request):
    return drawn(*request.param)


def scores(board: sp.Leaderboard) -> dict[str, float]:
    return {row.item: row.score for row in board.rows}


def test_half_wins_agree_with_evalica(votes):
    firsts, seconds, words = zip(*votes, strict=True)
    found = evalica.bradley_terry(firsts, seconds, [WORDS[word] for word in words], tolerance=1e-14, limit=10**6).scores
    theirs = np.log(found) - np.log(found).mean()
    ours = scores(sp.rank_votes(sp.VoteCounts.of(votes)))
    assert max(abs(ours[name] - theirs[name]) for name in ours) < 1e-6
    assert list(ours) == list(theirs.sort_values(ascending=False).index)


def test_wins_agree_with_choix(votes):
    counts = sp.VoteCounts.of([vote for vote in votes if vote[2] != "tie"])
    number = {name: place for place, name in enumerate(counts.names)}
    pairs = [(number[a], number[b]) if word == "a" else (number[b], number[a]) for a, b, word in votes if word != "tie"]
    theirs = choix.ilsr_pairwise(len(number), pairs, tol=1e-13)
    ours = scores(sp.rank_votes(counts))
    assert max(abs(ours[name] - (theirs - theirs.mean())[place]) for name, place in number.items()) < 1e-6


def davidson_loss(theta: np.ndarray, votes: sp.VoteCounts) -> float:
    """From the definition of the model, pair by pair."""
    total = 0.0
    for i in range(len(votes.names)):
        for j in range(i):
            weights = [theta[i], theta[j], theta[-1] + (theta[i] + theta[j]) / 2]
            logs = np.array(weights) - np.logaddexp.reduce(weights)
            total -= votes.wins[i, j] * logs[0] + votes.wins[j, i] * logs[1] + votes.ties[i, j] * logs[2]
    return total


def test_davidson_agrees_with_a_direct_optimiser():
    votes = sp.VoteCounts.of(drawn(1, 6, 400, 0.3))
    found = scipy.optimize.minimize(davidson_loss, np.zeros(7), args=(votes,), method="BFGS", options={"gtol": 1e-7})
    theirs = found.x[:-1] - found.x[:-1].mean()
    ours = scores(sp.rank_votes(votes, ties="davidson"))
    assert max(abs(ours[name] - theirs[place]) for place, name in enumerate(votes.names)) < 1e-6


@pytest.mark.parametrize("model", [HalfWins, Davidson])
def test_derivatives_agree_with_finite_differences(model):
    votes = sp.VoteCounts.of(drawn(1, 6, 400, 0.3))
    at = model(votes.wins, votes.ties)
    rng, h = np.random.default_rng(3), 1e-5
    for size in (0.5, 8.0):
        theta = size * rng.normal(size=at.dimension)
        found = at.derivatives(theta)
        steps = h * np.eye(at.dimension)
        values = [(at.derivatives(theta + e).value - at.derivatives(theta - e).value) / (2 * h) for e in steps]
        slopes = [(at.derivatives(theta + e).gradient - at.derivatives(theta - e).gradient) / (2 * h) for e in steps]
        assert found.gradient == pytest.approx(np.array(values), rel=1e-6, abs=1e-5)
        assert found.hessian == pytest.approx(np.array(slopes), rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_intervals_cover_in_the_long_run(ties):
    """Wald's intervals at 95%, 400 draws of 8 scores from Davidson's model: 92 to 98% (false alarm < 1e-4)."""
    rng = np.random.default_rng(5)
    truth = np.linspace(-1, 1, 8)
    half = (truth[:, None] - truth[None, :]) / 2
    # With half wins the estimate converges to what fits the expected votes, which is not the truth of the model.
    chances = np.exp(np.stack([half, -half, np.full_like(half, -0.5)], axis=-1))
    chances /= chances.sum(axis=-1, keepdims=True)
    upper = np.triu_indices(8, 1)

    def matrices(outcome):
        wins, tied = np.zeros((2, 8, 8))
        wins[upper], wins.T[upper] = outcome[:, 0], outcome[:, 1]
        tied[upper] = tied.T[upper] = outcome[:, 2]
        return wins, tied

    target = fit_scores(*matrices(1e6 * chances[upper]), ties).scores
    covered = []
    for _ in range(400):
        found = fit_scores(*matrices(rng.multinomial(60, chances[upper])), ties)
        covered.append(np.abs(found.scores - target) <= 1.959964 * found.deviations)
    assert 0.92 < np.mean(covered) < 0.98
    assert np.allclose(target, truth, atol=1e-5) == (ties == "davidson")


def test_items_that_votes_do_not_connect_are_groups_of_their_own():
    votes = [("a", "b", "a"), ("b", "a", "a"), ("b", "c", "tie"), ("x", "y", "a"), ("y", "x", "a")]
    board = sp.rank_votes(sp.VoteCounts.of(votes, names=("a", "b", "c", "x", "y", "nobody")))
    assert {row.item: row.group for row in board.rows} == {"a": 1, "b": 1, "c": 1, "x": 2, "y": 2, "nobody": 3}
    assert [row.item for row in board.rows][-3:-1] == ["x", "y"]
    nobody = board.rows[-1]
    assert (nobody.score, nobody.low, nobody.high) == (None, -math.inf, math.inf)
    assert nobody.to_json()["low"] is None
    assert (nobody.rank_low, nobody.rank_high) == (1, 6)
    assert "nobody: no votes" in board.notes[0]
    assert "x, y: wins and losses do not connect them" in board.notes[1]


def test_an_item_that_won_every_vote_has_no_finite_score():
    board = sp.rank_votes(sp.VoteCounts.of([("a", "b", "a"), ("b", "a", "a"), ("new", "a", "a"), ("a", "old", "a")]))
    by_name = {row.item: row for row in board.rows}
    assert by_name["new"].score is None
    assert by_name["a"].score == pytest.approx(0.0, abs=1e-9)
    assert "new (won all), old (lost all)" in board.notes[0]
    only = sp.rank_votes(sp.VoteCounts.of([("a", "b", "a")] * 30))
    assert [row.score for row in only.rows] == [None, None]
    assert "No scores can be estimated" in only.notes[0]
    assert {row.item: row.ranks for row in only.rows} == {"a": "1", "b": "2"}


def test_a_group_tied_together_is_not_connected_in_davidsons_model():
    votes = sp.VoteCounts.of([("a", "b", "tie")] * 9 + [("a", "c", "a"), ("a", "c", "b")])
    assert {row.group for row in sp.rank_votes(votes).rows} == {1}
    assert {row.item: row.group for row in sp.rank_votes(votes, ties="davidson").rows} == {"a": 1, "c": 1, "b": 2}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"delta": 0}, "delta must lie strictly between"),
        ({"data": "random"}, "data must be one of"),
        ({"ties": "ignore"}, "ties must be one of"),
    ],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(sp.InvalidInput, match=sentence):
        sp.rank_votes(sp.VoteCounts.of([("a", "b", "a")]), **options)


def test_wrong_votes_are_refused():
    with pytest.raises(sp.InvalidInput, match="needs VoteCounts, got list"):
        sp.rank_votes([("a", "b", "a")])
    with pytest.raises(sp.InvalidInput, match="no answered vote"):
        sp.rank_votes(sp.VoteCounts.of([("a", "b", "skip")]))
    with pytest.raises(sp.InvalidInput, match="'a' is compared with itself"):
        sp.VoteCounts.of([("a", "a", "tie")])
    with pytest.raises(sp.InvalidInput, match="at most 1,000 items"):
        sp.VoteCounts.of([], names=[str(number) for number in range(1001)])
