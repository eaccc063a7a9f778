"""The directional process: for every rival of a frozen leader a bet that θ is shifted where "rival best" shows least.

For rival z, stage b and vector x with tilt c the factor of an answer Y is exp(cY − [m(v+c) − m(v)]), v = xᵀθ, of mean
one under θ; where c would be large, it is the likelihood ratio of a fixed prediction instead. Both are fixed when the
stage is planned (docs/anytime.md, section 2). Sums by powers of c, see `tilt`.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from surepick._arrays import Floats, Integers
from surepick.glm import probability_of_yes, softplus, variance
from surepick.identify.anytime.taylor import TERMS, powers, rise

TILT = 0.3
"""Largest tilt c of one answer, in log-odds; larger ones are cut."""

LEADERS = 2
"""Processes that bet at a time: of the leader, and of those next to it."""

LEAD = 0.5
"""The first process begins when its leader leads by this many nats (of the quadratic approximation)."""

CONTENDER = 1.0
"""An item this many nats behind or less gets a process too."""

SETTLING, SETTLED = 8, 24
"""Answers a dimension from which processes may begin: where few items may be best, and in any case."""

CATCH_UP = 5.0
"""R: how fast a stage makes up for what the accumulated tilt lacks; 3 to 10 make no difference."""

SIZES = np.array([0.5, 0.25, 0.125, 0.0625])
"""Bets of fixed size, in units of the shift that 10·d evenly spread answers would show; one more follows the fit."""

BETS = len(SIZES) + 1
"""Bets against each rival, of equal weight: their mean is what counts."""

USUAL_NATS = 4.0

DIGITS = 6
"""Decimals kept of what is written into a stage's memo."""

POSITIVE, NEGATIVE = TERMS + 1, TERMS + 3
"""Where the sums of n·c and n·c² over positive, and of n·|c| and n·c² over negative tilts begin."""

ASKED, ONES = TERMS + 5, TERMS + 6
"""Where answers that were predicted instead of tilted are counted, and the ones among them."""

SUMS = TERMS + 7


def weight(number: int) -> float:
    """w_j: they sum to one."""
    return 0.6 * 0.4**number


