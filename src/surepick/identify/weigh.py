"""Proven nats against each rival of a leader, by the cheapest rule that suffices: far, plug-in or directional."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from surepick.identify.anytime_state import State
from surepick.identify.certify import directional_bounds, localiser, plug_in_bounds
from surepick.identify.directional import BETS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HOPELESS = 6.0
"""A bet whose estimated bound lacks more nats than this is not tried."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """Proven nats against rivals of a leader."""

    items: Integers
    plug_in: Floats
    directional: Floats
    proofs: tuple[dict[str, Any], ...]
    """For each what the bound was found with, for a certificate; in coordinates of the span."""


def weigh(
    state: State, leader: int, items: Integers, epsilon: float, threshold: float, needed: float, *, thorough: bool
) -> Weighed:
    """Bounds for these rivals; `threshold` nats pass a rival by the plug-in process, `needed` by the directional one.

    `thorough` tries one way more to prove a rival passed by its bets.
    """
    problem = state.problem
    plug_in, directional = np.full(len(items), -np.inf), np.full(len(items), -np.inf)
    proofs: list[dict[str, Any]] = [{} for _ in items]
    evidence = state.evidence
    process = state.process_of(leader)
    away = problem.points[leader] - problem.points[items]
    far = localiser(evidence, threshold)
    passed = far.misses(away, epsilon)
    plug_in[passed] = threshold
    for number in np.flatnonzero(passed):
        proofs[number] = {"rule": "far"}
    near = np.flatnonzero(~passed)
    if len(near):
        found = plug_in_bounds(evidence, away[near], epsilon, np.broadcast_to(far.centre, away[near].shape))
        plug_in[near] = found.bounds
        for number, point, shares in zip(near, found.points, found.shares, strict=True):
            proofs[number] = {"rule": "plug-in", "theta": point, "shares": shares.tolist()}
        left = np.flatnonzero(found.bounds < threshold)
        if len(left) and process is not None:
            worth = process.values(items[near[left]], problem.rows, found.points[left])
            # All bets by their worth, then single ones: large tilts prove much, but cost a large λ.
            mixes, hopes = [softmax(worth, axis=1)], [np.full(len(left), np.inf)]
            if thorough:
                room = np.maximum(threshold - found.bounds[left], 0.0)
                promise = worth - process.mean_tilts(items[near[left]]) * room[:, None]
                order = np.argsort(-promise, axis=1)
                mixes += [np.eye(BETS)[order[:, place]] for place in range(BETS)]
                hopes += [np.take_along_axis(promise, order[:, place : place + 1], 1)[:, 0] for place in range(BETS)]
            for mix, hope in zip(mixes, hopes, strict=True):
                open_ = np.flatnonzero((directional[near[left]] < needed) & (hope > needed - HOPELESS))
                which = left[open_]
                if not len(which):
                    continue
                linear, sums = process.mixed(items[near[which]], mix[open_], evidence.where)
                tilted = directional_bounds(
                    evidence, found.rows_of(which), linear, sums, away[near[which]], epsilon, threshold
                )
                for place, number in enumerate(near[which]):
                    if tilted.bounds[place] > directional[number]:
                        directional[number] = tilted.bounds[place]
                        proofs[number] = {
                            "rule": "directional",
                            "theta": tilted.points[place],
                            "centre": tilted.centres[place],
                            "shares": tilted.shares[place].tolist(),
                            "bets": mix[open_[place]].tolist(),
                            "penalty": float(tilted.penalties[place]),
                        }
    return Weighed(items, plug_in, directional, tuple(proofs))
