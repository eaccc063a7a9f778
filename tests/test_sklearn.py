"""The scikit-learn classifier: its contract, its fit against scikit-learn's own, and its intervals."""

import importlib
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from surepick import FitStatus, InvalidInput, MissingExtra
from surepick.baselines import interval_wald
from surepick.confidence import in_given_order, interval_anytime, interval_corrected
from surepick.sklearn import LARGEST_SEPARATED_LOGIT, LogisticModel

SEPARABLE = np.array([[-2.0, 1.0], [-1.0, 0.5], [1.0, 0.0], [2.0, -1.0]]), np.array([0, 0, 1, 1])


def clicks(count: int = 600, repeats: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(count // repeats, 3)).repeat(repeats, axis=0)
    chance = 1 / (1 + np.exp(-(rows @ [0.8, -0.5, 0.0] + 0.3)))
    return rows, (rng.random(count) < chance).astype(int)


# Most of these checks fit separable toy data, where the warning is right.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        LogisticModel(),
        LogisticModel(ridge=0.5, data="fixed"),
        LogisticModel(fit_intercept=False, norm_bound=5.0),
    ]
)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def test_agrees_with_scikit_learn_without_penalty() -> None:
    rows, answers = clicks()
    peer = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10).fit(rows, answers)
    ours = LogisticModel().fit(rows, answers)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-7)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(rows), peer.predict_proba(rows), rtol=1e-7)
    assert 0 < ours.n_iter_ < 10


def test_ridge_is_the_inverse_of_c() -> None:
    rows, answers = clicks()
    peer = LogisticRegression(C=1 / 30, solver="newton-cholesky", tol=1e-10, fit_intercept=False).fit(rows, answers)
    ours = LogisticModel(ridge=30.0, fit_intercept=False).fit(rows, answers)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-7)


def test_ridge_penalises_the_intercept_as_a_constant_feature() -> None:
    rows, answers = clicks()
    inside = LogisticModel(ridge=30.0).fit(rows, answers)
    beside = LogisticModel(ridge=30.0, fit_intercept=False).fit(np.column_stack([rows, np.ones(len(rows))]), answers)
    np.testing.assert_allclose(np.r_[inside.coef_[0], inside.intercept_], beside.coef_[0], rtol=1e-12)


def test_weights_are_repeat_counts() -> None:
    rows, answers = clicks(80)
    weights = np.random.default_rng(2).integers(0, 4, size=len(rows))
    weighted = LogisticModel(data="fixed").fit(rows, answers, sample_weight=weights.astype(float))
    repeated = LogisticModel(data="fixed").fit(rows.repeat(weights, axis=0), answers.repeat(weights))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    ends = [model.predict_interval(rows[:5], method="wald") for model in (weighted, repeated)]
    np.testing.assert_allclose(*ends, rtol=1e-7)
    assert weighted.answers_.total == weights.sum()


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([0.5, 1, 1, 1], r"whole numbers from 0 to 2\^53, got 0\.5 at row 0"),
        ([1, 1, -2, 1], "got -2 at row 2"),
        ([1, 1, np.nan, 1], "got nan at row 2"),
        ([1, 1], "list of 4 counts"),
        ([0, 0, 0, 0], "Every sample_weight is zero"),
        ([0, 0, 1, 1], r"got one class \(1\)"),
    ],
)
def test_unusable_weights_get_a_sentence(weights: list[float], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        LogisticModel().fit(*SEPARABLE, sample_weight=weights)


def test_more_than_two_classes_get_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="multiclass, with 3 classes"):
        LogisticModel().fit(SEPARABLE[0], ["a", "b", "c", "a"])


def test_classes_may_be_words() -> None:
    rows, answers = clicks()
    model = LogisticModel().fit(rows, np.where(answers == 1, "yes", "no"))
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.predict(rows) == "yes", model.predict_proba(rows)[:, 1] > 0.5)


@pytest.mark.parametrize("data", ["adaptive", "fixed"])
def test_separable_data_warn_cap_and_have_infinite_intervals(data: Any) -> None:
    rows, answers = SEPARABLE
    with pytest.warns(ConvergenceWarning, match="A direction separates the ones from the zeros"):
        model = LogisticModel(data=data).fit(rows, answers)
    assert model.fit_.status is FitStatus.SEPARATED
    np.testing.assert_array_equal(model.predict(rows), answers)
    logits = np.abs(model.decision_function(rows))
    assert 1 < logits.max() <= LARGEST_SEPARATED_LOGIT * (1 + 1e-9)
    with pytest.warns(UserWarning, match="A direction separates"):
        low, high = model.predict_interval(rows)
    assert (low == 0).all()
    assert (high == 1).all()
    with pytest.warns(UserWarning, match="A direction separates"):
        low, high = model.predict_interval(rows, scale="log-odds")
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