@dataclass(frozen=True, eq=False)
class Process:
    """One process: its frozen leader, and per rival what its bets have come to."""

    number: int
    leader: int
    items: Integers
    """Rivals bet on so far, one a row of the arrays below; against all others nothing was bet."""
    columns: Integers
    """Measurements asked in it, one a column."""
    linear: Floats
    """Σ c·(ones), and the log-probability of the answers that were predicted; rivals × bets."""
    sums: Floats
    """Σ n·cᵏ/k! for k = 1 … TERMS, Σ n·|c|^{TERMS+1}, the four sums of POSITIVE and NEGATIVE, ASKED and ONES; each
    rivals × bets × columns."""
    pulls: Floats
    """Answers in it to each column."""

    @classmethod
    def begin(cls, number: int, leader: int) -> "Process":
        """Before its first stage."""
        nothing = np.zeros(0, dtype=np.int64)
        sums = np.zeros((SUMS, 0, BETS, 0))
        return cls(number, leader, nothing, nothing, np.zeros((0, BETS)), sums, np.zeros(0))

    def after(
        self, where: Integers, pulls: Floats, wins: Floats, missing: Floats, bets: "Bets", rows: Floats
    ) -> "Process":
        """With the answers to one more stage; `missing` answers are charged the worst of both."""
        columns, places = _union(self.columns, where)
        items, ranks = _union(self.items, bets.items)
        sums = np.zeros((SUMS, len(items), BETS, len(columns)))
        sums[:, : len(self.items), :, : len(self.columns)] = self.sums
        linear = np.concatenate([self.linear, np.zeros((len(items) - len(self.items), BETS))])
        tilts, predicted = bets.tilts(rows[where])
        positive, negative = np.maximum(tilts, 0.0), np.maximum(-tilts, 0.0)
        signed = np.stack([positive, positive**2, negative, negative**2])
        added = np.concatenate([powers(tilts) * pulls, signed * pulls, [predicted * pulls, predicted * wins]])
        kinds = np.arange(BETS)
        sums[:, ranks[:, None, None], kinds[None, :, None], places[None, None, :]] += added
        yes, no = softplus(-bets.logits), softplus(bets.logits)
        linear[ranks] += tilts @ wins - np.abs(tilts) @ missing
        linear[ranks] -= predicted @ (yes * wins + no * (pulls - wins) + np.maximum(yes, no) * missing)
        total = np.concatenate([self.pulls, np.zeros(len(columns) - len(self.columns))])
        total[places] += pulls
        return replace(self, items=items, columns=columns, linear=linear, sums=sums, pulls=total)

    def values(self, items: Integers, rows: Floats, theta: Floats) -> Floats:
        """The log of each bet against each of these rivals at the rival's own θ, up to the remainder; rivals × bets."""
        linear, sums = self.rows_of(items)
        logits = np.broadcast_to((theta @ rows[self.columns].T)[:, None, :], sums.shape[1:])
        return np.asarray(linear + np.sum(growth(sums, logits), axis=2))

    def mean_tilts(self, items: Integers) -> Floats:
        """The largest mean |c| on one vector, of each bet against each of these rivals: about the λ its proof takes."""
        _, sums = self.rows_of(items)
        total = sums[POSITIVE] + sums[NEGATIVE]
        return np.asarray(np.max(total / np.maximum(self.pulls, 1.0), axis=2, initial=0.0))

    def bending(self, item: int, rows: Floats, theta: Floats) -> Floats:
        """About how much each row bends the evidence against a rival: Σ n·|c|·|tanh(v/2)|, of its best bets."""
        linear, sums = self.rows_of(np.array([item]))
        logits = rows[self.columns] @ theta
        worth = linear + np.sum(growth(sums, np.broadcast_to(logits, sums.shape[1:])), axis=2)
        result = np.zeros(len(rows))
        result[self.columns] = softmax(worth[0]) @ (sums[POSITIVE] + sums[NEGATIVE])[0] * np.abs(np.tanh(logits / 2))
        return result

    def mixed(self, items: Integers, shares: Floats, where: Integers) -> tuple[Floats, Floats]:
        """For fixed shares p of the bets the minorant Σ p·log(bet) + entropy(p) − log(BETS) of the log of their mean.

        Its constant and its sums, on the measurements `where`.
        """
        linear, sums = self.rows_of(items)
        safe = np.where(shares > 0, shares, 1.0)
        constant = np.sum(shares * (linear - np.log(safe)), axis=1) - np.log(BETS)
        place = {int(column): number for number, column in enumerate(where)}
        answered = self.pulls > 0  # a vector of which all answers are missing is in no evidence, and its sums are zero
        places = np.array([place[int(column)] for column in self.columns[answered]], dtype=np.int64)
        result = np.zeros((SUMS, len(items), len(where)))
        result[:, :, places] = np.einsum("zk,jzkx->jzx", shares, sums[..., answered])
        return constant, result

    def rows_of(self, items: Integers) -> tuple[Floats, Floats]:
        """Linear terms and sums of these rivals, zero for those never bet on."""
        rank = {int(item): number for number, item in enumerate(self.items)}
        ranks = np.array([rank.get(int(item), -1) for item in items], dtype=np.int64)
        known = ranks >= 0
        if known.all():
            return self.linear[ranks], self.sums[:, ranks]
        linear, sums = np.zeros((len(items), BETS)), np.zeros((SUMS, len(items), BETS, len(self.columns)))
        linear[known] = self.linear[ranks[known]]
        sums[:, known] = self.sums[:, ranks[known]]
        return linear, sums


def growth(sums: Floats, logits: Floats) -> Floats:
    """What the answers to each vector add to the log of a bet at v = xᵀθ, up to the linear terms and the remainder."""
    predicted = sums[ASKED] * softplus(logits) - sums[ONES] * logits
    return np.asarray(predicted - rise(sums, probability_of_yes(logits), 0))


