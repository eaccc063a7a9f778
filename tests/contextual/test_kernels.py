"""The inner loops with and without numba: against each other, and both against the mathematics."""

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

from surepick.baselines.ofu import LossSet, largest_score
from surepick.contextual import kernels
from surepick.contextual.history import RidgeEstimate
from surepick.glm.kernels import Kernel, interpreted, inverse, is_compiled, newton
from surepick.registry import NAMES, policy_by_name
from surepick_experiments.worlds.contextual import ball_world

pytest.importorskip("numba")


@pytest.fixture(params=["numpy", "numba"])
def both_ways(request, monkeypatch):
    monkeypatch.setattr(Kernel, "interpreted", request.param == "numpy")


BOTH = pytest.mark.usefixtures("both_ways")


def data(seed=0, n=60, d=3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) / math.sqrt(d)
    theta = rng.normal(size=d)
    answers = (rng.random(n) < 1 / (1 + np.exp(-rows @ theta))).astype(float)
    return rng, rows, answers, theta


@BOTH
def test_newton_reaches_the_minimum_of_the_penalised_loss():
    rng, rows, answers, _ = data()
    weights = rng.random(len(rows))
    theta, loss, gradient, information, decrement = newton(rows, answers, weights, np.zeros(3), 0.3, 1e-9, 50)
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
def test_newton_survives_separated_answers_and_extreme_rows():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [30.0, 30.0]])
    theta, loss, *_ = newton(rows, np.ones(3), np.ones(3), np.zeros(2), 1e-6, 1e-6, 100)
    assert np.isfinite(theta).all()
    assert loss < 0.01


@BOTH
def test_rank_one_updates_keep_the_inverse():
    rng, rows, *_ = data()
    matrix = np.eye(3) * 0.5
    inverted = inverse(matrix)
    information, other = matrix.copy(), inverted.copy()
    gained = 0.0
    for row in rows:
        weight = float(rng.random())
        matrix = matrix + weight * np.outer(row, row)
        kernels.add_outer(inverted, row, weight)
        gained += kernels.add_information(information, other, row, weight)
    assert np.allclose(inverted @ matrix, np.eye(3), atol=1e-10)
    assert np.allclose(information, matrix)
    assert gained == pytest.approx(np.linalg.slogdet(matrix)[1] - 3 * math.log(0.5), rel=1e-10)
    assert np.isnan(inverse(np.zeros((2, 2)))).all()


@BOTH
def test_curvature_is_the_best_quadratic_below_the_loss():
    rng = np.random.default_rng(1)
    logits, reaches = rng.normal(size=300) * 3, 10 ** rng.uniform(-4, 1.3, size=300)
    found = kernels.curvature(logits, reaches)
    for v, reach, c in zip(logits, reaches, found, strict=True):
        z = np.linspace(-reach, reach, 41)
        mean = 1 / (1 + np.exp(-v))
        excess = np.logaddexp(0, v + z) - np.logaddexp(0, v) - mean * z
        assert (excess - c * z * z / 2 >= -1e-13 * (1 + abs(v))).all()
        if reach > 0.05:  # and none larger would do
            assert (excess - 1.01 * c * z * z / 2 < 0).any()


@BOTH
def test_minorants_lie_below_the_loss_inside_the_ellipsoid():
    rng, rows, answers, _ = data(n=30)
    anchor, gradient, curved, centre = rng.normal(size=3) * 0.3, np.zeros(3), np.eye(3), np.zeros(3)
    radius = 2.0
    total = 0.0
    points = rng.normal(size=(200, 3))
    points *= radius / np.linalg.norm(points, axis=1)[:, None] * rng.random((200, 1))
    inside = np.ones(200, dtype=bool)
    for row, answer in zip(rows, answers, strict=True):
        inside &= np.linalg.norm(np.linalg.solve(np.linalg.cholesky(curved), (points - centre).T), axis=0) <= radius
        total += kernels.add_minorant(anchor, gradient, curved, centre, radius, row, answer)
    quadratic = np.linalg.inv(curved) - np.eye(3)
    for point in points[inside]:
        u = point - anchor
        exact = float(np.sum(np.logaddexp(0, rows @ point) - answers * (rows @ point)))
        assert total + gradient @ u + u @ quadratic @ u / 2 <= exact + 1e-9
    assert inside.sum() > 10


@BOTH
def test_one_pass_quadratic_tracks_its_own_minimum():
    _, rows, answers, _ = data(n=25)
    centre, curved, floor = np.zeros(3), np.eye(3), 0.0
    terms = []
    for row, answer in zip(rows, answers, strict=True):
        before = centre.copy()
        v = float(row @ before)
        reach = min(3.0, 1.5 * math.sqrt(float(row @ curved @ row)))
        curve = kernels.curvature(v, reach)
        terms.append((row, before, np.logaddexp(0, v) - answer * v, 1 / (1 + math.exp(-v)) - answer, curve))
        floor += kernels.add_minorant_at_centre(centre, curved, 1.5, 3.0, row, answer)

    def value(point):
        return point @ point / 2 + sum(
            loss + slope * (row @ (point - at)) + curve * (row @ (point - at)) ** 2 / 2
            for row, at, loss, slope, curve in terms
        )

    assert value(centre) == pytest.approx(floor, rel=1e-9)
    assert minimize(value, centre + 0.1).fun == pytest.approx(floor, rel=1e-6)


