"""Proven nats against each rival of a leader, by the cheapest rule that suffices: far, plug-in or directional."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from surepick.identify.anytime_state import State
from surepick.identify.certify import plug_in_bounds
from surepick.identify.contract import AGES, HOPELESS, directional_bounds
from surepick.identify.directional import BETS
from surepick.identify.ledger import Pass

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SINGLE = 2
"""Bets tried one by one, where all of them together prove too little."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """Proven nats against rivals of a leader."""

    items: Integers
    plug_in: Floats
    directional: Floats
    proofs: tuple[dict[str, Any], ...]
    """For each what the bound was found with, as plain values; in coordinates of the span."""

    def joined(self, passes: Collection[Pass]) -> "Weighed":
        """With rivals that were passed before, in the order of the items."""
        items = np.concatenate([self.items, np.array([each.item for each in passes], dtype=np.int64)])
        plain = [each.nats if each.proof["rule"] == "plug-in" else -np.inf for each in passes]
        tilted = [each.nats if each.proof["rule"] == "directional" else -np.inf for each in passes]
        proofs = [*self.proofs, *({**each.proof, "stages": each.stages} for each in passes)]
        order = np.argsort(items)
        return Weighed(
            items[order],
            np.concatenate([self.plug_in, plain])[order],
            np.concatenate([self.directional, tilted])[order],
            tuple(proofs[place] for place in order),
        )


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
    far = state.localiser(threshold)
    passed = far.misses(away, epsilon)
    plug_in[passed] = threshold
    for number in np.flatnonzero(passed):
        proofs[number] = {"rule": "far"}
    near = np.flatnonzero(~passed)
    if len(near):
        found = plug_in_bounds(evidence, away[near], epsilon, np.broadcast_to(far.centre, away[near].shape))
        plug_in[near] = found.bounds
        for number, point, shares, partial in zip(near, found.points, found.shares, found.partial, strict=True):
            proofs[number] = {"rule": "plug-in", "theta": point.tolist(), "shares": shares.tolist()}
            if partial is not None:
                proofs[number] |= {"theta": partial[0].tolist(), "kept": partial[1].tolist()}
        left = np.flatnonzero(found.bounds < threshold)
        if len(left) and process is not None:
            worth = process.values(items[near[left]], problem.rows, found.points[left])
            # All bets by their worth, then single ones: large tilts prove much, but cost a large λ.
            mixes: list[Floats] = [softmax(worth, axis=1)]
            ages: list[tuple[int, ...]] = [AGES if thorough else AGES[:2]]
            if thorough:
                room = np.clip(threshold - found.bounds[left], 0.0, 1e3)
                promise = worth - process.mean_tilts(items[near[left]]) * room[:, None]
                order = np.argsort(-promise, axis=1)
                mixes += [np.eye(BETS)[order[:, place]] for place in range(SINGLE)]
                ages += SINGLE * [AGES[:1]]
            for mix, tried in zip(mixes, ages, strict=True):
                lacking = needed - directional[near[left]]
                open_ = np.flatnonzero((lacking > 0) & ((lacking < HOPELESS) | ~np.isfinite(lacking)))
                which = left[open_]
                if not len(which):
                    continue
                linear, sums = process.mixed(items[near[which]], mix[open_], evidence.where)
                tilted = directional_bounds(
                    evidence,
                    found.rows_of(which),
                    linear,
                    sums,
                    away[near[which]],
                    epsilon,
                    threshold,
                    target=needed + 1e-6,
                    ages=tried,
                )
                for place, number in enumerate(near[which]):
                    if tilted.bounds[place] > directional[number]:
                        directional[number] = tilted.bounds[place]
                        proofs[number] = {
                            "rule": "directional",
                            "centre": tilted.centres[place].tolist(),
                            "shares": tilted.shares[place].tolist(),
                            "bets": mix[open_[place]].tolist(),
                            "passes": [
                                {"theta": point.tolist(), "penalty": penalty, "bend": bend}
                                for point, penalty, bend in tilted.passes[place]
                            ],
                        }
    return Weighed(items, plug_in, directional, tuple(proofs))
