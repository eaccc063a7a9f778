"""The compiled inner loops against their NumPy reference, and both against the mathematics."""

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

from surepick.baselines.loss_set import LossSet
from surepick.contextual import estimate, numerics, plain
from surepick.registry import NAMES, policy_by_name
from surepick_experiments.worlds.contextual import ball_world

compiled = pytest.importorskip("surepick.contextual.compiled")

BOTH = pytest.mark.parametrize("kernels", [plain, compiled], ids=["numpy", "numba"])


def data(seed=0, n=60, d=3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) / math.sqrt(d)
    theta = rng.normal(size=d)
    answers = (rng.random(n) < 1 / (1 + np.exp(-rows @ theta))).astype(float)
    return rng, rows, answers, theta


@BOTH
def test_newton_reaches_the_minimum_of_the_penalised_loss(kernels):
    rng, rows, answers, _ = data()
    weights = rng.random(len(rows))
    theta, loss, gradient, information, decrement = kernels.newton(rows, answers, weights, np.zeros(3), 0.3, 1e-9, 50)
    assert decrement <= 1e-9
    assert np.allclose(gradient + 0.3 * theta, 0, atol=1e-8)
    by_hand = np.sum(weights * (np.logaddexp(0, rows @ theta) - answers * (rows @ theta)))
    assert loss == pytest.approx(by_hand, rel=1e-12)
    step = 1e-5
    for i in range(3):
        moved = theta + step * np.eye(3)[i]
        slope = rows.T @ (weights * (1 / (1 + np.exp(-rows @ moved)) - answers))
        assert (slope - gradient) / step == pytest.approx(information[i], rel=1e-3, abs=1e-4)


@BOTH
def test_newton_survives_separated_answers_and_extreme_rows(kernels):
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [30.0, 30.0]])
    theta, loss, *_ = kernels.newton(rows, np.ones(3), np.ones(3), np.zeros(2), 1e-6, 1e-6, 100)
    assert np.isfinite(theta).all()
    assert loss < 0.01


@BOTH
def test_rank_one_updates_keep_the_inverse(kernels):
    rng, rows, *_ = data()
    matrix = np.eye(3) * 0.5
    inverse = kernels.inverse(matrix)
    information, other = matrix.copy(), inverse.copy()
    gained = 0.0
    for row in rows:
        weight = float(rng.random())
        matrix = matrix + weight * np.outer(row, row)
        kernels.add_outer(inverse, row, weight)
        gained += kernels.add_information(information, other, row, weight)
    assert np.allclose(inverse @ matrix, np.eye(3), atol=1e-10)
    assert np.allclose(information, matrix)
    assert gained == pytest.approx(np.linalg.slogdet(matrix)[1] - 3 * math.log(0.5), rel=1e-10)
    assert np.isnan(kernels.inverse(np.zeros((2, 2)))).all()


@BOTH
def test_curvature_is_the_best_quadratic_below_the_loss(kernels):
    rng = np.random.default_rng(1)
    logits, reaches = rng.normal(size=300) * 3, 10 ** rng.uniform(-4, 1.3, size=300)
    found = kernels.curvatures(logits, reaches)
    for v, reach, c in zip(logits, reaches, found, strict=True):
        z = np.linspace(-reach, reach, 41)
        mean = 1 / (1 + np.exp(-v))
        excess = np.logaddexp(0, v + z) - np.logaddexp(0, v) - mean * z
        assert (excess - c * z * z / 2 >= -1e-13 * (1 + abs(v))).all()
        if reach > 0.05:  # and none larger would do
            assert (excess - 1.01 * c * z * z / 2 < 0).any()


