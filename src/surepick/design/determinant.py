"""The weights of largest determinant, which by Kiefer and Wolfowitz also minimise max xᵀH⁻¹x."""

import numpy as np

from surepick._arrays import Booleans, Floats, Integers
from surepick._threads import threads_for
from surepick.design.interior_point import largest_determinant
from surepick.design.minimax import FORGETFUL, PRUNED, batch_size, longest
from surepick.design.result import Limits, Outcome
from surepick.design.vector_families import Family
from surepick.design.whitened_basis import Active, Frame, add_spanning, whitener

FEW_ENOUGH_TO_LIST = 20_000
"""Up to this many measurement vectors the design that weighs all alike is tried first."""


def determinant_search(
    measurements: Family, frame: Frame, limits: Limits, start: tuple[Integers, Floats] | None
) -> Outcome:
    """Rounds until max xᵀH(λ)⁻¹x ≤ rank·(1 + gap) over all x, or a limit is reached; the value is that maximum.

    The bound is the rank: for any weights the largest xᵀH⁻¹x is at least the average Σ λ xᵀH⁻¹x = tr(H⁻¹H).
    """
    rank, batch = frame.rank, batch_size(frame.rank)
    even = _equal_weights(measurements, frame, limits.gap)
    if even is not None:
        return even
    active = Active(measurements, frame.transform)
    add_spanning(active, rank)
    members, _ = measurements.longest(frame.transform, 4 * batch, active.members)
    active.add(members, most=batch, mass=1.0)
    if start is not None:
        active.mass *= 0.1 / len(active)
        active.add(start[0], most=len(start[0]), mass=start[1])
    inner, rounds, iterations = 0.3 if start is None else 0.3 * limits.gap, 0, 0
    while True:
        with threads_for(float(len(active)) ** 3):
            central = largest_determinant(active.vectors, active.mass, gap=inner, deadline=limits.deadline)
        rounds, iterations = rounds + 1, iterations + central.iterations
        active.mass = central.mass
        weights = central.mass / central.mass.sum()
        white = whitener(active.vectors, weights)
        members, lengths = measurements.longest(frame.transform @ white, 4 * batch, active.members[-batch:])
        value = max(longest(active.vectors @ white), float(lengths[0]))
        last = inner < 1e-13 or limits.exceeded(rounds)
        if last or value <= rank * (1.0 + limits.gap):
            kept, white = _prune(active.vectors, weights, white, value + 0.1 * limits.gap * rank)
            exact, found = measurements.maximum(frame.transform @ white, longest(active.vectors @ white))
            if last or exact <= rank * (1.0 + limits.gap):
                fewer = weights[kept] / weights[kept].sum()
                bound = min(float(rank), exact)
                return Outcome(active.members[kept], fewer, exact, bound, iterations, rounds, None)
            members = np.concatenate([found, members])
        inner = max(min(inner, 0.3 * (value / rank - 1.0)), 0.2 * limits.gap)
        if rounds < FORGETFUL and len(active) > 4 * batch:
            here = np.einsum("ij,ij->i", active.vectors @ white, active.vectors @ white)
            keep = (weights > 1e-4 * weights.max()) | (here > 0.9 * value)
            keep[:rank] = True
            active.keep(keep)
        if not active.add(members, most=batch, mass=active.newcomer):
            inner *= 0.1  # Nothing to add: only the accuracy of the restricted problem is missing.


def _equal_weights(measurements: Family, frame: Frame, gap: float) -> Outcome | None:
    """All members alike, if that is good enough: so it is by symmetry for items without features, however many."""
    if len(measurements) > FEW_ENOUGH_TO_LIST:
        return None
    members = measurements.everyone()
    vectors = measurements.vectors(members) @ frame.transform
    weights = np.full(len(members), 1.0 / len(members))
    value = longest(vectors @ whitener(vectors, weights))
    everyone = Active(measurements, frame.transform)
    if value > frame.rank * (1.0 + gap) or everyone.add(members, most=len(members), mass=1.0) < len(members):
        return None
    return Outcome(members, weights, value, min(float(frame.rank), value), 0, 1, None)


def _prune(vectors: Floats, weights: Floats, white: Floats, allowed: float) -> tuple[Booleans, Floats]:
    """Leave out as many small weights as keep the active vectors within the allowed length."""
    for threshold in PRUNED:
        kept = weights >= threshold / len(weights)
        try:
            slim = whitener(vectors[kept], weights[kept] / weights[kept].sum())
        except np.linalg.LinAlgError:
            continue
        if longest(vectors @ slim) <= allowed:
            return kept, slim
    return np.ones(len(weights), dtype=np.bool_), white
