"""Proven nats against each rival of a leader, by the cheapest rule that suffices: far, plug-in or directional."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from surepick._arrays import Booleans, Floats, Integers
from surepick.evidence.plug_in_bounds import Passed, plug_in_bounds
from surepick.identify.anytime.directional import BETS, Process
from surepick.identify.anytime.directional_bounds import AGES, HOPELESS, Tilted, directional_bounds, wide_bounds
from surepick.identify.anytime.proof_log import Pass
from surepick.identify.anytime.state import State

Places = NDArray[np.intp]


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


def weigh(state: State, leader: int, items: Integers, ways: tuple[Way, ...], *, deciding: bool = False) -> Weighed:
    """Bounds for these rivals; `ways` to prove one passed by its bets are tried until one succeeds.

    Where it is only to be decided whether rivals pass, those that a witness shows not to are given up.
    """
    found = _Found(state, leader, items)
    near = found.not_far()
    if len(near):
        plain = found.by_plug_in(near)
        left = np.flatnonzero(plain.bounds < state.threshold)
        process = state.process_of(leader)
        if len(left) and process is not None:
            near, plain = near[left], plain.rows_of(left)
            worth = process.values(items[near], state.problem.rows, plain.points)
            for way in ways:
                which = np.flatnonzero(found.worth_trying(near, way, deciding=deciding))
                if len(which):
                    found.by_bets(way, process, near[which], plain.rows_of(which), worth[which])
    return Weighed(items, found.plug_in, found.directional, tuple(found.proofs), tuple(found.witnesses))


class _Found:
    """What was found about rivals so far; they are named by their place among the items."""

    def __init__(self, state: State, leader: int, items: Integers) -> None:
        self.state, self.leader, self.items = state, leader, items
        self.away = state.problem.points[leader] - state.problem.points[items]
        self.plug_in, self.directional = np.full(len(items), -np.inf), np.full(len(items), -np.inf)
        self.proofs: list[dict[str, Any]] = [{} for _ in items]
        self.witnesses: list[Floats | None] = [None] * len(items)

    def not_far(self) -> Places:
        """Pass those whose null misses the localiser; the others."""
        passed = self.state.localiser.misses(self.away, self.state.epsilon)
        self.plug_in[passed] = self.state.threshold
        for number in np.flatnonzero(passed):
            self.proofs[number] = {"rule": "far"}
        return np.flatnonzero(~passed)

    def by_plug_in(self, near: Places) -> Passed:
        """The plug-in bounds."""
        state, away = self.state, self.away[near]
        start = np.broadcast_to(state.localiser.centre, away.shape)
        plain = plug_in_bounds(state.evidence, away, state.epsilon, start)
        self.plug_in[near] = plain.bounds
        for number, point, shares, partial in zip(near, plain.points, plain.shares, plain.partial, strict=True):
            self.proofs[number] = {"rule": "plug-in", "theta": point.tolist(), "shares": shares.tolist()}
            if partial is not None:
                self.proofs[number] |= {"theta": partial[0].tolist(), "kept": partial[1].tolist()}
        self._look(near[plain.bounds < state.threshold], plain.points[plain.bounds < state.threshold])
        return plain

    def worth_trying(self, near: Places, way: Way, *, deciding: bool) -> Booleans:
        """Which of those not passed by the plug-in process a way to prove a directional bound may help."""
        bounds = self.directional[near]
        unknown = np.isneginf(bounds)
        lacking = self.state.needed(self.leader) - bounds
        worth = unknown if way.age is None else unknown | ((lacking > 0) & (lacking < HOPELESS))
        return np.asarray(worth & [not deciding or self.witnesses[number] is None for number in near])

    def by_bets(self, way: Way, process: Process, rivals: Places, plain: Passed, worth: Floats) -> None:
        """The directional bounds in one way, where they are better than what there is."""
        state, needed = self.state, self.state.needed(self.leader)
        shares = _shares(way, process, self.items[rivals], worth, state.threshold - plain.bounds)
        linear, sums = process.mixed(self.items[rivals], shares, state.evidence.where)
        given = state.evidence, plain, linear, sums, self.away[rivals], state.epsilon, state.threshold
        if way.age is None:
            tilted = wide_bounds(*given)
        else:
            tilted = directional_bounds(*given, target=needed + 1e-6, age=way.age)
        for place in np.flatnonzero(tilted.bounds > self.directional[rivals]):
            self.directional[rivals[place]] = tilted.bounds[place]
            self.proofs[rivals[place]] = _proof(tilted, int(place), shares[place])
        short = np.flatnonzero(self.directional[rivals] < needed)
        self._look(rivals[short], tilted.reached[short])

    def _look(self, rivals: Places, points: Floats) -> None:
        """Remember points that are witnesses."""
        if len(rivals):
            for place in np.flatnonzero(self.state.lacking(self.leader, self.items[rivals], points) > 0):
                self.witnesses[rivals[place]] = points[place]


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
