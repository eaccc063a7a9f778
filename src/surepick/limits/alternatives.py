"""For every rival the parameter that is hardest to tell from θ* and makes it as good as the best item.

With v = z* − z, the alternative of rival z under masses λ on the measurement vectors is

    θ_z = argmin { Σ λ_x·KL(x; θ*, θ) : vᵀθ ≤ 0 },

a logistic loss with λ_x pulls and λ_x·μ(xᵀθ*) wins on a hyperplane. All rivals are solved side by side: the Hessians of
all rivals are one matrix product with the list of xxᵀ.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from surepick._arrays import Booleans, Floats
from surepick.glm import variance
from surepick.glm.batched_newton import BatchStep, Places, minimise_batch, onto
from surepick.limits.instance import alpha, kl_divergence

MOST_STEPS = 200
ENTRIES_PER_BLOCK = 1_000_000
"""Rivals are taken in blocks such that their logits on all rows hold about this many numbers."""


BLEND = 1e-3
"""Share of μ* in the probabilities of a dual bound; it costs about that share of the bound."""

LOSS_RAISED = 1.1
"""Factor on the loss of a lower bound that covers rounding of the decrement."""


@dataclass(frozen=True)
class NearestAlternatives:
    """The alternatives of all rivals, one entry per rival."""

    shift: Floats
    """θ_z − θ*, one row per rival; vᵀθ_z = 0 to rounding."""
    cost: Floats
    """Σ λ·KL at θ_z: an upper bound of the least cost."""
    floor: Floats
    """A lower bound of the least cost: by the decrement of Newton's method, or by duality; see `_floor`."""


@dataclass(frozen=True)
class MeasuredRows:
    """Rows x of positive mass and the logits under θ*, in coordinates they span."""

    x: Floats
    logits: Floats
    mass: Floats
    outer: Floats
    """All xxᵀ, each flattened into a row."""

    @classmethod
    def of(cls, x: Floats, logits: Floats, mass: Floats) -> "MeasuredRows":
        """Compute the xxᵀ; O(m d²) time and memory."""
        return cls(x, logits, mass, np.einsum("mi,mj->mij", x, x).reshape(len(x), -1))

    def with_mass(self, mass: Floats) -> "MeasuredRows":
        """Other masses on the same rows."""
        return MeasuredRows(self.x, self.logits, mass, self.outer)

    def hessians(self, shift: Floats) -> Floats:
        """Σ λ·s(xᵀθ)·xxᵀ at θ* + every shift; O(k m d²) as one product."""
        weights = self.mass * variance(self.logits + shift @ self.x.T)
        return np.asarray((weights @ self.outer).reshape(len(shift), self.x.shape[1], -1))

    def divergences(self, shift: Floats) -> Floats:
        """KL(x; θ*, θ* + shift), one row per shift."""
        return kl_divergence(self.logits, self.logits + shift @ self.x.T)

    def slopes(self, shift: Floats) -> Floats:
        """μ(xᵀθ) − μ(xᵀθ*), one row per shift: KL changes by this times xᵀ(change of θ)."""
        moved = shift @ self.x.T
        return np.asarray(alpha(self.logits, self.logits + moved) * moved)


