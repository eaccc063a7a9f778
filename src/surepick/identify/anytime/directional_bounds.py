"""Proven lower bounds of the directional evidence on a rival's null within the localiser: weak duality on boxes.

F, the log of a product of tilts, is not convex, but F + lam·(G − log 1/delta_2) is for a large enough lam, and the
added term is negative on the localiser, where G < log 1/delta_2 (docs/anytime.md, section 3, "Directional", (11) to
(17)). Every bound is proven from the point found, however badly it was found.

Symbols are those of that section. Arrays have rivals on their first axis; `threshold` is log 1/delta_2 and `target` the
level tau that a bound must reach.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from surepick._arrays import Booleans, Floats, Integers
from surepick.evidence.likelihood_ratio import Evidence, Minorant
from surepick.evidence.plug_in_bounds import Passed, region
from surepick.glm import probability_of_yes, variance
from surepick.glm.batched_newton import BatchStep, Places, minimise_batch, minimise_losses, onto
from surepick.glm.duality import certified_infima, inverses_from_above
from surepick.identify.anytime.directional import (
    NEGATIVE,
    POSITIVE,
    PREDICTED,
    PREDICTED_ONES,
    REMAINDER,
    SLOPE_REMAINDER,
    VALUE_REMAINDER,
    horner,
    phi,
    phi_slope,
    taylor_coefficients,
)
from surepick.identify.anytime.tuning import TUNING

SECOND_ORDER = 0.6
"""(eʸ − 1 − y)/y² for y up to the largest tilt, rounded up."""

PassPoint = tuple[Floats, float, float]
"""theta_1, lam and rho of a pass: all that a proof of its bound needs besides the boxes."""


@dataclass(frozen=True, eq=False)
class DirectionalBounds:
    """The directional bound for each rival, and what it was found with."""

    bounds: Floats
    """−inf where nothing was proved."""
    centres: Floats
    """Points around which the localiser was bounded first."""
    shares: Floats
    """p of the restarts in G."""
    passes: list[list[PassPoint]]
    """For each rival the passes that led to its bound."""
    reached: Floats
    """The last point: about where the evidence against the rival is least."""


@dataclass(frozen=True, eq=False)
class DirectionalMinorant:
    """F of each rival (11), and its null: F ≤ log E^{j,z} is to be bounded on {yᵀtheta ≤ −epsilon} within C."""

    linear: Floats
    sums: Floats
    """As `DirectionalProcess.mixed` gives both."""
    y: Floats
    epsilon: float
    threshold: float
    """log 1/delta_2: the localiser C is {log E < threshold}."""

    def rows_of(self, which: Integers) -> "DirectionalMinorant":
        """For some of the rivals."""
        return replace(self, linear=self.linear[which], sums=self.sums[:, which], y=self.y[which])

    def values(self, v: Floats) -> Floats:
        """F at the logits v = xᵀtheta of each rival, up to the remainder."""
        return np.asarray(self.linear + np.sum(phi(self.sums, v), axis=1))

    @property
    def remainder(self) -> Floats:
        """How far F may lie below `values` (18)."""
        return np.asarray(VALUE_REMAINDER * np.sum(self.sums[REMAINDER], axis=1))

    def curvature_losses(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The two parts of P, of positive and of negative tilts, with F'' ≥ −P·s(v) along each x on the boxes (12).

        (log s)' = −tanh(v/2), so s(v+c)/s(v) ≤ e^{|c|·t} with t the largest −tanh(v/2) on the box for c > 0 and the
        largest tanh(v/2) for c < 0. A predicted answer adds +s(v): their number is yet to be subtracted.
        """
        positive = _exponential_excess(self.sums[POSITIVE : POSITIVE + 2], -np.tanh(low / 2))
        return positive, _exponential_excess(self.sums[NEGATIVE : NEGATIVE + 2], np.tanh(high / 2))


def _exponential_excess(sums: Floats, t: Floats) -> Floats:
    """Σ n·(e^{|c|t} − 1) from above, by its first two orders; `sums` are Σ n·|c| and Σ n·c²."""
    # eʸ − 1 − y ≤ y²/2 for negative y.
    second = np.where(t > 0, SECOND_ORDER, 0.5)
    return np.asarray(sums[0] * t + second * sums[1] * t**2)


