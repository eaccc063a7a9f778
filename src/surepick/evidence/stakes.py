"""Evidence that an item is not the best under the logistic model: stakes at the odds that θ calls fair.

For an item z and a θ under which z is the best, a player bets on every answer before it is given: a share a of the
wealth on 1, a share b on 0. If θ is right, the fair payment is 1/P(answer), so the wealth is multiplied by

    1 − a − b + a·(1 + e^{−v})  after 1,    1 − a − b + b·(1 + e^{v})  after 0,    v = xᵀθ,

of mean 1. Several players with fixed weights start with 1 together, so under θ* their wealth ever reaches 1/δ with
probability at most δ (Ville). An item is excluded when the wealth is at least 1/δ under *every* θ that makes it the
best; that the true best item is ever excluded has probability at most δ (docs/exclusion.md).

The log of every factor is log(1 − b) + log(1 + c·e^{−v}), c = a/(1 − b): a constant and a logistic loss, convex in θ.
So is the log of the summed wealth, and its infimum over the cone of θ under which z is the best is a convex program.
`prove` bounds it from below by Fenchel's inequality; the bound holds at any point, however that was found.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from surepick._arrays import Floats, Integers
from surepick.evidence.likelihood_ratio import log_sum
from surepick.glm import probability_of_yes

GAPS = (1.0, 0.5, 0.25, 0.12)
"""Players who expect the leader to be better than z by so much, in log-odds. Without them a person with gap .35
answered 811 questions on average, with them 673 (8 development seeds)."""

WEIGHTS: Floats = np.array([0.1, 0.2, 0.15, 0.15, 0.15, 0.1, 0.15])
"""Of the players: the predictor who stakes everything, the follower of the estimate, those of `GAPS`, and the one who
bets on losses of z alone, against even odds. With any of them left out: 2 to 8% more questions."""

MOST_STAKE = 0.95
"""No other player than the predictor stakes more on an answer."""

LEAST_CHANCE = 1e-4
"""Answers are not taken for less likely than this, by the predictor or under a θ that is bet against."""

DIGITS = 4
"""Decimals kept of stakes."""

STEEP = 50.0
"""Weight of (how far θ is outside the cone, in standard errors)²/2 in the penalised program."""

ROUNDING = 1e-12
"""Relative error of a sum of terms, with room to spare."""


@dataclass(frozen=True, eq=False)
class Stakes:
    """What the players stake on the answers to a stage, fixed before these are used."""

    chances: Floats
    """Of an answer 1 to each measurement, by the predictor: a = chance, b = 1 − chance, against every item."""
    rivals: Integers
    """Items that the others bet against."""
    signed: Floats
    """Measurements × other players × rivals: the share staked on 1, or minus the share staked on 0."""

    @classmethod
    def of(cls, chances: Floats, rivals: Integers, nulls: Floats, shifts: Floats, shown: Integers) -> "Stakes":
        """Stakes with the largest expected log wealth at the θ of each rival, for players who are right.

        Args:
            chances: what the predictor says, for each measurement.
            rivals: items bet against.
            nulls: rivals × measurements: xᵀθ_z at the likeliest θ with which z has caught up with the leader.
            shifts: rivals × measurements: by how much xᵀθ rises with every log-odd by which the leader is ahead.
            shown: measurements × 2: the items compared.
        """
        chances = np.clip(np.round(chances, DIGITS), LEAST_CHANCE, 1 - LEAST_CHANCE)
        m = np.clip(probability_of_yes(nulls), LEAST_CHANCE, 1 - LEAST_CHANCE)
        expected = [np.broadcast_to(chances, m.shape), *(probability_of_yes(nulls + gap * shifts) for gap in GAPS)]
        # Kelly's bet at odds for a chance m, by a player who expects p: (p − m)/(1 − m) on 1, or (m − p)/m on 0.
        kelly = [np.where(p > m, (p - m) / (1 - m), (p - m) / m) for p in expected]
        edge = np.broadcast_to(2 * chances - 1, m.shape)
        first, second = (rivals[:, None] == shown[:, place] for place in (0, 1))
        loses = (first & (edge < 0)) | (second & (edge > 0))
        signed = np.stack([*kelly, np.where(loses, edge, 0.0)]).transpose(2, 0, 1)
        return cls(chances, rivals, np.round(np.clip(signed, -MOST_STAKE, MOST_STAKE), DIGITS))

    def factors(self, place: int, answer: int, items: int) -> tuple[Floats, Floats]:
        """c and log(1 − b) of every item and player if this is the answer to a measurement of the stage."""
        c, kept = np.zeros((items, len(WEIGHTS))), np.zeros((items, len(WEIGHTS)))
        chance = self.chances[place] if answer else 1 - self.chances[place]
        c[:, 0], kept[:, 0] = 1.0, math.log(chance)
        stake = self.signed[place].T if answer else -self.signed[place].T
        c[self.rivals, 1:] = np.maximum(stake, 0.0)
        kept[self.rivals, 1:] = np.log1p(np.minimum(stake, 0.0))
        return c, kept


class Bound(NamedTuple):
    """A proven lower bound of the log wealth over all θ under which an item is the best, and what it was found with."""

    nats: float
    theta: Floats
    shares: Floats
    """Of the players."""
    multipliers: Floats
    """Of the inequalities of the cone."""


@dataclass(frozen=True, eq=False)
class StakedEvidence:
    """The players' wealth against every item as a function of θ, after the answers counted so far."""

    kept: Floats
    """Items × players: Σ log(1 − b)."""
    where: tuple[Integers, ...] = ()
    """For every stage the measurements of its distinct answers ..."""
    signs: tuple[Floats, ...] = ()
    """... +1 for an answer 1, −1 for 0 ..."""
    times: tuple[Floats, ...] = ()
    """... how often it was given ..."""
    coefficients: tuple[Floats, ...] = ()
    """... and answers × items × players: c."""

    @classmethod
    def of(cls, items: int) -> "StakedEvidence":
        """Before the first answer."""
        return cls(np.zeros((items, len(WEIGHTS))))

    def after(self, stakes: Stakes, where: Integers, pulls: Floats, wins: Floats, missing: Floats) -> "StakedEvidence":
        """With the answers to one more stage.

        A score s between 0 and 1 is counted as s of a one and 1 − s of a zero: the geometric mean of the two factors,
        which is at most the arithmetic one, whose mean is 1. `missing` counts answers that never came: each is charged
        the least factor, 1 − max(a, b).
        """
        items = len(self.kept)
        kept, places, signs, times, coefficients = self.kept.copy(), [], [], [], []
        for place, measurement in enumerate(where.tolist()):
            for answer, count in ((1, wins[place]), (0, pulls[place] - wins[place])):
                c, constant = stakes.factors(place, answer, items)
                if count > 0:
                    kept += count * constant
                    places.append(measurement)
                    signs.append(2.0 * answer - 1.0)
                    times.append(float(count))
                    coefficients.append(c)
            if missing[place] > 0:
                least = [stakes.factors(place, answer, items)[1] for answer in (0, 1)]
                kept += missing[place] * np.minimum(*least)
        return replace(
            self,
            kept=kept,
            where=(*self.where, np.array(places, dtype=np.int64)),
            signs=(*self.signs, np.array(signs)),
            times=(*self.times, np.array(times)),
            coefficients=(*self.coefficients, np.array(coefficients).reshape(-1, *self.kept.shape)),
        )

    def by_losses(self, items: Integers, about: Integers) -> Floats:
        """A lower bound of the log wealth against these items that no θ enters, so that nothing is to be solved.

        Where z lost a comparison, c·e^{−v} ≥ c on its whole cone, since v ≤ 0 there; all other losses are at least 0.
        It proves what answers that all agree leave to a θ at infinity. `about` has the items of every measurement.
        """
        where, times = np.concatenate(self.where), np.concatenate(self.times)
        losers = np.where(np.concatenate(self.signs) > 0, about[where, 1], about[where, 0])
        c = np.concatenate([each[:, items] for each in self.coefficients])
        gained = np.einsum("tz,tzk->zk", times[:, None] * (losers[:, None] == items), np.log1p(c))
        return log_sum(self.kept[items] + np.log(WEIGHTS) + gained) - 1e-9

    def against(
        self, items: Integers, rows: Floats, points: Floats, leader: int, epsilon: float, C: Floats
    ) -> "WealthAgainst":
        """The wealth against these items, over all θ under which each is the best, by `epsilon` before the leader.

        C is about the covariance of the estimate: it says how far outside of its cone a θ is.
        """
        where = np.concatenate(self.where)
        c = np.concatenate([each[:, items] for each in self.coefficients])
        normals = points[items][:, None, :] - points
        margins = np.zeros(normals.shape[:2])
        margins[items != leader, leader] = epsilon
        squared = np.einsum("zui,ij,zuj->zu", normals, C, normals)
        return WealthAgainst(
            np.concatenate(self.signs)[:, None] * rows[where],
            np.concatenate(self.times),
            np.ascontiguousarray(c.transpose(1, 2, 0)),
            self.kept[items] + np.log(WEIGHTS),
            normals,
            margins,
            np.divide(STEEP, squared, out=np.zeros_like(squared), where=squared > 0),
        )


