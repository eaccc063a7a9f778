"""The directional process: for every item z, bets that theta lies along y = a − z, a being the leader of the moment.

An answer Y to x with tilt c has the factor exp(cY − [m(v+c) − m(v)]), v = xᵀtheta, of mean one under theta; where c
would have to be cut by much, the factor is the likelihood ratio of a fixed prediction instead (docs/anytime.md, section
2, equation (2)). Tilts and predictions are fixed before the answers: `choose_bets` makes good ones, any would be valid.

With phi_c(v) = −[m(v+c) − m(v)] the log of a bet is linear + Σ n·phi_c(v) over all stages. A process keeps the power
sums Σ n·cᵏ/k! and expands phi in c, so that its size does not grow with the number of stages; the remainder is bounded
(docs/anytime.md, section 3, "Sums over stages").
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import softmax

from surepick._arrays import Floats, Integers
from surepick.glm import probability_of_yes, softplus, variance
from surepick.identify.anytime.tuning import TUNING

BETS = len(TUNING.bet_sizes) + 1
"""Bets against each rival, of equal weight: E^{j,z} is their mean. All but the last have a fixed size."""

TERMS = 6
"""Powers of c kept of the expansion of phi."""

# Places of the sums over answers on the first axis of `DirectionalProcess.sums`: 0 … TERMS − 1 hold Σ n·cᵏ/k!, then
REMAINDER = TERMS
"""Σ n·|c|^{TERMS+1}, which bounds what the expansion leaves out."""
POSITIVE, NEGATIVE = TERMS + 1, TERMS + 3
"""Σ n·c and Σ n·c² over positive tilts, and Σ n·|c| and Σ n·c² over negative ones: two places each."""
PREDICTED, PREDICTED_ONES = TERMS + 5, TERMS + 6
"""Answers that were predicted instead of tilted, and the ones among them."""
SUMS = TERMS + 7


@dataclass(frozen=True, eq=False)
class DirectionalBets:
    """The bets in one stage: c = xᵀD against each rival, cut at ±largest_tilt.

    Where |xᵀD| exceeds the limit of x, its answers are predicted with the logit of x instead.
    """

    rivals: Integers
    D: Floats
    """Rivals × bets × d."""
    logits: Floats
    limits: Floats
    """For each vector of the stage, as `logits`."""

    def tilts(self, rows: Floats) -> tuple[Floats, Floats]:
        """c for every rival, bet and vector of the stage, and 1 where answers are predicted (c is 0 there)."""
        wanted = self.D @ rows.T
        predicted = np.abs(wanted) > self.limits
        tilts = np.clip(wanted, -TUNING.largest_tilt, TUNING.largest_tilt)
        return np.where(predicted, 0.0, tilts), predicted.astype(np.float64)

    def to_json(self) -> dict[str, Any]:
        """As a stage's memo has them."""
        return {
            "rivals": self.rivals.tolist(),
            "shifts": self.D.tolist(),
            "logits": self.logits.tolist(),
            "limits": self.limits.tolist(),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "DirectionalBets":
        """Read what `to_json` gave."""
        return cls(
            np.array(given["rivals"], dtype=np.int64),
            np.array(given["shifts"]),
            np.array(given["logits"]),
            np.array(given["limits"]),
        )


@dataclass(frozen=True, eq=False)
class DirectionalProcess:
    """What the bets against each item have come to."""

    rivals: Integers
    """Items bet against so far, by item: the first axis of `linear`, the second of `sums`. All others have bet 1."""
    columns: Integers
    """Measurements asked in it: the last axis of `sums`."""
    linear: Floats
    """Σ c·(ones), plus the log-probability of the answers that were predicted; rivals × bets."""
    sums: Floats
    """Sums over answers; places × rivals × bets × columns."""
    pulls: Floats
    """Answers in it to each column."""

    @classmethod
    def begin(cls) -> "DirectionalProcess":
        """Before its first stage."""
        nothing = np.zeros(0, dtype=np.int64)
        sums = np.zeros((SUMS, 0, BETS, 0))
        return cls(nothing, nothing, np.zeros((0, BETS)), sums, np.zeros(0))

    def after(
        self, bets: DirectionalBets | None, where: Integers, pulls: Floats, wins: Floats, missing: Floats, rows: Floats
    ) -> "DirectionalProcess":
        """With the answers to one more stage: each multiplies the bets by its factor (2).

        Args:
            bets: Fixed before the answers; none before the first ones.
            where: Measurements of the stage.
            pulls: Answers to each of them.
            wins: Ones among these.
            missing: Questions without an answer that are charged the worst (docs/anytime.md, section 4, (19)).
            rows: All measurement vectors of the problem.

        O(rivals · bets · vectors of the stage), and a copy of the sums.
        """
        if bets is None:
            return self
        columns, places = _union(self.columns, where)
        rivals, ranks = _union(self.rivals, bets.rivals)
        sums = np.zeros((SUMS, len(rivals), BETS, len(columns)))
        sums[:, : len(self.rivals), :, : len(self.columns)] = self.sums
        linear = np.concatenate([self.linear, np.zeros((len(rivals) - len(self.rivals), BETS))])
        c, predicted = bets.tilts(rows[where])
        positive, negative = np.maximum(c, 0.0), np.maximum(-c, 0.0)
        signed = np.stack([positive, positive**2, negative, negative**2])
        added = np.concatenate([tilt_powers(c) * pulls, signed * pulls, [predicted * pulls, predicted * wins]])
        kinds = np.arange(BETS)
        sums[:, ranks[:, None, None], kinds[None, :, None], places[None, None, :]] += added
        # −log q and −log(1 − q) of the predicted logit.
        yes, no = softplus(-bets.logits), softplus(bets.logits)
        # The factor of a missing answer is at least e^{−|c|}: cY ≥ min(c, 0) and m(v+c) − m(v) ≤ max(c, 0). That of a
        # predicted one is at least min(q, 1 − q), since no p_theta exceeds one. (19)
        linear[ranks] += c @ wins - np.abs(c) @ missing
        linear[ranks] -= predicted @ (yes * wins + no * (pulls - wins) + np.maximum(yes, no) * missing)
        total = np.concatenate([self.pulls, np.zeros(len(columns) - len(self.columns))])
        total[places] += pulls
        return replace(self, rivals=rivals, columns=columns, linear=linear, sums=sums, pulls=total)

    def log_bets(self, rivals: Integers, rows: Floats, theta: Floats) -> Floats:
        """The log of each bet against each of these rivals at its own row of theta, up to the remainder (18).

        Rivals × bets; O(rivals · bets · columns).
        """
        linear, sums = self.sums_of(rivals)
        v = np.broadcast_to((theta @ rows[self.columns].T)[:, None, :], sums.shape[1:])
        return np.asarray(linear + np.sum(phi(sums, v), axis=2))

    def mean_tilts(self, rivals: Integers) -> Floats:
        """The largest mean |c| on one vector, of each bet against each rival: about the lam that its proof takes."""
        _, sums = self.sums_of(rivals)
        total = sums[POSITIVE] + sums[NEGATIVE]
        return np.asarray(np.max(total / np.maximum(self.pulls, 1.0), axis=2, initial=0.0))

    def curvature(self, rival: int, rows: Floats, theta: Floats) -> Floats:
        """About how much curvature each row costs the evidence against a rival: Σ n·|c·tanh(v/2)|, by its best bets."""
        linear, sums = self.sums_of(np.array([rival]))
        v = rows[self.columns] @ theta
        worth = linear + np.sum(phi(sums, np.broadcast_to(v, sums.shape[1:])), axis=2)
        result = np.zeros(len(rows))
        result[self.columns] = softmax(worth[0]) @ (sums[POSITIVE] + sums[NEGATIVE])[0] * np.abs(np.tanh(v / 2))
        return result

    def mixed(self, rivals: Integers, shares: Floats, where: Integers) -> tuple[Floats, Floats]:
        """The minorant F = Σ p·log(bet) + entropy(p) − log(BETS) of log E^{j,z} for fixed shares p of the bets.

        Its constant for each rival, and its sums (places × rivals × `where`) on these measurements. Jensen's inequality
        (docs/anytime.md, section 3, (11)).
        """
        linear, sums = self.sums_of(rivals)
        safe = np.where(shares > 0, shares, 1.0)
        constant = np.sum(shares * (linear - np.log(safe)), axis=1) - np.log(BETS)
        place = {int(column): number for number, column in enumerate(where)}
        # A vector of which all answers are missing is in no evidence, and its sums are zero.
        answered = self.pulls > 0
        places = np.array([place[int(column)] for column in self.columns[answered]], dtype=np.int64)
        result = np.zeros((SUMS, len(rivals), len(where)))
        result[:, :, places] = np.einsum("zk,jzkx->jzx", shares, sums[..., answered])
        return constant, result

    def sums_of(self, rivals: Integers) -> tuple[Floats, Floats]:
        """Linear terms and sums of these rivals; zero, the log of the bet 1, for those never bet against."""
        rank = {int(item): number for number, item in enumerate(self.rivals)}
        ranks = np.array([rank.get(int(item), -1) for item in rivals], dtype=np.int64)
        known = ranks >= 0
        if known.all():
            return self.linear[ranks], self.sums[:, ranks]
        linear, sums = np.zeros((len(rivals), BETS)), np.zeros((SUMS, len(rivals), BETS, len(self.columns)))
        linear[known] = self.linear[ranks[known]]
        sums[:, known] = self.sums[:, ranks[known]]
        return linear, sums


def choose_bets(
    process: DirectionalProcess,
    rows: Floats,
    rivals: Integers,
    y: Floats,
    theta: Floats,
    planned: tuple[Integers, Floats],
    *,
    nats: Floats,
    epsilon: float,
    target: float,
    inverse: Floats,
) -> DirectionalBets:
    """Shifts D that keep the accumulated gradient proportional to y, and orthogonal to all else (any would be valid).

    D = [H_b + H_p/R]⁻¹(kap·y − G), H_b the information of the stage at the estimate, H_p that of all stages of the
    process and this one, G the accumulated Σ n·x·[mu(v+c) − mu(v)] (docs/anytime.md, section 2, (3)).

    Args:
        process: Whose bets they are.
        rows: Measurement vectors of the problem.
        rivals: Items to bet against.
        y: Leader − rival for each of them; the leader may be another one in every stage.
        theta: The estimate.
        planned: Measurements of the stage, and how often each is asked.
        nats: By which each rival is behind.
        epsilon: Of the null yᵀtheta ≤ −epsilon.
        target: Nats that the bet which follows the estimate aims at.
        inverse: Of the information of all questions at the estimate: for standard errors of logits.

    O(rivals · bets · columns + d³).
    """
    where, pulls = planned
    v = rows @ theta
    s = variance(v)
    asked, columns = rows[where], rows[process.columns]
    H_b = (asked.T * (pulls * s[where])) @ asked
    H_p = H_b + (columns.T * (process.pulls * s[process.columns])) @ columns
    floor = 1e-9 * np.trace(H_p) * np.eye(len(H_p))  # H_p is singular in the first stages
    across = np.linalg.solve(H_p + floor, y.T).T
    v_y = np.einsum("zi,zi->z", y, across)
    kap = _sizes(rows, y, y @ theta + epsilon, nats, target, v_y) / v_y[:, None]
    wanted = kap[:, :, None] * y[:, None, :]
    if len(process.columns) and len(process.rivals):
        _, sums = process.sums_of(rivals)
        mu = np.broadcast_to(probability_of_yes(v[process.columns]), sums.shape[1:])
        G = taylor_sum(sums, mu, 1) @ columns
        along = np.einsum("zi,zki->zk", across, G) / v_y[:, None]
        # What was bet along y is never taken back: that would pay twice for noise in the estimate.
        wanted = np.maximum(kap, along)[:, :, None] * y[:, None, :] - G
    solver = np.linalg.inv(H_b + H_p / TUNING.catch_up + floor)
    # A prediction beats a tilt that is cut by more than the standard error of the prediction.
    limits = TUNING.largest_tilt + np.sqrt(np.einsum("xi,ij,xj->x", asked, inverse, asked))
    D, logits, limits = (np.round(array, TUNING.memo_digits) for array in (wanted @ solver, v[where], limits))
    return DirectionalBets(rivals, D, logits, limits)


def _sizes(rows: Floats, y: Floats, gap: Floats, nats: Floats, target: float, v_y: Floats) -> Floats:
    """Gaps that the bets assume, rivals × bets: fixed ones, and last the estimated gap, shrunk."""
    shrink = 1.0 / (1.0 + 1.0 / np.maximum(2 * nats, 1e-12))
    # √(2·target) standard errors bring the target in expectation.
    follow = np.minimum(np.maximum(gap, 0.0) * shrink, np.sqrt(2 * target * v_y))
    # v_0: the variance of yᵀtheta after evenly spread answers of the largest variance, 1/4.
    even = np.linalg.inv((TUNING.usual_answers * rows.shape[1] / len(rows) / 4) * (rows.T @ rows))
    usual = np.sqrt(2 * TUNING.usual_nats * np.einsum("zi,ij,zj->z", y, even, y))
    return np.column_stack([usual[:, None] * np.array(TUNING.bet_sizes), follow])


# Sums over answers of functions of a small tilt. m⁽ᵏ⁾ = P_k(mu) with P_1 = mu and P_{k+1} = P_k'·mu(1 − mu); for k ≥ 2
# it is s(v) times a bounded polynomial. So Σ n·[m(v+c) − m(v)] = Σ_k S_k·m⁽ᵏ⁾(v), S_k = Σ n·cᵏ/k!.


def _derivatives(count: int) -> list[Polynomial]:
    """P_1, …, P_count."""
    found = [Polynomial([0.0, 1.0])]
    while len(found) < count:
        found.append(found[-1].deriv() * _S)
    return found


def _largest(polynomial: Polynomial) -> float:
    """Its largest absolute value on [0, 1], rounded up."""
    roots = polynomial.deriv().roots()
    inside = [
        float(root.real) for root in np.atleast_1d(roots) if abs(root.imag) < 1e-6 and -1e-6 < root.real < 1 + 1e-6
    ]
    return 1.001 * max(abs(float(polynomial(at))) for at in [0.0, 1.0, *inside])


_S = Polynomial([0.0, 1.0, -1.0])  # s = mu(1 − mu)
_P = _derivatives(TERMS + 2)
_COEFFICIENTS = np.array([np.pad(polynomial.coef, (0, TERMS + 3 - len(polynomial.coef))) for polynomial in _P])

VALUE_REMAINDER = _largest(_P[TERMS]) / math.factorial(TERMS + 1)
"""|Σ_{k>6} cᵏ·m⁽ᵏ⁾(v)/k!| ≤ this · |c|⁷: Taylor, with the largest seventh derivative (18)."""

SLOPE_REMAINDER = math.exp(0.5) * _largest(_P[TERMS + 1] // _S) / math.factorial(TERMS + 1)
"""The same for the derivative by v, relative to s(v): s(v+t) ≤ e^|t|·s(v), and no tilt exceeds 0.5."""


def tilt_powers(c: Floats) -> Floats:
    """cᵏ/k! for k = 1, …, TERMS, and |c|^{TERMS+1} last; a new leading axis."""
    result = np.empty((TERMS + 1, *c.shape))
    result[0] = c
    for k in range(1, TERMS):
        result[k] = result[k - 1] * c / (k + 1)
    result[REMAINDER] = np.abs(c) ** (TERMS + 1)
    return result


def taylor_sum(sums: Floats, mu: Floats, derivative: int) -> Floats:
    """Σ_k S_k·m⁽ᵏ⁺ʲ⁾(v), j = `derivative` in 0, 1, 2: the j-th derivative by v of Σ n·[m(v+c) − m(v)]; mu is mu(v)."""
    return horner(taylor_coefficients(sums, derivative), mu)


def taylor_coefficients(sums: Floats, derivative: int) -> Floats:
    """The same as a polynomial of mu(v), its coefficients on the first axis: what depends on the sums alone."""
    return np.tensordot(_COEFFICIENTS[derivative : derivative + TERMS].T, sums[:TERMS], axes=1)


def horner(coefficients: Floats, mu: Floats) -> Floats:
    """A polynomial of mu(v)."""
    result = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = result * mu + coefficient
    return np.asarray(result)


def phi(sums: Floats, v: Floats) -> Floats:
    """Σ n·phi_c(v) of tilted answers plus −log p_theta of predicted ones, for each vector and up to the remainder.

    With the linear terms it is the log of a bet at v = xᵀtheta.
    """
    predicted = sums[PREDICTED] * softplus(v) - sums[PREDICTED_ONES] * v
    return np.asarray(predicted - taylor_sum(sums, probability_of_yes(v), 0))


def phi_slope(sums: Floats, mu: Floats) -> Floats:
    """The derivative of `phi` by v."""
    return np.asarray(sums[PREDICTED] * mu - sums[PREDICTED_ONES] - taylor_sum(sums, mu, 1))


def _union(known: Integers, more: Integers) -> tuple[Integers, Integers]:
    """All numbers, the known ones first, and where the others are among them."""
    place = {int(number): index for index, number in enumerate(known)}
    for number in more:
        place.setdefault(int(number), len(place))
    return np.fromiter(place, dtype=np.int64), np.array([place[int(number)] for number in more], dtype=np.int64)
