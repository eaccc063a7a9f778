"""The bench of fits, and what makes the fit fast: few passes, few iterations, no copies, counts instead of trials."""

import importlib
import json
import sys

import numpy as np
import pytest

from surepick import MissingExtra, Tally, fit
from surepick.glm import loss as model
from surepick_experiments.benches import BENCHES
from surepick_experiments.benches import runner as frame


def test_quick_bench_reports_every_case_and_peer() -> None:
    steps: list[str] = []
    rows = BENCHES["fit"](quick=True, progress=steps.append)
    assert steps == ["fit of 200 rows, d=5", "fit of 2,000 rows, d=10", "growth in trials"]
    assert len(rows) == 2 * 2 + 2
    assert {row["peer"] for row in rows[:4]} == {"scikit-learn newton-cholesky", "statsmodels GLM"}
    for row in rows:
        assert row["ratio"] == row["ours_seconds"] / row["peer_seconds"] > 0
    for row in rows[:4]:  # all are at the optimum, up to rounding
        assert max(row["ours_gradient_norm"], row["peer_gradient_norm"]) < 1e-7
    assert rows[4]["ratio"] == 1.0
    assert rows[4]["iterations"] == rows[5]["iterations"]
    json.dumps(rows)


def test_rivals_run_in_turn_and_the_fastest_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now, order = [0.0], list[str]()
    durations = {"slow": iter([5.0, 4.0, 6.0]), "fast": iter([1.0, 2.0, 3.0]), "endless": iter([21.0])}
    monkeypatch.setattr(frame.time, "perf_counter", lambda: now[0])

    def rival(name: str) -> None:
        order.append(name)
        now[0] += next(durations[name])

    names = list(durations)
    best = frame.best_seconds({name: lambda name=name: rival(name) for name in names}, repeats=3)
    assert best == {"slow": 4.0, "fast": 1.0, "endless": 21.0}
    assert order == [*names, "slow", "fast", "slow", "fast"]


def test_peak_bytes_sees_arrays_held_at_once() -> None:
    assert 2e6 <= frame.peak_bytes(lambda: (np.ones(125_000), np.ones(125_000))) < 2.1e6


def test_long_data_are_fitted_in_few_passes_and_without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(200_000, 10))
    answers = (rng.random(len(vectors)) < model.probability_of_yes(vectors @ np.full(10, 0.5))).astype(int)
    data = vectors.nbytes + answers.nbytes
    passes: list[int] = []

    def counted(rows: np.ndarray, *others: np.ndarray) -> model.Derivatives:
        passes.append(len(rows))
        return model.derivatives(rows, *others)

    # Of the module: `surepick.glm.fit` as an attribute is the function.
    monkeypatch.setattr(importlib.import_module("surepick.glm.fit"), "derivatives", counted)
    multiple = 1 + frame.peak_bytes(lambda: fit(Tally.from_answers(vectors, answers))) / data
    assert multiple <= 2.0
    assert sum(passes) <= 5.5 * len(vectors)
    # Copies would have been seen.
    assert 1 + frame.peak_bytes(lambda: (vectors.copy(), vectors.copy())) / data > 2.0


def test_long_data_with_repeated_columns_take_one_copy() -> None:
    rng = np.random.default_rng(8)
    vectors = rng.normal(size=(100_000, 8))
    vectors[:, 7] = vectors[:, 0] - 3 * vectors[:, 1]
    answers = rng.integers(0, 2, size=len(vectors))
    fits = []
    peak = frame.peak_bytes(lambda: fits.append(fit(Tally.from_answers(vectors, answers))))
    assert fits[0].span.rank == 7
    assert 1 + peak / (vectors.nbytes + answers.nbytes) <= 3.0


def test_iterations_do_not_grow_with_trials() -> None:
    rng = np.random.default_rng(6)
    vectors = rng.normal(size=(300, 8))
    chance = model.probability_of_yes(vectors @ rng.normal(size=8) * 0.7)
    iterations = [
        fit(Tally(vectors, np.full(300, each), rng.binomial(each, chance))).iterations
        for each in (20, 2_000, 2_000_000)
    ]
    assert max(iterations) <= 7
    assert max(iterations) - min(iterations) <= 1


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_heavy_tails_and_large_logits_need_few_iterations(scale: float) -> None:
    rng = np.random.default_rng(7)
    vectors = rng.standard_t(1.2, size=(3_000, 6))  # some logits in the thousands
    chance = model.probability_of_yes(vectors @ np.full(6, 0.3 * scale))
    result = fit(Tally(vectors, np.full(3_000, 10), rng.binomial(10, chance)))
    assert result.converged
    assert result.iterations <= 20


def test_without_peers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.genmod.families", None)
    with pytest.raises(MissingExtra, match=r"surepick\[sklearn\]"):
        BENCHES["fit"](quick=True)