@dataclass(frozen=True, eq=False)
class WealthAgainst:
    """log Σ_k exp(constant_k + Σ_i times_i·log(1 + c_ki·e^{−x_iᵀθ})) for several items, each over its own cone.

    The cone is {θ : normalᵀθ ≥ margin for all its normals}; `rows` are the x_i, turned round where the answer was 0.
    """

    rows: Floats
    times: Floats
    coefficients: Floats
    """Items × players × answers."""
    constants: Floats
    """Items × players."""
    normals: Floats
    """Items × inequalities × d."""
    margins: Floats
    steepness: Floats
    """Items × inequalities: the weight of (how far θ violates it)²/2 in the penalised program.

    Too weak a penalty gives a dual bound far below the infimum, so a violation counts by its standard error: in
    log-odds it is tiny between two items that hardly differ."""

    def _odds(self, theta: Floats, some: Integers) -> Floats:
        """c·e^{−v}: some items × players × answers."""
        # The bound of the exponent keeps the numbers finite; points found with it are as good as any others.
        return np.asarray(self.coefficients[some] * np.exp(np.minimum(-theta @ self.rows.T, 300.0))[:, None, :])

    def _terms(self, odds: Floats, some: Integers) -> Floats:
        return np.asarray(self.constants[some] + np.log1p(odds) @ self.times)

    def _outside(self, theta: Floats, some: Integers) -> Floats:
        """By how much every inequality of the cone is violated."""
        inside = np.matmul(self.normals[some], theta[:, :, None])[:, :, 0]
        return np.asarray(np.maximum(self.margins[some] - inside, 0.0))

    def minimise(self, start: Floats, some: Integers, *, steps: int, tolerance: float) -> tuple[Floats, Floats]:
        """Points near the infimum over the cone, and about that infimum, for some of the items.

        Newton's method for f + ½·Σ steepness·outside², every step shortened until it descends. At its minimum the
        multipliers steepness·outside are those of a dual bound, f + Σ steepness·outside², which is what is returned.
        O(items · answers · (players + d²)) per step.
        """
        rho, theta, d = self.steepness, start.copy(), start.shape[1]
        products = (self.rows[:, :, None] * self.rows[:, None, :]).reshape(len(self.rows), d * d)
        found = np.zeros(len(some))
        left = np.arange(len(some))
        odds = self._odds(theta, some)
        terms, out = self._terms(odds, some), self._outside(theta, some)
        for _ in range(steps):
            which, here = some[left], theta[left]
            value = log_sum(terms)
            outside = np.sum(rho[which] * out**2, axis=1)
            penalised = value + outside / 2
            found[left] = value + outside
            p = np.exp(terms - value[:, None])
            q = odds / (1 + odds)
            slopes = np.matmul(q * -self.times, self.rows)
            gradient = np.matmul(p[:, None, :], slopes)[:, 0]
            weights = np.matmul(p[:, None, :], q * (1 - q))[:, 0] * self.times
            spread = (slopes - gradient[:, None, :]) * np.sqrt(p)[:, :, None]
            hessian = (weights @ products).reshape(-1, d, d) + np.matmul(spread.transpose(0, 2, 1), spread)
            root = np.sqrt(rho[which])
            normals = self.normals[which] * (root * (out > 0))[:, :, None]
            gradient = gradient - np.matmul((root * out)[:, None, :], normals)[:, 0]
            hessian += np.matmul(normals.transpose(0, 2, 1), normals)
            hessian += 1e-10 * np.trace(hessian, axis1=1, axis2=2)[:, None, None] * np.eye(d) + 1e-12 * np.eye(d)
            step = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
            decrement = -np.sum(gradient * step, axis=1)
            size, trying = 1.0, np.flatnonzero(decrement > tolerance)
            moving = trying.copy()
            for _ in range(12):
                moved, tried = here[trying] + size * step[trying], which[trying]
                new = self._odds(moved, tried)
                new_terms, new_out = self._terms(new, tried), self._outside(moved, tried)
                after = log_sum(new_terms) + np.sum(rho[tried] * new_out**2, axis=1) / 2
                descends = after <= penalised[trying] - 1e-4 * size * decrement[trying] + 1e-12
                taken = trying[descends]
                theta[left[taken]] = moved[descends]
                odds[taken], terms[taken], out[taken] = new[descends], new_terms[descends], new_out[descends]
                trying = trying[~descends]
                if not len(trying):
                    break
                size /= 4
            moving = np.setdiff1d(moving, trying)
            if not len(moving):
                break
            left, odds, terms, out = left[moving], odds[moving], terms[moving], out[moving]
        return theta, found

    def prove(self, place: int, theta: Floats) -> Bound:
        """A lower bound of the log wealth against one item over its cone, from any point θ.

        For shares p of the players, q in [0, 1] and multipliers λ ≥ 0 of the inequalities nᵀθ ≥ margin,

            log Σ_k e^{L_k} ≥ Σ p_k·L_k + entropy(p),    log(1 + c·e^{−v}) ≥ q·(log c − v) + entropy(q),

        and if Σ p_k·times·q·x = −Σ λn, the linear parts add up to Σ λnᵀθ ≥ Σ λ·margin. At the least point of the
        penalised function q = c·e^{−v}/(1 + c·e^{−v}) balances. From elsewhere one Newton step in q does, up to
        rounding; what that leaves is made up for by q* = q + s·xᵀH⁻¹·(the rest), where s = q(1−q) and H = Σ s·xxᵀ at
        θ, and what this may cost is subtracted. Minus infinity where no such q is found.
        """
        only = np.array([place])
        odds = self._odds(theta[None], only)
        terms = self._terms(odds, only)[0]
        p = np.exp(terms - float(log_sum(terms)))
        p[p < 1e-9] = 0.0
        p /= p.sum()
        multipliers = self.steepness[place] * self._outside(theta[None], only)[0]
        used = p > 0
        c, weights = self.coefficients[place][used], p[used, None] * self.times
        bound = dual_bound(
            self.rows, c, weights, odds[0][used] / (1 + odds[0][used]), multipliers @ self.normals[place]
        )
        constant = float(p[used] @ (self.constants[place][used] - np.log(p[used])))
        nats = constant + bound + float(multipliers @ self.margins[place])
        return Bound(nats - ROUNDING * abs(constant), theta, p, multipliers)