@BOTH
def test_support_is_the_largest_score_in_the_set():
    _, rows, answers, _ = data(n=80)
    ridge, direction = 0.2, np.array([0.3, -0.8, 0.5])
    start, loss, _, information, _ = newton(rows, answers, np.ones(80), np.zeros(3), ridge, 1e-10, 50)
    around = inverse(information + ridge * np.eye(3))
    ceiling = loss + ridge / 2 * start @ start + 6.0
    found = largest_score(rows, answers, ridge, start, direction, around, ceiling)

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
    now = RidgeEstimate.empty(3, ridge)
    for row, answer in zip(rows, answers, strict=True):
        now = now.updated(row, answer, ridge, growth=0.0)

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
        found = LossSet(now, ridge, ceiling, bound).upper_bound(direction)
        assert best - 1e-6 <= found <= best + 0.05 * (best - centre)


def test_policies_run_without_numba():
    code = (
        "import sys; sys.modules['numba'] = None; import numpy as np;"
        "from surepick.contextual import LikelihoodRatioUcb; policy = LikelihoodRatioUcb();"
        "from surepick.glm.kernels import is_compiled;"
        "state = policy.start(2); choice = policy.choose(state, np.eye(2), np.random.default_rng(0));"
        "policy.learn(state, np.eye(2), choice, 1); print(is_compiled())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    assert is_compiled()


def test_importing_everything_public_leaves_slow_libraries_alone():
    code = (
        "import sys, surepick, surepick_experiments.benches;"
        "print({'numba', 'scipy.stats', 'scipy.optimize'} & sys.modules.keys())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_numba_and_numpy_give_the_same_numbers():
    rng, rows, answers, theta = data(n=40)
    inverted = inverse(rows.T @ rows)
    arms = rows[:8]
    levels = np.stack([theta, theta / 2, theta / 4]), np.stack([inverted * 1e-3] * 3), np.array([1.0, 2.0, 9.0])
    restarts = np.abs(rng.normal(size=(4, 6)))
    restarts[2, 2] = 0.0
    for kernel, arguments in (
        (newton, (rows, answers, np.ones(40), np.zeros(3), 0.1, 1e-9, 30)),
        (newton, (rows, answers, np.ones(40), np.zeros(3), 0.1, 1e-9, 30, theta)),
        (newton, (rows[:0], answers[:0], np.ones(0), theta, 0.1, 1e-9, 30)),
        (inverse, (rows.T @ rows,)),
        (kernels.squared_norms, (rows, inverted)),
        (kernels.optimistic, (rows, theta, inverted, 0.7)),
        (kernels.optimistic, (rows, theta, inverted, math.inf)),
        (kernels.row_losses, (rows, answers, theta)),
        (kernels.far_logit, (rows[0], theta, inverted, 0.3)),
        (kernels.largest_entry, (rows,)),
        (kernels.curvature, (rows[:, 0] * 9, np.abs(rows[:, 1]))),
        (kernels.curvature, (-0.3, 0.005)),
        (kernels.expert_evidence, (rng.normal(size=3), restarts)),
        (kernels.tangent_offset, (rng.normal(size=3), restarts)),
        (kernels.reaches_of, (rows, theta, rows[1], inverted, 0.7)),
        (kernels.minorant_matrix, (rows, answers + 0.5, theta, np.abs(rows[:, 0]))),
        (kernels.border_shares, (rng.normal(size=5), np.linspace(1, 0.1, 5), 3.0)),
        (kernels.route, (arms, *levels, 1e-3)),
        (kernels.route, (arms, *levels, 1.0)),
    ):
        ours = kernel(*arguments)
        with interpreted():
            reference = kernel(*arguments)
        if not isinstance(ours, tuple):
            ours, reference = (ours,), (reference,)
        for one, other in zip(ours, reference, strict=True):
            assert np.allclose(one, other, rtol=1e-9, atol=1e-12), kernel.__name__
    holed = np.array([[1.0, math.nan]])
    assert math.isnan(kernels.largest_entry(holed))
    with interpreted():
        assert math.isnan(kernels.largest_entry(holed))


@pytest.mark.parametrize("name", NAMES)
def test_choices_are_the_same_with_and_without_numba(name, monkeypatch):
    """1,000 random steps: without numba and with it, each from its own state, the same arms are chosen."""
    steps = 1000
    count = 2 if name == "ofu-glb" else 6  # a step of it costs O(t) for every arm in contention, in NumPy 10 ms
    rng = np.random.default_rng(11)
    world = ball_world(rng, dimension=3, arms=count, norm=2.0)
    policy = policy_by_name(name, horizon=steps, arms=count, norm_bound=3.0)
    choices = []
    for without_numba in (True, False):
        monkeypatch.setattr(Kernel, "interpreted", without_numba)
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
