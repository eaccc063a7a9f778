"""Which items an estimate excludes."""

import math

import numpy as np
import pytest

from surepick.identify.staged.elimination import shortfall, surviving
from surepick.identify.staged.stage_bounds import StageEstimate
from surepick.linalg import Span, factor


def test_elimination_is_the_rule_over_all_pairs() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(200, 4))
    shape = factor(np.diag([1.0, 2.0, 0.5, 3.0]))
    assert shape is not None
    estimate = StageEstimate(rng.normal(size=4), Span(4, 4, None), shape, 0.7)
    alive = np.sort(rng.choice(200, size=150, replace=False))
    score = points @ estimate.theta
    inverse = np.linalg.inv(np.diag([1.0, 2.0, 0.5, 3.0]))
    expected = []
    for z in alive:
        away = points[alive] - points[z]
        width = 0.7 * np.sqrt(np.einsum("ij,jk,ik->i", away, inverse, away))
        if not np.any(score[alive] - score[z] > width):
            expected.append(int(z))
    assert surviving(points, alive, estimate).tolist() == expected
    leader, bound = shortfall(points, alive, estimate)
    away = points[alive] - points[leader]
    width = 0.7 * np.sqrt(np.einsum("ij,jk,ik->i", away, inverse, away))
    assert bound == pytest.approx(float(np.max(score[alive] - score[leader] + width)))


def test_a_difference_that_was_not_asked_about_excludes_nobody() -> None:
    shape = factor(np.array([[1e6]]))
    assert shape is not None
    span = Span(2, 1, np.array([[1.0], [0.0]]))
    estimate = StageEstimate(np.array([5.0, 0.0]), span, shape, 1.0)
    points = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    assert surviving(points, np.arange(3), estimate).tolist() == [0, 2]
    assert shortfall(points, np.arange(3), estimate)[1] == math.inf
    assert shortfall(points, np.arange(2), estimate)[1] < 1.0