def nearest_alternatives(
    measured: MeasuredRows, normals: Floats, gaps: Floats, start: Floats, *, tolerance: float
) -> NearestAlternatives:
    """Solve all rivals to a relative error of about `tolerance` in the cost, and of its root in θ.

    `normals` are v = z* − z and `gaps` vᵀθ* > 0, one per rival; `start` are shifts to begin from. A Newton step costs
    O(k m d²) for k rivals and m rows; five to ten steps are usual.
    """
    shift, cost, floor = start.copy(), np.empty(len(normals)), np.empty(len(normals))
    size = max(1, ENTRIES_PER_BLOCK // len(measured.x))
    for first in range(0, len(normals), size):
        part = slice(first, first + size)
        shift[part], cost[part], floor[part] = _solved(measured, normals[part], gaps[part], start[part], tolerance)
    return NearestAlternatives(shift, cost, floor)


def _solved(
    measured: MeasuredRows, normals: Floats, gaps: Floats, start: Floats, tolerance: float
) -> tuple[Floats, Floats, Floats]:
    """Shifts, costs and proved lower bounds of the costs for one block of rivals; each stops by its own criterion."""
    # Of the last iteration, and at the points returned: infinite, so that nothing is proved, where iterations ran out.
    decrement, final = np.full((2, len(start)), np.inf)
    squared = np.zeros(0)

    def objective(shift: Floats, active: Places) -> tuple[Floats, Floats]:
        return (measured.mass * measured.slopes(shift)) @ measured.x, measured.hessians(shift)

    def solve(hessian: Floats, gradient: Floats, normal: Floats | None) -> tuple[Floats, Floats | None]:
        nonlocal squared
        assert normal is not None
        inverses = ScaledInverses(hessian)
        ahead, across = inverses.times(gradient), inverses.times(normal)
        # At the minimiser the gradient is parallel to v, so −stepᵀg would be lost in rounding, and the bound is proved
        # from the decrement: take it from the projected gradient g − along·v, which vanishes there.
        along = np.einsum("ij,ij->i", normal, ahead) / np.einsum("ij,ij->i", normal, across)
        step = along[:, None] * across - ahead
        squared = np.maximum(-np.einsum("ij,ij->i", step, gradient - along[:, None] * normal), 0.0)
        return ahead, across

    def unfinished(step: BatchStep) -> Booleans:
        before, decrement[step.active] = decrement[step.active], np.sqrt(squared)
        # A decrement that no longer halves although steps are tiny has reached rounding.
        at_the_floor = (step.length < 1e-3) & (decrement[step.active] > before / 2)
        # gᵀ(θ − θ*) is the sum of both KL divergences: as good a scale of the cost, and already at hand.
        far = squared > tolerance / 2 * np.einsum("ij,ij->i", step.gradient, step.theta)
        left = (far | (step.length > 1.0)) & ~at_the_floor
        final[step.active[~left]] = decrement[step.active[~left]]
        return np.asarray(left)

    shift = minimise_batch(
        measured.x,
        objective,
        onto(start, normals, gaps),
        unfinished=unfinished,
        iterations=MOST_STEPS,
        normals=normals,
        epsilon=gaps,
        solve=solve,
        last_step=False,  # the decrement belongs to the point before the step, so that is the point returned
    )
    cost = measured.divergences(shift) @ measured.mass
    floor = np.maximum(_floor(measured, shift, cost, final), _dual_floor(measured, normals, shift))
    return shift, cost, np.minimum(floor, cost)


def _floor(measured: MeasuredRows, shift: Floats, cost: Floats, decrement: Floats) -> Floats:
    """A lower bound of the least cost from a point near it.

    With ν = max ‖x‖ in H⁻¹ and ε the decrement, the cost at distance t (in H) is at least cost − εt + (e^{−νt} + νt −
    1)/ν², because the third derivative is at most max |xᵀstep| times the second. Its minimum over t, for εν < 1, is
    cost − (εν + (1 − εν)·log(1 − εν))/ν².
    """
    inverses = ScaledInverses(measured.hessians(shift))
    norms = inverses.matrices().reshape(len(shift), -1) @ measured.outer.T
    # ν = max ‖x‖ in H⁻¹; norms² of all rows are one product with the list of xxᵀ.
    reach = np.sqrt(np.maximum(norms.max(axis=1), 1e-300))
    product = np.minimum(decrement * reach, 1.0)
    lost = product + (1.0 - product) * np.log1p(-np.minimum(product, 1.0 - 1e-16))
    # A product near one proves nothing; a small one cancels in the closed form, where it is ε²/2·(1 + εν/3 + …).
    small = product < 1e-3
    lost = np.where(small, product**2 / 2 * (1.0 + product), lost) / reach**2
    proved = (product < 1.0) & inverses.trusted
    return np.asarray(np.where(proved, np.maximum(cost - LOSS_RAISED * lost, 0.0), 0.0))


def _dual_floor(measured: MeasuredRows, normals: Floats, shift: Floats) -> Floats:
    """A lower bound of the least cost, 0.1% below it, that needs no exact minimiser; for nearly certain answers.

    log(1+e^η) ≥ pη + H(p) for every p in (0, 1), H the entropy. So where Σ λ·(p − μ*)·x = −c·v with c ≥ 0, every θ with
    vᵀθ ≤ 0 costs at least Σ λ·(H(p) − H(μ*)). The p of an alternative nearly are such, and μ* itself is, with c = 0 and
    cost 0: a little of it (`BLEND`) makes room, and what is lacking is spread over the rows by least squares, weighted
    by their room or evenly. Zero where both lead out of (0, 1).
    """
    x, mass = measured.x, measured.mass
    logits = measured.logits + shift @ x.T
    yes = (1 - BLEND) * expit(logits) + BLEND * expit(measured.logits)
    no = (1 - BLEND) * expit(-logits) + BLEND * expit(-measured.logits)
    slopes = (1 - BLEND) * measured.slopes(shift)
    gradient = (mass * slopes) @ x
    multiplier = -np.einsum("ij,ij->i", gradient, normals) / np.einsum("ij,ij->i", normals, normals)
    lacking = gradient + multiplier[:, None] * normals
    best = np.zeros(len(shift))
    for room in (yes * no, np.ones_like(yes)):
        # Least squares with weights λ·room: the smallest change of p (relative to its room) that restores the balance.
        spread = ScaledInverses(((mass * room) @ measured.outer).reshape(len(shift), x.shape[1], -1))
        change = -room * (spread.times(lacking) @ x.T)
        possible = (multiplier >= 0) & spread.trusted & (yes + change > 0).all(axis=1) & (no - change > 0).all(axis=1)
        change[~possible] = 0.0
        moved = np.log(yes + change) - np.log(no - change)
        # H(p) − H(μ*) = KL(μ*‖p) − (p − μ*)·logit(p)
        value = (kl_divergence(measured.logits, moved) - (slopes + change) * moved) @ mass
        best = np.maximum(best, np.where(possible, value, 0.0))
    return best


def quadratic_alternatives(measured: MeasuredRows, normals: Floats, gaps: Floats) -> Floats:
    """Minimisers of the quadratic approximation at θ*, or the points nearest to θ* where those cost less."""
    across = ScaledInverses(measured.hessians(np.zeros((1, measured.x.shape[1])))).times(normals)
    guesses = (-gaps[:, None] / np.einsum("ij,ij->i", normals, across)[:, None]) * across
    nearest = -gaps[:, None] * normals / np.einsum("ij,ij->i", normals, normals)[:, None]
    better = measured.divergences(nearest) @ measured.mass < measured.divergences(guesses) @ measured.mass
    return np.asarray(np.where(better[:, None], nearest, guesses))


class ScaledInverses:
    """Inverses of a stack of positive definite matrices, computed with their diagonals scaled to one."""

    def __init__(self, matrices: Floats) -> None:
        diagonal = np.maximum(np.einsum("kii->ki", matrices), 1e-300)
        self.scale = 1.0 / np.sqrt(diagonal)
        scaled = matrices * self.scale[:, None, :] * self.scale[:, :, None]
        # A ridge of 1e-13, so that rounding cannot make them singular.
        np.einsum("kii->ki", scaled)[...] = 1.0 + 1e-13
        self.inside = np.linalg.inv(scaled)
        self.trusted: Booleans = np.einsum("kii->k", self.inside) < 1e11
        """Whether rounding and that ridge change the inverse by little."""

    def times(self, right: Floats) -> Floats:
        """H⁻¹·right, one row per matrix."""
        return np.asarray(np.matmul(self.inside, (right * self.scale)[:, :, None])[:, :, 0] * self.scale)

    def matrices(self) -> Floats:
        """The inverses themselves."""
        return np.asarray(self.inside * self.scale[:, None, :] * self.scale[:, :, None])