@dataclass(frozen=True, eq=False)
class Bets:
    """The bets of one stage: for each rival a shift D; an answer to x is tilted by c = xᵀD, cut at ±TILT.

    Where |c| is beyond the limit of x, its answers are predicted with the logit given for x instead.
    """

    items: Integers
    shifts: Floats
    logits: Floats
    limits: Floats

    def tilts(self, rows: Floats) -> tuple[Floats, Floats]:
        """c for every rival, bet and vector of the stage, and 1 where answers are predicted instead (c is 0 there)."""
        wanted = self.shifts @ rows.T
        predicted = np.abs(wanted) > self.limits
        return np.where(predicted, 0.0, np.clip(wanted, -TILT, TILT)), predicted.astype(np.float64)


def good_bets(
    process: Process,
    rows: Floats,
    points: Floats,
    rivals: Integers,
    theta: Floats,
    planned: tuple[Integers, Floats],
    *,
    behind: Floats,
    epsilon: float,
    nats: float,
    inverse: Floats,
) -> Bets:
    """Shifts that keep the accumulated gradient proportional to y, and orthogonal to all else (any would be valid).

    D = [H_b + H_p/R]⁻¹(κ·y − G), H_b the information of the stage at the estimate, H_p that of all stages of the
    process and this one, G the accumulated Σ n·x·[μ(v+c) − μ(v)], κ = min(gap, √(2·nats·‖y‖²))/‖y‖² in H_p⁻¹: never
    more than √(2·nats) standard errors. A prediction beats a tilt that is cut where its standard error is smaller than
    what is cut off.
    """
    where, pulls = planned
    away = points[process.leader] - points[rivals]
    gap = away @ theta + epsilon
    logits = rows @ theta
    spread = variance(logits)
    now = (rows[where].T * (pulls * spread[where])) @ rows[where]
    before = (rows[process.columns].T * (process.pulls * spread[process.columns])) @ rows[process.columns]
    together = now + before
    floor = 1e-9 * np.trace(together) * np.eye(len(together))
    across = np.linalg.solve(together + floor, away.T).T
    squared = np.einsum("zi,zi->z", away, across)
    doubt = 1.0 / (1.0 + 1.0 / np.maximum(2 * behind, 1e-12))
    follow = np.minimum(np.maximum(gap, 0.0) * doubt, np.sqrt(2 * nats * squared))
    even = np.linalg.inv((10 * rows.shape[1] / len(rows) / 4) * (rows.T @ rows))
    usual = np.sqrt(2 * USUAL_NATS * np.einsum("zi,ij,zj->z", away, even, away))
    fixed = usual[:, None] * SIZES
    strength = np.column_stack([fixed, follow]) / squared[:, None]
    wanted = strength[:, :, None] * away[:, None, :]
    if len(process.columns) and len(process.items):
        _, sums = process.rows_of(rivals)
        yes = probability_of_yes(logits[process.columns])
        gained = rise(sums, np.broadcast_to(yes, sums.shape[1:]), 1) @ rows[process.columns]
        along = np.einsum("zi,zki->zk", across, gained) / squared[:, None]
        # What was bet along y is never taken back.
        wanted = np.maximum(strength, along)[:, :, None] * away[:, None, :] - gained
    solver = np.linalg.inv(now + together / CATCH_UP + floor)
    asked = rows[where]
    limits = TILT + np.sqrt(np.einsum("xi,ij,xj->x", asked, inverse, asked))
    return Bets(rivals, np.round(wanted @ solver, DIGITS), np.round(logits[where], DIGITS), np.round(limits, DIGITS))


def _union(known: Integers, more: Integers) -> tuple[Integers, Integers]:
    """All numbers, the known ones first, and where the others are among them."""
    place = {int(number): index for index, number in enumerate(known)}
    for number in more:
        place.setdefault(int(number), len(place))
    return np.fromiter(place, dtype=np.int64), np.array([place[int(number)] for number in more], dtype=np.int64)