@BOTH
def test_minorants_lie_below_the_loss_inside_the_ellipsoid(kernels):
    rng, rows, answers, _ = data(n=30)
    anchor, gradient, inverse, centre = rng.normal(size=3) * 0.3, np.zeros(3), np.eye(3), np.zeros(3)
    radius = 2.0
    total = 0.0
    points = rng.normal(size=(200, 3))
    points *= radius / np.linalg.norm(points, axis=1)[:, None] * rng.random((200, 1))
    inside = np.ones(200, dtype=bool)
    for row, answer in zip(rows, answers, strict=True):
        inside &= np.linalg.norm(np.linalg.solve(np.linalg.cholesky(inverse), (points - centre).T), axis=0) <= radius
        total += kernels.add_minorant(anchor, gradient, inverse, centre, radius, row, answer)
    quadratic = np.linalg.inv(inverse) - np.eye(3)
    for point in points[inside]:
        u = point - anchor
        exact = float(np.sum(np.logaddexp(0, rows @ point) - answers * (rows @ point)))
        assert total + gradient @ u + u @ quadratic @ u / 2 <= exact + 1e-9
    assert inside.sum() > 10


@BOTH
def test_one_pass_quadratic_tracks_its_own_minimum(kernels):
    _, rows, answers, _ = data(n=25)
    centre, inverse, floor = np.zeros(3), np.eye(3), 0.0
    terms = []
    for row, answer in zip(rows, answers, strict=True):
        before = centre.copy()
        v = float(row @ before)
        reach = min(3.0, 1.5 * math.sqrt(float(row @ inverse @ row)))
        curve = float(plain.curvatures(np.array(v), np.array(reach)))
        terms.append((row, before, np.logaddexp(0, v) - answer * v, 1 / (1 + math.exp(-v)) - answer, curve))
        floor += kernels.lowered(centre, inverse, 1.5, 3.0, row, answer)

    def value(point):
        return point @ point / 2 + sum(
            loss + slope * (row @ (point - at)) + curve * (row @ (point - at)) ** 2 / 2
            for row, at, loss, slope, curve in terms
        )

    assert value(centre) == pytest.approx(floor, rel=1e-9)
    assert minimize(value, centre + 0.1).fun == pytest.approx(floor, rel=1e-6)


