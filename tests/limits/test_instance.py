"""KL, beta and alpha against fifty digits and more, wherever the logits are."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick.glm import probability_of_yes, variance
from surepick.limits import alpha, beta, kl_divergence

EXACT = 1e-12


def mu(v):
    return 1 / (1 + mp.exp(-v))


def reference(a: float, b: float) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """KL, beta, alpha by their definitions, with enough digits that nothing cancels."""
    with mp.workdps(750):
        x, y = mp.mpf(a), mp.mpf(b)
        if x == y:
            return mp.mpf(0), mu(x) * mu(-x) / 2, mu(x) * mu(-x)
        divergence = mp.log1p(mp.exp(y)) - mp.log1p(mp.exp(x)) - mu(x) * (y - x)
        return divergence, divergence / (y - x) ** 2, (mu(y) - mu(x)) / (y - x)


def assert_exact(a: float, b: float) -> None:
    for got, wanted in zip((kl_divergence(a, b), beta(a, b), alpha(a, b)), reference(float(a), float(b)), strict=True):
        if wanted > 1e-305:  # below, numbers lose their digits
            assert abs(mp.mpf(float(got)) / wanted - 1) < EXACT, (a, b)
        else:
            assert float(got) <= 1e-304


CORNERS = [
    (700.0, -700.0),
    (-700.0, 700.0),
    (700.0, 700.0),
    (700.0, 699.0),
    (-700.0, -600.0),
    (0.0, 0.0),
    (0.0, 1e-8),
    (-30.0, 1.0),
    (3.0, 3.0 + 1e-15),
    (-40.0, -8.0),
    (0.5, -0.5),
    (1e-300, 0.0),
    (-36.0, -5.0),
]


@pytest.mark.parametrize(("a", "b"), CORNERS)
def test_corners_are_exact(a, b):
    assert_exact(a, b)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.floats(-700, 700), st.floats(-700, 700))
def test_any_logits_are_exact(a, b):
    assert_exact(a, b)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.floats(-50, 50), st.floats(-14, 1.5), st.sampled_from([-1, 1]))
def test_nearby_logits_are_exact(a, exponent, sign):
    assert_exact(a, a + sign * 10.0**exponent)


def test_beta_is_the_integral_and_the_printed_closed_form_is_the_other_way_round():
    a, b = 3.0, -1.0
    integral = float(mp.quad(lambda u: (1 - u) * mu(a + u * (b - a)) * mu(-a - u * (b - a)), [0, 1]))
    printed = np.log1p(np.exp(-a)) - np.log1p(np.exp(-b)) - (b - a) / (np.exp(b) + 1)
    assert float(beta(a, b)) == pytest.approx(integral, rel=1e-12)
    assert printed / (b - a) ** 2 == pytest.approx(float(beta(b, a)), rel=1e-10)
    assert abs(printed / (b - a) ** 2 - integral) > 0.01


def test_arrays_broadcast_and_the_three_agree():
    a, b = np.linspace(-5, 5, 7)[:, None], np.linspace(-4, 6, 5)
    gap = b - a
    assert kl_divergence(a, b).shape == (7, 5)
    np.testing.assert_allclose(kl_divergence(a, b), gap**2 * beta(a, b), rtol=1e-13)
    np.testing.assert_allclose(alpha(a, b) * gap, probability_of_yes(b) - probability_of_yes(a), atol=1e-15)
    np.testing.assert_allclose(kl_divergence(a, b) + kl_divergence(b, a), alpha(a, b) * gap**2, rtol=1e-12)
    np.testing.assert_allclose(2 * beta(a, a), variance(a), rtol=1e-14)