def directional_bounds(
    evidence: Evidence, plug_in: Passed, F: DirectionalMinorant, target: float, *, age: int, shared_at: Floats
) -> DirectionalBounds:
    """Lower bounds of log E^{j,z} over the null within the localiser, by passes over boxes that shrink.

    A pass proves a strongly convex lower bound L of F on the boxes (15). Where F is below the target so is L, which
    leaves an ellipsoid around its least point (16), and smaller boxes for the next pass.

    Args:
        evidence: The plug-in evidence.
        plug_in: Its bounds for these rivals, which did not suffice.
        F: The minorants to bound.
        target: The level tau; nothing is gained beyond it.
        age: Which shares of the restarts G has, one of `Tuning.ages`.
        shared_at: A point for each rival; where `age` is 0, the shares are by the restarts' evidence there.

    O(passes · rivals · (vectors · d² + d³)).
    """
    start = _aged(evidence, plug_in, F, age, shared_at)
    G, vectors = start.below, start.below.vectors
    room = np.maximum(F.threshold - G.values(start.points), 1e-6)
    around = region(G, start.points, F.y, start.multipliers, room)
    usable = np.all(np.isfinite(around.half), axis=1) & np.isfinite(around.depth)
    active = np.flatnonzero(usable)
    bounds = np.full(len(F.y), -np.inf)
    passes: list[list[PassPoint]] = [[] for _ in F.y]
    proofs: list[list[PassPoint]] = [[] for _ in F.y]
    centre = start.points @ vectors.rows.T
    low, high, T, theta = centre - around.half, centre + around.half, around.depth.copy(), start.points.copy()
    for number in range(TUNING.passes):
        if not len(active):
            break
        found = _one_pass(G.rows_of(active), F.rows_of(active), theta[active], low[active], high[active], T[active])
        # Outside the boxes of a later pass F is at least the target, inside at least its bound: the smaller counts.
        proved = found.bounds if number == 0 else np.minimum(found.bounds, target)
        for place, rival in enumerate(active):
            passes[rival].append((found.theta[place], float(found.lam[place]), float(found.rho[place])))
            if proved[place] > bounds[rival]:
                bounds[rival], proofs[rival] = proved[place], passes[rival].copy()
        # ‖u‖_M ≤ r + √(r² + 2(tau − L)) (16)
        fine = np.isfinite(found.bounds)
        left = np.where(fine, np.maximum(target - found.values, 0.0), 0.0)
        radius = found.r + np.sqrt(found.r**2 + 2 * left)
        reach = np.sqrt(np.maximum(vectors.squared_norms(found.inverse), 0.0)) * radius[:, None]
        v = found.theta @ vectors.rows.T
        smaller_low, smaller_high = np.maximum(low[active], v - reach), np.minimum(high[active], v + reach)
        # nu·t + t²/(2‖y‖²) ≤ tau − L + r‖u‖ for the depth t, with ‖y‖ in M⁻¹: as (10).
        y = F.y[active]
        squared = np.einsum("zi,zij,zj->z", y, found.inverse, y)
        back = found.nu * squared
        shallower = np.sqrt(back**2 + 2 * squared * (left + found.r * radius)) - back
        widths, smaller = np.sum(high[active] - low[active], axis=1), np.sum(smaller_high - smaller_low, axis=1)
        low[active], high[active], theta[active] = smaller_low, smaller_high, found.theta
        T[active] = np.minimum(T[active], shallower)
        promising = (found.bounds > target - TUNING.hopeless) & (smaller < TUNING.shrinkage * widths)
        active = active[(bounds[active] < target) & fine & promising]
    return DirectionalBounds(bounds, start.points, start.shares, proofs, theta)


def _aged(evidence: Evidence, plug_in: Passed, F: DirectionalMinorant, age: int, shared_at: Floats) -> Passed:
    """The plug-in minorants with other shares of the restarts, at their least points on the hyperplanes."""
    terms = evidence.terms(shared_at)
    count = terms.shape[1]
    shares = softmax(terms, axis=1) if age == 0 else np.tile(np.eye(count)[max(count - 1 - age, 0)], (len(terms), 1))
    # No share is zero: lam·n must outweigh P also on vectors that only some restarts counted.
    shares = (1 - TUNING.shared_alike) * shares + TUNING.shared_alike / count
    G = evidence.mixed(shares)
    theta = minimise_losses(evidence.vectors, G.pulls, G.wins, plug_in.points, normals=F.y)
    theta = onto(theta, F.y, F.epsilon)
    _, nu = certified_infima(evidence.vectors, G.pulls, G.wins, theta, F.y)
    return Passed(plug_in.bounds, theta, G, shares, nu, plug_in.partial)