def test_capped_predictions_do_not_depend_on_units() -> None:
    rows, answers = SEPARABLE
    with pytest.warns(ConvergenceWarning):
        one = LogisticModel(fit_intercept=False).fit(rows, answers).predict_proba(rows)
    with pytest.warns(ConvergenceWarning):
        other = LogisticModel(fit_intercept=False).fit(rows * 1e6, answers).predict_proba(rows * 1e6)
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_ridge_and_norm_bound_settle_separable_data_without_a_warning() -> None:
    for model in (LogisticModel(ridge=0.1), LogisticModel(norm_bound=2.0)):
        model.fit(*SEPARABLE)
        assert model.fit_.converged
    assert np.hypot(np.linalg.norm(model.coef_), model.intercept_[0]) == pytest.approx(2.0)


def test_intervals_are_those_of_the_confidence_package() -> None:
    rows, answers = clicks(4_000, repeats=200)
    points = np.random.default_rng(3).normal(size=(3, 3))
    design = np.column_stack([points, np.ones(3)])
    fixed = LogisticModel(data="fixed", norm_bound=2.0).fit(rows, answers)
    adaptive = LogisticModel().fit(rows, answers)
    tally, seed = fixed.answers_, fixed.order_seed_
    for model, method, expected in (
        (fixed, "auto", interval_corrected(tally, design, delta=0.2, data="fixed", norm_bound=2.0, order_seed=seed)),
        (fixed, "anytime", interval_anytime(tally, design, delta=0.2, data="fixed", order_seed=seed)),
        (adaptive, "auto", interval_anytime(in_given_order(tally), design, delta=0.2)),
        (adaptive, "wald", interval_wald(tally, design, delta=0.2)),
    ):
        low, high = model.predict_interval(points, delta=0.2, method=method, scale="log-odds")
        assert np.isfinite(high - low).all()
        np.testing.assert_allclose([low, high], [expected.low, expected.high], rtol=1e-6)
        bottom, top = model.predict_interval(points, delta=0.2, method=method)
        np.testing.assert_allclose([bottom, top], 1 / (1 + np.exp(-np.array([low, high]))))
        centre = adaptive.predict_proba(points)[:, 1]
        assert ((bottom < centre) & (centre < top)).all()


def test_ridge_moves_predictions_but_not_intervals() -> None:
    rows, answers = clicks()
    plain, ridge = LogisticModel().fit(rows, answers), LogisticModel(ridge=100.0).fit(rows, answers)
    assert np.abs(plain.coef_ - ridge.coef_).max() > 0.05
    for method in ("auto", "wald"):
        np.testing.assert_allclose(
            plain.predict_interval(rows[:2], method=method), ridge.predict_interval(rows[:2], method=method)
        )


def test_with_too_little_data_the_anytime_interval_stands_in_and_the_reason_is_given() -> None:
    rows, answers = clicks(60)
    model = LogisticModel(data="fixed").fit(rows, answers)
    with pytest.warns(UserWarning, match="the theorem needs"):
        low, high = model.predict_interval(rows[:2])
    assert np.all((low > 0) & (high < 1) & (low < high))
    estimate = model.predict_proba(rows[:2])[:, 1]
    assert np.all((low < estimate) & (estimate < high))


def test_a_point_outside_the_span_has_an_infinite_interval() -> None:
    rows, answers = clicks()
    doubled = np.column_stack([rows, rows[:, 0]])
    model = LogisticModel().fit(doubled, answers)
    with pytest.warns(UserWarning, match="1 of 2 queries lie outside the span"):
        low, high = model.predict_interval([[1, 0, 0, 1], [1, 0, 0, 2]], method="wald")
    assert high[0] - low[0] < 0.5
    assert (low[1], high[1]) == (0, 1)


def test_bad_options_get_a_sentence() -> None:
    rows, answers = clicks(100)
    model = LogisticModel().fit(rows, answers)
    for options, sentence in (
        ({"method": "exact"}, "method must be one of .*got 'exact'"),
        ({"scale": "odds"}, "scale must be one of .*got 'odds'"),
        ({"delta": 1.5}, "delta must lie strictly between 0 and 1, got 1.5"),
        ({"method": "corrected"}, "got data='adaptive'; use method='anytime'"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            model.predict_interval(rows, **options)
    for parameters, sentence in (
        ({"ridge": -1.0}, "ridge must not be negative, got -1.0"),
        ({"norm_bound": 0.0}, "norm_bound must be greater than 0"),
        ({"data": "random"}, "data must be one of 'adaptive', 'fixed', got 'random'"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            LogisticModel(**parameters).fit(rows, answers)


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "surepick.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(MissingExtra, match=r"surepick\[sklearn\]"):
        importlib.import_module("surepick.sklearn")