@BOTH
def test_support_is_the_largest_score_in_the_set(kernels):
    _, rows, answers, _ = data(n=80)
    ridge, direction = 0.2, np.array([0.3, -0.8, 0.5])
    weights = np.ones(len(rows))
    start, loss, _, information, _ = kernels.newton(rows, answers, weights, np.zeros(3), ridge, 1e-10, 50)
    inverse = kernels.inverse(information + ridge * np.eye(3))
    ceiling = loss + ridge / 2 * start @ start + 6.0
    found = kernels.support(rows, answers, ridge, start, direction, inverse, ceiling)

    def excess(theta):
        logits = rows @ theta
        return ceiling - np.sum(np.logaddexp(0, logits) - answers * logits) - ridge / 2 * theta @ theta

    exact = minimize(
        lambda theta: -direction @ theta,
        start,
        constraints={"type": "ineq", "fun": excess},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert exact.success
    best = float(direction @ exact.x)
    assert best - 1e-6 <= found <= best + 0.01 * (best - direction @ start)


def test_a_loss_set_bounds_scores_over_the_ball_as_well():
    """Never below the maximum over {loss ≤ ceiling, ‖θ‖ ≤ S}, and far closer to it than without the ball."""
    rng, rows, answers, _ = data(n=80)
    ridge, bound = 0.25, 2.0
    now = estimate.first_estimate(3, ridge)
    for row, answer in zip(rows, answers, strict=True):
        now = estimate.updated(now, row, answer, ridge, growth=0.0)

    def penalised(theta):
        return np.sum(np.logaddexp(0, rows @ theta) - answers * (rows @ theta)) + ridge / 2 * theta @ theta

    ceiling = penalised(now.theta) + 8.0
    for direction in rng.normal(size=(8, 3)):
        exact = minimize(
            lambda theta, direction=direction: -direction @ theta,
            now.theta,
            constraints=[
                {"type": "ineq", "fun": lambda theta: ceiling - penalised(theta)},
                {"type": "ineq", "fun": lambda theta: bound**2 - theta @ theta},
            ],
            options={"ftol": 1e-12, "maxiter": 500},
        )
        best, centre = -exact.fun, float(direction @ now.theta)
        found = LossSet(now, ridge, ceiling, bound)._largest(direction, math.inf, -math.inf)
        assert best - 1e-6 <= found <= best + 0.05 * (best - centre)


def test_without_numba_the_reference_runs():
    code = (
        "import sys; sys.modules['numba'] = None; import numpy as np;"
        "from surepick.contextual import LikelihoodRatioUcb, numerics; policy = LikelihoodRatioUcb();"
        "state = policy.start(2); choice = policy.choose(state, np.eye(2), np.random.default_rng(0));"
        "policy.learn(state, np.eye(2), choice, 1); print(numerics.kernels.NAME)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "numpy\n"


def test_importing_everything_public_leaves_slow_libraries_alone():
    code = (
        "import sys, surepick, surepick_experiments.benches;"
        "print({'numba', 'scipy.stats', 'scipy.optimize'} & sys.modules.keys())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_compiled_equals_plain_on_random_input():
    rng, rows, answers, theta = data(n=40)
    inverse = plain.inverse(rows.T @ rows)
    for name, arguments in {
        "newton": (rows, answers, np.ones(40), np.zeros(3), 0.1, 1e-9, 30),
        "inverse": (rows.T @ rows,),
        "squared_norms": (rows, inverse),
        "optimistic": (rows, theta, inverse, 0.7),
        "row_losses": (rows, answers, theta),
        "far_logit": (rows[0], theta, inverse, 0.3),
        "largest_entry": (rows,),
        "expert_evidence": (rng.normal(size=3), np.abs(rng.normal(size=(4, 6)))),
        "tangent_offset": (rng.normal(size=3), np.abs(rng.normal(size=(4, 6)))),
        "reaches_of": (rows, theta, rows[1], inverse, 0.7),
        "minorant_matrix": (rows, answers + 0.5, theta, np.abs(rows[:, 0])),
        "border_shares": (rng.normal(size=5), np.linspace(1, 0.1, 5), 3.0),
        "support": (rows, answers, 0.1, theta, rows[3], inverse, 50.0),
    }.items():
        ours, reference = getattr(compiled, name)(*arguments), getattr(plain, name)(*arguments)
        if not isinstance(ours, tuple):
            ours, reference = (ours,), (reference,)
        for one, other in zip(ours, reference, strict=True):
            assert np.allclose(one, other, rtol=1e-9, atol=1e-12), name
    assert math.isnan(compiled.largest_entry(np.array([[1.0, math.nan]])))


@pytest.mark.parametrize("name", NAMES)
def test_compiled_and_plain_paths_choose_alike(name, monkeypatch):
    """1,000 random steps: the NumPy path chooses, the compiled one must choose the same from its own state."""
    steps = 1000
    count = 2 if name == "ofu-glb" else 6  # a step of it costs O(t) for every arm in contention, in NumPy 10 ms
    rng = np.random.default_rng(11)
    world = ball_world(rng, dimension=3, arms=count, norm=2.0)
    policy = policy_by_name(name, horizon=steps, arms=count, norm_bound=3.0)
    choices = []
    for kernels in (plain, compiled):
        monkeypatch.setattr(numerics, "kernels", kernels)
        draws, made = np.random.default_rng(5), []
        state = policy.start(3)
        arms, probabilities, uniforms = next(world.blocks(steps, np.random.default_rng(3)))
        for i in range(steps):
            choice = policy.choose(state, arms[i], draws)
            made.append((choice.index, choice.bucket, round(choice.propensity, 9)))
            state = policy.learn(state, arms[i], choice, float(uniforms[i] < probabilities[i, choice.index]))
        choices.append(made)
    assert choices[0] == choices[1]
    assert len({choice[0] for choice in choices[0]}) == count