def dual_bound(rows: Floats, c: Floats, weights: Floats, q: Floats, wanted: Floats) -> float:
    """Σ weights·(q·log c + entropy(q)) at a q with Σ weights·q·x = −wanted, less what rounding may have hidden.

    `c`, `weights` and `q` are players × answers. Minus infinity where the q given cannot be balanced.
    """
    bend = q * (1 - q)
    bends = weights * bend
    scale = np.sqrt(np.maximum(np.einsum("kt,td->d", bends, rows**2), 1e-300))
    scaled = rows / scale
    hessian = np.einsum("kt,ti,tj->ij", bends, scaled, scaled)
    if np.linalg.eigvalsh(hessian)[0] < 1e-9:
        return -math.inf
    inverse = np.linalg.inv(hessian)
    for _ in range(2):
        rest = -wanted / scale - np.einsum("kt,kt,td->d", weights, q, scaled)
        q = q + bend * (scaled @ (inverse @ rest))
        if np.any((q < 0) | (q > 1)):
            return -math.inf
    hidden = ROUNDING * (np.abs(wanted / scale) + np.einsum("kt,kt,td->d", weights, q, np.abs(scaled)))
    rest = np.abs(-wanted / scale - np.einsum("kt,kt,td->d", weights, q, scaled)) + hidden
    some = (c > 0) & (q > 0)  # a loss is never negative: q = 0 leaves it out
    off = 2 * (bend * (np.abs(scaled) @ (np.abs(inverse) @ rest)))[some]
    q, c, weights = q[some], c[some], weights[some]
    if np.any(off > np.minimum(q, 1 - q) / 2):
        return -math.inf
    slope = np.abs(np.log(c)) + np.abs(np.log(q)) + np.abs(np.log(np.maximum(1 - q, 1e-17))) + 1
    gained = weights * (q * np.log(c) + entr(q) + entr(1 - q))
    return float(np.sum(gained) - np.sum(weights * off * slope) - ROUNDING * np.sum(np.abs(gained)))