@dataclass(frozen=True, eq=False)
class _Pass:
    """L(theta_1 + u) ≥ values − r·‖u‖ + ½‖u‖² on the boxes, norms in M, `inverse` being M⁻¹ (15)."""

    bounds: Floats
    values: Floats
    r: Floats
    theta: Floats
    inverse: Floats
    nu: Floats
    lam: Floats
    rho: Floats


def _one_pass(G: Minorant, F: DirectionalMinorant, theta: Floats, low: Floats, high: Floats, T: Floats) -> _Pass:
    """Bound F on the boxes by L, with about the least lam that makes L convex.

    t = yᵀtheta + epsilon lies in [−T, 0], so t(t + T) ≤ 0, and L = F + lam(G − threshold) + rho·t(t + T) + nu·t is a
    lower bound of F for all lam, rho, nu ≥ 0 (13). Its Hessian on the boxes is at least M = Σ alpha·sigma·xxᵀ +
    2rho·yyᵀ, alpha = lam·n − P, sigma the least s on the box where alpha ≥ 0 and the largest where not (14).
    """
    vectors, y = G.vectors, F.y
    positive, negative = F.curvature_losses(low, high)
    P = positive + (negative - F.sums[PREDICTED])
    # s is even and falls with |v|: it is least at the end farther from zero, largest at the point nearest to zero.
    least_s = variance(np.maximum(np.abs(low), np.abs(high)))
    largest_s = variance(np.maximum(np.maximum(low, -high), 0.0))
    mu = probability_of_yes(theta @ vectors.rows.T)
    inverse, sound = inverses_from_above(vectors.information(G.pulls * mu * (1 - mu)))
    across = np.einsum("zij,zj->zi", inverse, y)
    slope = np.einsum("zi,zi->z", across, -phi_slope(F.sums, mu) @ vectors.rows) / np.einsum("zi,zi->z", across, y)
    # On the hyperplane the rho term has slope rho·T along y. It costs nothing while the multiplier of y is larger.
    rho = TUNING.rho_share * np.maximum(slope, 0.0) / np.maximum(T, 1e-300)
    rho_yy = rho[:, None, None] * y[:, :, None] * y[:, None, :]
    lam = _least_lam(G, P, least_s, largest_s, rho_yy)
    lam, theta = _balanced(G, F, theta, TUNING.lam_margin * lam + TUNING.least_lam, rho_yy, sound)
    alpha = lam[:, None] * G.pulls - P
    M = vectors.information(alpha * np.where(alpha > 0, least_s, largest_s)) + 2 * rho_yy
    # Positive definiteness of M is the whole proof: it is checked on unit diagonal, well above rounding.
    scale = np.sqrt(np.maximum(np.diagonal(M, axis1=1, axis2=2), 1e-290))
    sound &= np.linalg.eigvalsh(M / scale[:, :, None] / scale[:, None, :])[:, 0] > 2e-8
    inverse, firm = inverses_from_above(_or_identity(M, sound))
    sound &= firm
    weighted, ones = lam[:, None] * G.pulls, lam[:, None] * G.wins
    v = theta @ vectors.rows.T
    mu, s = probability_of_yes(v), variance(v)
    gradient = (weighted * mu - ones + phi_slope(F.sums, mu)) @ vectors.rows
    across = np.einsum("zij,zj->zi", inverse, y)
    # The nu ≥ 0 that makes the gradient of L least in M⁻¹, given that the rho term contributes rho·T.
    rho_T = rho * T
    nu = np.maximum(-np.einsum("zi,zi->z", across, gradient) / np.einsum("zi,zi->z", across, y) - rho_T, 0.0)
    gradient_L = gradient + (nu + rho_T)[:, None] * y
    # What the expansion of the slopes leaves out enters r (18).
    cut = SLOPE_REMAINDER * np.sum(F.sums[REMAINDER] * s * np.sqrt(vectors.squared_norms(inverse)), axis=1)
    r = np.sqrt(np.maximum(np.einsum("zi,zij,zj->z", gradient_L, inverse, gradient_L), 0.0)) + cut
    # A point outside the boxes proves nothing: (14) holds on them only.
    inside = np.all((low <= v) & (v <= high), axis=1)
    values = F.values(v) + lam * (G.values(theta) - F.threshold) - F.remainder
    values = np.where(inside & sound & np.isfinite(r), values, -np.inf)
    r = np.where(np.isfinite(r), r, 0.0)
    return _Pass(values - r**2 / 2, values, r, theta, inverse, nu, lam, rho)


