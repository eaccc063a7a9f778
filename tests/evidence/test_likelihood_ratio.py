"""The one likelihood-ratio evidence: its process has mean one, its function of θ is what the docs write."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import sigmoid
from surepick import Tally
from surepick.evidence.likelihood_ratio import (
    RIDGES,
    Evidence,
    PlugIn,
    evidence_from_batches,
    predicted,
    ridge_experts,
)
from surepick.glm.loss import probability_of_yes, softplus

SEEDS = st.integers(0, 2**32 - 1)
ROWS = np.array([[1.0, 0.0], [0.6, 0.8], [-0.5, 1.0]])
ALL = np.arange(3)


def some_process(seed: int, stages: int = 4, kept: int | None = None) -> PlugIn:
    """A few stages with arbitrary predictions; restarts at the first, second and fourth."""
    rng = np.random.default_rng(seed)
    process = PlugIn(np.zeros(3), np.zeros(3), kept=kept)
    for stage in range(stages):
        pulls = rng.integers(1, 9, size=3).astype(float)
        wins = np.floor(rng.uniform(size=3) * (pulls + 1))
        process = process.after(
            ALL, pulls, wins, rng.normal(size=(len(RIDGES), 3)), restart=stage in (0, 1, 3), missing=np.zeros(3)
        )
    return process


def test_the_evidence_is_the_formula_of_the_docs(rng):
    """docs/anytime.md, section 1, written out answer by answer."""
    stages = [(np.array([2.0, 0, 1]), np.array([1.0, 0, 1])), (np.array([0.0, 3, 1]), np.array([0.0, 1, 0]))]
    predictions = rng.normal(size=(2, len(RIDGES), 3))
    process = PlugIn(np.zeros(3), np.zeros(3))
    for (pulls, wins), logits in zip(stages, predictions, strict=True):
        process = process.after(ALL, pulls, wins, logits, restart=True, missing=np.zeros(3))
    theta = rng.normal(size=2)

    def log_probability(logits: np.ndarray, stage: int) -> float:
        pulls, wins = stages[stage]
        return -float(wins @ softplus(-logits) + (pulls - wins) @ softplus(logits))

    total = 0.0
    for j, weight in ((0, 1 / 2), (1, 1 / 6)):
        own = sum(log_probability(ROWS @ theta, stage) for stage in range(j, 2))
        experts = [
            sum(log_probability(predictions[stage][e], stage) for stage in range(j, 2)) for e in range(len(RIDGES))
        ]
        total += weight * float(np.mean(np.exp(np.array(experts) - own)))
    found = Evidence.of(process, ROWS).log_evidence(theta[None, :])[0]
    assert found == pytest.approx(math.log(total), abs=1e-12)


@pytest.mark.parametrize("peek", [False, True])
def test_the_mean_under_the_truth_is_the_weight_begun(peek):
    """All answers to two stages enumerated; experts that have seen the answers would exceed one."""
    theta = np.array([0.7, -1.2])
    experts = np.zeros((len(RIDGES), 2))
    mean = 0.0
    for answers in itertools.product((0.0, 1.0), repeat=6):
        process, probability = PlugIn(np.zeros(3), np.zeros(3)), 1.0
        for stage in (0, 1):
            wins = np.array(answers[3 * stage : 3 * stage + 3])
            seen = (process.pulls + 1, process.wins + wins) if peek else (process.pulls, process.wins)
            logits = (
                predicted(ROWS, seen[0], ridge_experts(ROWS, *seen, experts), ROWS)
                if seen[0].any()
                else np.zeros((len(RIDGES), 3))
            )
            process = process.after(ALL, np.ones(3), wins, logits, restart=stage == 0, missing=np.zeros(3))
            for row, answer in zip(ROWS, wins, strict=True):
                yes = sigmoid(float(row @ theta))
                probability *= yes if answer else 1 - yes
        mean += probability * math.exp(Evidence.of(process, ROWS).log_evidence(theta[None, :])[0])
    if peek:
        assert mean > 0.6
    else:
        assert mean == pytest.approx(1 / 2, abs=1e-12)


def test_a_missing_answer_is_charged_the_worse_of_the_two(rng):
    logits = rng.normal(size=(len(RIDGES), 3))
    start = PlugIn(np.zeros(3), np.zeros(3))

    def scores(pulls: list[float], wins: list[float], missing: list[float]) -> np.ndarray:
        counts = (np.array(pulls), np.array(wins))
        return start.after(ALL, *counts, logits, restart=True, missing=np.array(missing)).scores

    charged = scores([0, 0, 0], [0, 0, 0], [1, 0, 0])
    either = [scores([1, 0, 0], [win, 0, 0], [0, 0, 0]) for win in (0, 1)]
    np.testing.assert_allclose(charged, np.minimum(*either), rtol=1e-14)


@settings(max_examples=20)
@given(SEEDS)
def test_dropping_old_restarts_only_loses_evidence(seed):
    theta = np.random.default_rng(seed).normal(size=(5, 2))
    everything = Evidence.of(some_process(seed), ROWS)
    latest = Evidence.of(some_process(seed, kept=2), ROWS)
    assert len(latest.offsets) == 2
    np.testing.assert_allclose(latest.terms(theta), everything.terms(theta)[:, 1:], rtol=1e-14)
    assert np.all(latest.log_evidence(theta) < everything.log_evidence(theta))


@settings(max_examples=20)
@given(SEEDS)
def test_a_minorant_is_below_and_touches_where_its_shares_are_those_of_the_evidence(seed):
    rng = np.random.default_rng(seed)
    evidence = Evidence.of(some_process(seed), ROWS)
    theta = rng.normal(size=(1, 2))
    terms = evidence.terms(theta)
    below = evidence.mixed(np.exp(terms - evidence.log_evidence(theta)[:, None]))
    assert below.values(theta)[0] == pytest.approx(evidence.log_evidence(theta)[0], abs=1e-10)
    for _ in range(10):
        other = 3 * rng.normal(size=(1, 2))
        assert below.values(other)[0] <= evidence.log_evidence(other)[0] + 1e-10


def test_a_vector_asked_in_several_batches_of_a_group_counts_each_time():
    """In groups of many small batches the same vector occurs again and again."""
    batches = [Tally([[1.0, 0.0]], [1], [1]) for _ in range(40)] + [Tally([[0.0, 1.0]], [2], [1])]
    _, evidence = evidence_from_batches(batches, np.random.default_rng(0))
    assert evidence.pulls[0].sum() == 42
    assert evidence.wins[0].sum() == 41


def test_predictions_are_less_extreme_than_fits_and_the_less_so_the_more_answers(rng):
    pulls = np.array([3.0, 3.0, 3.0])
    fits = ridge_experts(ROWS, pulls, np.array([3.0, 0.0, 1.0]), np.zeros((len(RIDGES), 2)))
    few, many = (np.abs(predicted(ROWS, factor * pulls, fits, ROWS)) for factor in (1, 1000))
    plain = np.abs(fits @ ROWS.T)
    assert np.all(few < many)
    assert np.all(many < plain)
    assert np.all(probability_of_yes(many) > 0.5)
