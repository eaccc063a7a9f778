"""The search bound against the best possible search of small families, by enumeration of all ways to ask."""

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.glm import probability_of_yes
from surepick.limits import kappa_family, search_bound
from surepick.limits.search_bound import right_answers


def best_share(p: np.ndarray, belief: np.ndarray, questions: int) -> float:
    """The largest chance of the right answer after that many questions, over all adaptive ways to ask."""
    if questions == 0:
        return float(belief.max())
    return max(
        best_share(p, belief * p[:, x], questions - 1) + best_share(p, belief * (1 - p[:, x]), questions - 1)
        for x in range(p.shape[1])
    )


def hidden(count: int, no: float, yes: float) -> np.ndarray:
    """One of many items gets a yes with another probability than the others."""
    return np.full((count, count), no) + (yes - no) * np.eye(count)


@pytest.mark.parametrize("seed", range(6))
def test_no_search_is_right_more_often(seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, size=(4, 3)) if seed % 2 else rng.choice([0.0, 0.3, 0.5, 1.0], size=(4, 3))
    counts = np.arange(6)
    exact = [best_share(p, np.full(4, 0.25), int(count)) for count in counts]
    assert np.all(exact <= right_answers(p, counts.astype(float)) + 1e-12)


def test_a_hidden_item_is_found_no_sooner_and_half_the_bound_is_refuted():
    """Where answers are certain the bound is exact: after T questions T + 1 items are ruled out or found."""
    p, counts = hidden(6, 0.0, 1.0), np.arange(5)
    exact = np.array([best_share(p, np.full(6, 1 / 6), int(count)) for count in counts])
    found = right_answers(p, counts.astype(float))
    assert exact == pytest.approx(found)
    assert np.any(exact > (1 + counts / 2) / 6)  # the negative control: half the growth is too little


def test_the_sum_over_questions_is_right_in_closed_form():
    """Certain answers: P(τ > T) ≥ 1 − δ − (1 + T)/M, summed."""
    terms = np.maximum(1 - 0.05 - (1 + np.arange(3000)) / 3000, 0)
    assert search_bound(hidden(3000, 0.0, 1.0), delta=0.05) == pytest.approx(terms.sum(), rel=2e-3)
    assert search_bound(hidden(3000, 0.0, 1.0), delta=0.05) <= terms.sum() * (1 + 1e-9)


def test_little_information_costs_many_questions_and_blocks_stay_below_the_sum():
    """A hundredth of the difference needs ten thousand times as many."""
    far, near = (search_bound(hidden(20, 0.5, 0.5 + step)) for step in (0.1, 0.001))
    assert 9_000 < near / far < 11_000


def test_it_is_several_times_the_printed_bound_of_the_hidden_family():
    family = kappa_family(40)
    chances = probability_of_yes(family.thetas @ family.items.T)
    assert search_bound(chances) > 5 * 40 / 16


@pytest.mark.parametrize(
    ("chances", "sentence"),
    [([[0.5, 1.2], [0.1, 0.2]], "chances must be probabilities, got 1.2"), ([[0.5, 0.2]], "at least two instances")],
)
def test_what_is_no_family_is_refused(chances, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        search_bound(chances)
