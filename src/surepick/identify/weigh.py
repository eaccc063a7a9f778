"""Proven nats against each rival of a leader, by the cheapest rule that suffices: far, plug-in or directional."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from surepick.arrays import Floats, Integers
from surepick.identify.anytime_state import State
from surepick.identify.certify import plug_in_bounds
from surepick.identify.contract import AGES, HOPELESS, Tilted, directional_bounds, wide_bounds
from surepick.identify.directional import BETS, Process
from surepick.identify.ledger import Pass


class Way(NamedTuple):
    """How a directional bound may be proved."""

    bet: int | None
    """None: all bets, by their worth. A number: that one alone, 0 being the most promising: a bet of large tilts proves
    much, but costs a large λ."""
    age: int | None
    """Of the restarts (AGES); None: by a bound for very wide boxes, where nothing else was found."""


QUICK = (Way(None, AGES[0]), Way(None, AGES[1]), Way(None, None))
THOROUGH = (*QUICK, Way(None, AGES[2]), Way(0, AGES[0]), Way(1, AGES[0]))


@dataclass(frozen=True, eq=False)
class Weighed:
    """Proven nats against rivals of a leader."""

    items: Integers
    plug_in: Floats
    directional: Floats
    proofs: tuple[dict[str, Any], ...]
    """For each what the bound was found with, as plain values; in coordinates of the span."""
    witnesses: tuple[Floats | None, ...]
    """For each a θ, if one was met, with which the rival has caught up and the evidence is not enough: while that is
    so, no proof can pass it."""

    def joined(self, passes: Collection[Pass]) -> "Weighed":
        """With rivals that were passed before, in the order of the items."""
        items = np.concatenate([self.items, np.array([each.item for each in passes], dtype=np.int64)])
        plain = [each.nats if each.proof["rule"] == "plug-in" else -np.inf for each in passes]
        tilted = [each.nats if each.proof["rule"] == "directional" else -np.inf for each in passes]
        proofs = [*self.proofs, *({**each.proof, "stages": each.stages} for each in passes)]
        witnesses = [*self.witnesses, *(None for _ in passes)]
        order = np.argsort(items)
        return Weighed(
            items[order],
            np.concatenate([self.plug_in, plain])[order],
            np.concatenate([self.directional, tilted])[order],
            tuple(proofs[place] for place in order),
            tuple(witnesses[place] for place in order),
        )


def weigh(
    state: State,
    leader: int,
    items: Integers,
    ways: tuple[Way, ...],
    *,
    deciding: bool = False,
) -> Weighed:
    """Bounds for these rivals; `ways` to prove one passed by its bets are tried until one succeeds.

    Where it is only to be decided whether rivals pass, those that a witness shows not to are given up.
    """
    problem, epsilon, threshold, needed = state.problem, state.epsilon, state.threshold, state.needed(leader)
    plug_in, directional = np.full(len(items), -np.inf), np.full(len(items), -np.inf)
    proofs: list[dict[str, Any]] = [{} for _ in items]
    witnesses: list[Floats | None] = [None] * len(items)
    away = problem.points[leader] - problem.points[items]
    far = state.localiser
    passed = far.misses(away, epsilon)
    plug_in[passed] = threshold
    for number in np.flatnonzero(passed):
        proofs[number] = {"rule": "far"}
    near = np.flatnonzero(~passed)
    if not len(near):
        return Weighed(items, plug_in, directional, tuple(proofs), tuple(witnesses))
    found = plug_in_bounds(state.evidence, away[near], epsilon, np.broadcast_to(far.centre, away[near].shape))
    plug_in[near] = found.bounds
    for number, point, shares, partial in zip(near, found.points, found.shares, found.partial, strict=True):
        proofs[number] = {"rule": "plug-in", "theta": point.tolist(), "shares": shares.tolist()}
        if partial is not None:
            proofs[number] |= {"theta": partial[0].tolist(), "kept": partial[1].tolist()}

    def look(which: NDArray[np.intp], points: Floats) -> None:
        """Remember points that are witnesses."""
        for place in np.flatnonzero(state.lacking(leader, items[which], points) > 0):
            witnesses[which[place]] = points[place]

    left = np.flatnonzero(found.bounds < threshold)
    process = state.process_of(leader)
    if len(left):
        look(near[left], found.points[left])
    if process is None or not len(left):
        return Weighed(items, plug_in, directional, tuple(proofs), tuple(witnesses))
    worth = process.values(items[near], problem.rows, found.points)
    for way in ways:
        lacking = needed - directional[near]
        hopeful = (lacking > 0) & ((lacking < HOPELESS) | ~np.isfinite(lacking)) & (found.bounds < threshold)
        if deciding:
            hopeful &= np.array([witnesses[number] is None for number in near])
        which = np.flatnonzero(hopeful)
        if way.age is None:
            which = which[np.isneginf(directional[near[which]])]
        if not len(which):
            continue
        rivals = near[which]
        shares = _shares(way, process, items[rivals], worth[which], threshold - found.bounds[which])
        linear, sums = process.mixed(items[rivals], shares, state.evidence.where)
        given = state.evidence, found.rows_of(which), linear, sums, away[rivals], epsilon, threshold
        if way.age is None:
            tilted = wide_bounds(*given)
        else:
            tilted = directional_bounds(*given, target=needed + 1e-6, age=way.age)
        for place in np.flatnonzero(tilted.bounds > directional[rivals]):
            directional[rivals[place]] = tilted.bounds[place]
            proofs[rivals[place]] = _proof(tilted, int(place), shares[place])
        short = np.flatnonzero(directional[rivals] < needed)
        if len(short):
            look(rivals[short], tilted.reached[short])
    return Weighed(items, plug_in, directional, tuple(proofs), tuple(witnesses))


def _shares(way: Way, process: Process, items: Integers, worth: Floats, room: Floats) -> Floats:
    """Of the bets, by what they are worth at the likeliest points and what a proof would cost them in that room."""
    if way.bet is None:
        return np.asarray(softmax(worth, axis=1))
    promise = worth - process.mean_tilts(items) * np.clip(room, 0.0, 1e3)[:, None]
    return np.eye(BETS)[np.argsort(-promise, axis=1)[:, way.bet]]


def _proof(tilted: Tilted, place: int, bets: Floats) -> dict[str, Any]:
    return {
        "rule": "directional",
        "centre": tilted.centres[place].tolist(),
        "shares": tilted.shares[place].tolist(),
        "bets": bets.tolist(),
        "passes": [
            {"theta": point.tolist(), "penalty": penalty, "bend": bend} for point, penalty, bend in tilted.passes[place]
        ],
    }