def _least_lam(G: Minorant, P: Floats, least_s: Floats, largest_s: Floats, rho_yy: Floats) -> Floats:
    """About the least lam ≥ 0 with M ⪰ 0 (14), by Newton's method from below.

    With sigma fixed it is the largest eigenvalue of Σ P·sigma·xxᵀ − 2rho·yyᵀ relative to Σ n·sigma·xxᵀ; sigma changes
    with the signs of lam·n − P.
    """
    vectors, lam = G.vectors, np.zeros(len(P))
    for _ in range(TUNING.lam_steps):
        sigma = np.where(lam[:, None] * G.pulls > P, least_s, largest_s)
        root = _inverse_root(vectors.information(G.pulls * sigma))
        relative = np.swapaxes(root, 1, 2) @ (vectors.information(P * sigma) - 2 * rho_yy) @ root
        lam = np.maximum(np.linalg.eigvalsh(relative)[:, -1], lam)
    return lam


def _balanced(
    G: Minorant, F: DirectionalMinorant, theta: Floats, least: Floats, rho_yy: Floats, sound: Booleans
) -> tuple[Floats, Floats]:
    """About the lam ≥ least of the largest bound, and its least point.

    The derivative of the bound by lam is G − threshold at the least point of L: a point outside the localiser wants a
    larger lam, one inside a smaller.
    """
    lam, low, high, best = least, least, np.full(len(least), np.inf), theta
    for _ in range(TUNING.lam_trials):
        theta = _descend(G, F, theta, lam, rho_yy, sound)
        outside = (G.values(theta) > F.threshold) & sound
        best = np.where((outside & np.isfinite(high))[:, None], best, theta)
        low, high = np.where(outside, lam, low), np.where(outside, high, lam)
        wide = (high > TUNING.lam_precision * low) & (low > least)
        if not np.any(wide | (outside & ~np.isfinite(high))):
            break
        lam = np.where(np.isfinite(high), np.sqrt(low * high), TUNING.lam_factor * lam)
    return np.where(np.isfinite(high), high, lam), best


def wide_bounds(evidence: Evidence, plug_in: Passed, F: DirectionalMinorant) -> DirectionalBounds:
    """Bounds with a lam so large that every vector has curvature left, alpha = lam·n − P ≥ 0: for very wide boxes.

    There the least s is nothing, but L is convex with curvature at least alpha·s(v). With r the norm of its gradient in
    the inverse of Σ alpha·s·xxᵀ at the point, and k the largest norm of an x, its infimum lies at most
    [kr + (1 − kr)·log(1 − kr)]/k² below (docs/anytime.md, section 3, (17); docs/theory.md, Lemma 1).
    """
    start = _aged(evidence, plug_in, F, TUNING.ages[0], plug_in.points)
    G, vectors, y = start.below, start.below.vectors, F.y
    room = np.maximum(F.threshold - G.values(start.points), 1e-6)
    half = region(G, start.points, y, start.multipliers, room).half
    bounded = np.all(np.isfinite(half), axis=1)
    half = np.where(bounded[:, None], half, 1.0)
    centre = start.points @ vectors.rows.T
    low, high = centre - half, centre + half
    positive, negative = F.curvature_losses(low, high)
    P = positive - F.sums[PREDICTED] + negative
    with np.errstate(divide="ignore", invalid="ignore"):
        lam = TUNING.wide_lam_margin * np.max(np.where(P > 0, P / G.pulls, 0.0), axis=1) + TUNING.least_lam
    sound = np.isfinite(lam) & bounded
    lam = np.where(sound, lam, 1.0)
    theta = _descend(G, F, start.points, lam, np.zeros((1, 1, 1)), sound)
    v = theta @ vectors.rows.T
    mu, s = probability_of_yes(v), variance(v)
    gradient = (lam[:, None] * (G.pulls * mu - G.wins) + phi_slope(F.sums, mu)) @ vectors.rows
    alpha = lam[:, None] * G.pulls - P
    inverse, firm = inverses_from_above(vectors.information(np.maximum(alpha, 0.0) * s))
    across = np.einsum("zij,zj->zi", inverse, y)
    nu = np.maximum(-np.einsum("zi,zi->z", across, gradient) / np.einsum("zi,zi->z", across, y), 0.0)
    gradient_L = gradient + nu[:, None] * y
    squared = np.maximum(vectors.squared_norms(inverse), 0.0)
    k = np.sqrt(np.max(squared, axis=1))
    cut = SLOPE_REMAINDER * np.sum(F.sums[REMAINDER] * s * np.sqrt(squared), axis=1)
    kr = k * (np.sqrt(np.maximum(np.einsum("zi,zij,zj->z", gradient_L, inverse, gradient_L), 0.0)) + cut)
    # (17) needs kr < 1; close to it the logarithm is large and the bound worthless.
    within = np.minimum(kr, 0.9)
    error = (within + (1 - within) * np.log1p(-within)) / k**2
    inside = np.all((low <= v) & (v <= high) & (alpha >= 0), axis=1)
    values = F.values(v) + lam * (G.values(theta) - F.threshold)
    fine = sound & firm & inside & (kr < 0.9) & np.isfinite(values)
    bounds = np.where(fine, values - error - F.remainder, -np.inf)
    passes = [[(point, float(value), 0.0)] for point, value in zip(theta, lam, strict=True)]
    return DirectionalBounds(bounds, start.points, start.shares, passes, theta)


