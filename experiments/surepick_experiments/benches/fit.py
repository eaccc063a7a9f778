"""The fit against scikit-learn and statsmodels at equal gradient norm, and its growth in rows, columns and trials."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.errors import MissingExtra
from surepick.glm import Fit, Tally, fit, probability_of_yes
from surepick_experiments.benches.runner import Progress, Row, best_seconds, compared, peak_bytes, silent

Peer = Callable[[Floats, Integers, float], Floats]
"""Rows, answers and the peer's own tolerance to an estimate."""

PEER_TOLERANCES = tuple(10.0**-exponent for exponent in range(6, 17, 2))

LONG_BYTES = 10**8
"""Memory is reported as a multiple of the data where these are longer than that; below, fixed costs dominate."""

SIZES = ((200, 5), (1_000, 25), (10_000, 25), (100_000, 5), (100_000, 25), (100_000, 100), (1_000_000, 25))
QUICK_SIZES = ((200, 5), (2_000, 10))


def bench_fit(*, quick: bool = False, seed: int = 0, progress: Progress = silent) -> list[Row]:
    """Time fits of distinct rows against each peer, and fits of counts against the fewest trials.

    A peer's tolerance is tightened until its gradient is as short as ours, or short enough to meet our tolerance for
    sure, or as short as the peer gets; the rows report both lengths. Ours includes building and checking the tally.
    """
    rng = np.random.default_rng(seed)
    peers = _peers()
    rows: list[Row] = []
    for size in QUICK_SIZES if quick else SIZES:
        progress(f"fit of {size[0]:,} rows, d={size[1]}")
        rows += _against_peers(*_answers(rng, *size), peers, quick)
    progress("growth in trials")
    return rows + _growth_in_trials(rng, quick)


def _against_peers(vectors: Floats, answers: Integers, peers: dict[str, Peer], quick: bool) -> list[Row]:
    def ours() -> Fit:
        return fit(Tally.from_answers(vectors, answers))

    tally = Tally.from_answers(vectors, answers)
    result = ours()
    norm = _gradient_norm(tally, result.theta)
    # A gradient this short is within 1e-9 standard deviations of the optimum; ours is often shorter by luck.
    enough = 1e-9 * float(np.sqrt(np.linalg.eigvalsh(result.information)[0]))
    matched = {name: _matched(peer, tally, answers, max(norm, enough)) for name, peer in peers.items()}
    rivals: dict[str, Callable[[], object]] = {"surepick": ours}
    rivals |= {name: found.run for name, found in matched.items()}
    repeats = 2 if quick else int(np.clip(2e8 / vectors.size, 5, 30))
    seconds = best_seconds(rivals, repeats=repeats)
    more: Row = {"ours_gradient_norm": norm, "iterations": result.iterations}
    data = vectors.nbytes + answers.nbytes
    if data > LONG_BYTES:
        more["memory_multiple"] = 1.0 + peak_bytes(ours) / data
    return [
        compared(
            f"{len(vectors):,} rows, d={vectors.shape[1]}",
            seconds["surepick"],
            name,
            seconds[name],
            **more,
            peer_gradient_norm=found.norm,
            peer_tolerance=found.tolerance,
        )
        for name, found in matched.items()
    ]


def _growth_in_trials(rng: np.random.Generator, quick: bool) -> list[Row]:
    """The same vectors asked ever more often, against the fewest trials."""
    count, dimension = (200, 5) if quick else (5_000, 25)
    trials = (10**4, 10**6) if quick else (10**5, 10**6, 10**7, 10**8)
    vectors, theta = _design(rng, count, dimension)
    tallies = {}
    for total in trials:
        pulls = np.full(count, total // count)
        tallies[_spoken(total)] = Tally(vectors, pulls, rng.binomial(pulls, probability_of_yes(vectors @ theta)))
    seconds = best_seconds({name: partial(fit, tally) for name, tally in tallies.items()}, repeats=2 if quick else 100)
    least = _spoken(trials[0])
    return [
        compared(
            f"{name} trials on {count:,} vectors, d={dimension}",
            seconds[name],
            f"surepick on {least} trials",
            seconds[least],
            iterations=fit(tally).iterations,
        )
        for name, tally in tallies.items()
    ]


@dataclass(frozen=True)
class _Matched:
    """A peer at the tolerance that brings its gradient down to ours, or closest to it."""

    run: Callable[[], object]
    tolerance: float
    norm: float


def _matched(peer: Peer, tally: Tally, answers: Integers, target: float) -> _Matched:
    tried: list[_Matched] = []
    for tolerance in PEER_TOLERANCES:

        def run(tolerance: float = tolerance) -> Floats:
            with warnings.catch_warnings():  # peers warn where rounding keeps them from going further
                warnings.simplefilter("ignore")
                return peer(tally.vectors, answers, tolerance)

        tried.append(_Matched(run, tolerance, _gradient_norm(tally, run())))
        if tried[-1].norm <= target:
            break
    return min(tried, key=lambda matched: matched.norm)


def _peers() -> dict[str, Peer]:
    try:
        from sklearn.linear_model import LogisticRegression
        from statsmodels.genmod.families import Binomial
        from statsmodels.genmod.generalized_linear_model import GLM
    except ImportError as error:
        raise MissingExtra(
            "The bench of fits compares with scikit-learn and statsmodels, which are not both installed; "
            "run: pip install 'surepick[sklearn]' statsmodels."
        ) from error

    def newton_cholesky(vectors: Floats, answers: Integers, tolerance: float) -> Floats:
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", fit_intercept=False, tol=tolerance)
        return np.asarray(model.fit(vectors, answers).coef_[0])

    def glm(vectors: Floats, answers: Integers, tolerance: float) -> Floats:
        return np.asarray(GLM(answers, vectors, family=Binomial()).fit(tol=tolerance).params)

    return {"scikit-learn newton-cholesky": newton_cholesky, "statsmodels GLM": glm}


def _answers(rng: np.random.Generator, count: int, dimension: int) -> tuple[Floats, Integers]:
    vectors, theta = _design(rng, count, dimension)
    return vectors, (rng.random(count) < probability_of_yes(vectors @ theta)).astype(np.int64)


def _design(rng: np.random.Generator, count: int, dimension: int) -> tuple[Floats, Floats]:
    """Gaussian vectors and a truth under which the log-odds have a standard deviation of two."""
    theta = rng.normal(size=dimension)
    return rng.normal(size=(count, dimension)), 2.0 * theta / float(np.linalg.norm(theta))


def _gradient_norm(tally: Tally, theta: Floats) -> float:
    return float(np.linalg.norm(tally.gradient(theta)))


def _spoken(count: int) -> str:
    return f"10^{round(np.log10(count))}"