def _descend(
    G: Minorant, F: DirectionalMinorant, theta: Floats, lam: Floats, rho_yy: Floats, sound: Booleans
) -> Floats:
    """About the least points of F + lam·G on the hyperplanes yᵀtheta = −epsilon, by Newton's method.

    The rho term is constant there and only steadies the Hessian. O(steps · rivals · (vectors · d² + d³)).
    """
    vectors, y = G.vectors, F.y
    n = lam[:, None] * G.pulls + F.sums[PREDICTED]
    ones = lam[:, None] * G.wins + F.sums[PREDICTED_ONES]
    # The expansion's coefficients do not depend on theta: they are made once, and each step is a Horner scheme.
    first, second = taylor_coefficients(F.sums, 1), taylor_coefficients(F.sums, 2)

    def objective(at: Floats, active: Places) -> tuple[Floats, Floats]:
        mu = probability_of_yes(at @ vectors.rows.T)
        gradient = (n * mu - ones - horner(first, mu)) @ vectors.rows
        return gradient, vectors.information(n * mu * (1 - mu) - horner(second, mu)) + 2 * rho_yy

    def solve(hessian: Floats, gradient: Floats, normals: Floats | None) -> tuple[Floats, Floats]:
        # The Hessian need not be definite away from the least point, so it is solved as it is.
        tiny = 1e-13 * np.max(np.abs(np.diagonal(hessian, axis1=1, axis2=2)), axis=1) + 1e-290
        hessian = hessian + tiny[:, None, None] * np.eye(hessian.shape[-1])
        solved = np.linalg.solve(_or_identity(hessian, sound), np.stack([gradient, y], axis=2))
        return np.asarray(solved[:, :, 0]), np.asarray(solved[:, :, 1])

    def unfinished(step: BatchStep) -> Booleans:
        # All rivals go on until the last has converged: `sound` and `y` are not cut down to the active ones.
        return np.full(len(y), not np.max(np.where(sound, step.length, 0.0)) < TUNING.newton_tolerance)

    def fraction(length: Floats) -> Floats:
        # No logit moves by more than one: log(1+R)/R is proved for logistic losses only.
        return np.where(length > 1, 1 / np.maximum(length, 1), 1.0)

    return minimise_batch(
        vectors.rows,
        objective,
        theta,
        unfinished=unfinished,
        iterations=TUNING.newton_steps,
        normals=y,
        epsilon=F.epsilon,
        solve=solve,
        fraction=fraction,
    )


def _inverse_root(matrices: Floats) -> Floats:
    """R with RᵀAR about the identity; good for choosing lam, not for proofs."""
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-12 * values[:, -1:] + 1e-290))[:, None, :])


def _or_identity(matrices: Floats, sound: Booleans) -> Floats:
    """The matrices, where sound; elsewhere one that can be inverted without a warning, of which nothing is claimed."""
    return np.where(sound[:, None, None], matrices, np.eye(matrices.shape[-1]))
