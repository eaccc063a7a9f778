"""An independent check of a certificate: every inequality behind a verdict, derived again from the tallies alone.

Nothing of the policy's code is used. Sums over answers are taken answer group by answer group, without its expansions;
the statements proved are those of docs/anytime.md, sections 1 to 3.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick.errors import SurepickError

Floats = NDArray[np.float64]

LOCALISER_SHARE = 0.3
TILT = 0.3
EXPERTS = 4
BETS = 5
FORMAT = 2


class CertificateRefused(SurepickError):
    """A certificate does not prove what it claims."""


@dataclass(frozen=True)
class Checked:
    """What a certificate was found to prove."""

    best: str
    delta: float
    epsilon: float
    answers: int
    nats: Mapping[str, float]
    """Proven evidence against each rival, by its own rule."""

    def __str__(self) -> str:
        claim = "the best" if self.epsilon == 0 else f"within {self.epsilon:g} of the best"
        return f"{self.best} is {claim} with probability {1 - self.delta:g}, proved from {self.answers:,} answers."


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of a certificate without its own field `digest`."""
    text = json.dumps({key: value for key, value in content.items() if key != "digest"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def verify_certificate(certificate: Mapping[str, Any]) -> Checked:
    """Derive the claim of a certificate again, or raise CertificateRefused with the first thing that is wrong."""
    try:
        return _Checker(certificate).run()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, np.linalg.LinAlgError) as error:
        raise CertificateRefused(f"The certificate is damaged: {type(error).__name__} {error}.") from None


class _Checker:
    def __init__(self, certificate: Mapping[str, Any]) -> None:
        if certificate["format"] != FORMAT or certificate["policy"] != "anytime":
            raise CertificateRefused(
                f"Certificates of format {FORMAT} of the policy 'anytime' can be checked, this is format "
                f"{certificate['format']!r} of {certificate['policy']!r}."
            )
        if certificate["digest"] != digest(certificate):
            raise CertificateRefused("The digest does not match: the certificate was changed after it was written.")
        self.given = certificate
        self.delta, self.epsilon = float(certificate["delta"]), float(certificate["epsilon"])
        if not (0 < self.delta < 1 and 0 <= self.epsilon < math.inf):
            raise CertificateRefused(f"delta = {self.delta:g} and epsilon = {self.epsilon:g} cannot be meant.")
        self.items = np.asarray(certificate["problem"]["items"], dtype=np.float64)
        self.names = [each[0] for each in certificate["problem"]["aliases"]]
        rows = _measurements(certificate["problem"], self.items)
        # Coordinates in the span of the measurements: what they do not see is not in any claim.
        _, singular, right = np.linalg.svd(rows, full_matrices=False)
        self.basis = right[singular > 1e-9 * singular[0]].T
        self.rows = rows @ self.basis
        outside = self.items - self.items[0]
        outside = outside - outside @ self.basis @ self.basis.T
        if np.max(np.abs(outside)) > 1e-6 * max(np.max(np.abs(self.items)), 1e-300):
            raise CertificateRefused("Some items differ where no measurement can see it.")
        self.charged = {"ignorable": False, "charged": True}[certificate["missing"]]

    def run(self) -> Checked:
        best = int(self.given["best"])
        if not 0 <= best < len(self.items):
            raise CertificateRefused(f"There is no item {best}.")
        self._replay()
        claims = {int(each["item"]): each for each in self.given["rivals"]}
        nats = {}
        for item in range(len(self.items)):
            if item == best:
                continue
            if item not in claims:
                raise CertificateRefused(f"Nothing is claimed about {self.names[item]!r}, so it may be the best.")
            nats[self.names[item]] = self._rival(claims[item], best, item)
        answers = sum(sum(stage["pulls"]) for stage in self.given["stages"])
        return Checked(self.names[best], self.delta, self.epsilon, answers, nats)

    def _replay(self) -> None:
        """Multiply out the plug-in process, and collect the stages that bet for the leader."""
        count = len(self.rows)
        pulls, wins = np.zeros(count), np.zeros(count)
        scores = np.zeros(EXPERTS)
        snapshots: list[tuple[Floats, Floats, Floats]] = []
        self.bets: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
        leaders: dict[int, int] = {}
        for number, stage in enumerate(self.given["stages"]):
            where = np.asarray(stage["measurements"], dtype=np.int64)
            planned, n, k = (np.asarray(stage[name], dtype=np.float64) for name in ("planned", "pulls", "wins"))
            if not (len(where) == len(planned) == len(n) == len(k) and len(set(where.tolist())) == len(where)):
                raise CertificateRefused(f"Stage {number} does not list one count a measurement.")
            if np.any(where < 0) or np.any(where >= count):
                raise CertificateRefused(f"Stage {number} asks measurements that the problem does not have.")
            if (
                np.any(k < 0)
                or np.any(k > n)
                or np.any(n > planned)
                or np.any(n != np.floor(n))
                or np.any(k != np.floor(k))
            ):
                raise CertificateRefused(
                    f"Stage {number} counts more ones than answers, or more answers than questions."
                )
            if stage["restart"]:
                snapshots.append((pulls.copy(), wins.copy(), scores.copy()))
            predictions = np.asarray(stage["predictions"], dtype=np.float64)
            if predictions.shape != (EXPERTS, len(where)) or not np.all(np.isfinite(predictions)):
                raise CertificateRefused(f"Stage {number} does not have {EXPERTS} predictions of every question.")
            for e in range(EXPERTS):
                yes, no = -_m(-predictions[e]), -_m(predictions[e])
                scores[e] += k @ yes + (n - k) @ no
                if self.charged:
                    scores[e] += (planned - n) @ np.minimum(yes, no)
            pulls[where] += n
            wins[where] += k
            for bet in stage["bets"]:
                process, leader = int(bet["process"]), int(bet["leader"])
                if process < 0 or leaders.setdefault(process, leader) != leader:
                    raise CertificateRefused(f"Process {process} changes its leader in stage {number}.")
                if process == self.given["process"]:
                    self.bets.append((stage, bet))
        if not snapshots:
            raise CertificateRefused("There are no answers before which anything was predicted.")
        self.leader = leaders.get(self.given["process"]) if self.given["process"] is not None else None
        self.asked = np.flatnonzero(pulls)
        self.after = [
            (pulls[self.asked] - before[self.asked], wins[self.asked] - ones[self.asked])
            for before, ones, _ in snapshots
        ]
        self.offsets = [
            math.log(float(np.mean(np.exp(scores - before - np.max(scores - before)))))
            + float(np.max(scores - before))
            - math.log((j + 1) * (j + 2))
            for j, (_, _, before) in enumerate(snapshots)
        ]
        self.threshold = math.log(1 / (LOCALISER_SHARE * self.delta))

    def _minorant(self, shares: Any) -> tuple[Floats, Floats, float]:
        """Counts and constant of the convex function below log E that fixed shares of the restarts give."""
        p = np.asarray(shares, dtype=np.float64)
        if p.shape != (len(self.offsets),) or np.any(p < 0) or abs(p.sum() - 1) > 1e-9:
            raise CertificateRefused("The shares of the restarts are not a distribution.")
        n = sum(share * each[0] for share, each in zip(p, self.after, strict=True))
        k = sum(share * each[1] for share, each in zip(p, self.after, strict=True))
        constant = sum(
            share * (offset - math.log(share)) for share, offset in zip(p, self.offsets, strict=True) if share
        )
        return np.asarray(n), np.asarray(k), float(constant)

    def _rival(self, claim: Mapping[str, Any], best: int, item: int) -> float:
        name, rule = self.names[item], claim["rule"]
        y = (self.items[best] - self.items[item]) @ self.basis
        if rule == "far":
            self._far(y, name)
            return self.threshold
        if rule == "plug-in":
            proved, needed = self._plug_in(claim, y), self.threshold
        elif rule == "directional":
            if self.leader != best:
                raise CertificateRefused(f"The bets against {name!r} were made for another leader.")
            process = int(self.given["process"])
            needed = math.log(1 / (0.6 * 0.4**process * (1 - LOCALISER_SHARE) * self.delta))
            proved = self._directional(claim, y, item, needed)
        else:
            raise CertificateRefused(f"There is no rule {rule!r}.")
        if not proved >= needed:
            raise CertificateRefused(
                f"The evidence against {name!r} is proved to be {proved:.3f} nats by the {rule} rule, "
                f"{needed:.3f} are needed."
            )
        return proved

    def _far(self, y: Floats, name: str) -> None:
        """No θ with log E below the threshold has yᵀθ ≤ −epsilon, by an ellipsoid around all of them."""
        n, k, constant = self._minorant(self.given["far"]["shares"])
        theta = np.asarray(self.given["far"]["theta"]) @ self.basis
        room = self.threshold - (constant + _loss(self.rows[self.asked], n, k, theta))
        x = self.rows[self.asked]
        _, _, radius, inverse = _boxes(x, n, k, theta, 0 * y, 0.0, room)
        if not float(y @ theta) + self.epsilon > radius * math.sqrt(max(float(y @ inverse @ y), 0.0)):
            raise CertificateRefused(f"{name!r} is not far enough behind to be passed without a closer look.")

    def _plug_in(self, claim: Mapping[str, Any], y: Floats) -> float:
        """inf of the minorant over the half-space, by Fenchel's inequality at a balanced q.

        A claim may name the questions it looks at: no loss is negative, so leaving others out only lowers the bound.
        """
        n, k, constant = self._minorant(claim["shares"])
        x, theta = self.rows[self.asked], np.asarray(claim["theta"]) @ self.basis
        if "kept" in claim:
            some = np.isin(self.asked, claim["kept"])
            n, k, x = n[some], k[some], x[some]
            _, sizes, directions = np.linalg.svd(x, full_matrices=False)
            basis = directions[sizes > 1e-9 * sizes[0]].T
            if _norm(y - basis @ (y @ basis)) > 1e-7 * _norm(y):
                return -math.inf
            x, y, theta = x @ basis, y @ basis, theta @ basis
        theta = _onto(theta, y, self.epsilon)
        v = x @ theta
        mu, nu = _mu(v), _mu(-v)
        pushes = (n - k) * mu - k * nu
        gradient, hessian = x.T @ pushes, (x.T * (n * mu * nu)) @ x
        multiplier = max(-float(y @ np.linalg.solve(hessian, gradient)) / float(y @ np.linalg.solve(hessian, y)), 0.0)
        u = x @ np.linalg.solve(hessian, gradient + multiplier * y)
        q = mu - mu * nu * u
        if np.any(((q <= 0) | (q >= 1)) & (n > 0)):
            return -math.inf
        q = np.where(n > 0, q, 0.5)
        # A q* that balances exactly is near: q* = q − s·xᵀH⁻¹·unbalanced, whose entropy is nearly the same.
        # What is unbalanced along y only changes the multiplier; across it, add what rounding may have hidden.
        unit = y / _norm(y)
        unbalanced = x.T @ (pushes - n * mu * nu * u) + multiplier * y
        unbalanced = np.abs(unbalanced - unit * float(unit @ unbalanced))
        unbalanced += 1e-15 * float(
            ((n - k) * mu + k * nu) @ (np.linalg.norm(x - np.outer(x @ unit, unit), axis=1) + 1e-15)
        )
        inverse = np.linalg.inv(hessian)
        far = mu * nu * np.sqrt(np.einsum("xi,ij,xj->x", x, inverse, x) * np.trace(inverse)) * _norm(unbalanced)
        if np.any((far > np.minimum(q, 1 - q) / 2)[n > 0]) or not np.all(np.isfinite(far)):
            return -math.inf
        lost = float(np.sum((n * far * (np.abs(np.log(q) - np.log1p(-q)) + 1))[n > 0]))
        # n·m(v) ≥ n(qv + entropy(q)) for every v; the linear parts add up to −multiplier·yᵀθ ≥ multiplier·epsilon.
        entropy = -_xlogx(q) - _xlogx(1 - q)
        return constant + float(n @ entropy) + multiplier * self.epsilon - lost

    def _directional(self, claim: Mapping[str, Any], y: Floats, item: int, needed: float) -> float:
        """min of the log of the mixed bets over the localiser and the half-space, in passes over shrinking boxes."""
        n, k, constant = self._minorant(claim["shares"])
        x = self.rows[self.asked]
        bets = self._bets(claim["bets"], item)
        centre = _onto(np.asarray(claim["centre"]) @ self.basis, y, self.epsilon)
        mu = _mu(x @ centre)
        gradient, hessian = x.T @ (n * mu - k), (x.T * (n * mu * _mu(-x @ centre))) @ x
        multiplier = max(-float(y @ np.linalg.solve(hessian, gradient)) / float(y @ np.linalg.solve(hessian, y)), 0.0)
        room = max(self.threshold - (constant + _loss(x, n, k, centre)), 1e-6)
        half, depth, _, _ = _boxes(x, n, k, centre, y, multiplier, room)
        low, high = x @ centre - half, x @ centre + half
        proved = -math.inf
        for number, one in enumerate(claim["passes"]):
            theta = _onto(np.asarray(one["theta"]) @ self.basis, y, self.epsilon)
            penalty, bend = float(one["penalty"]), float(one["bend"])
            v = x @ theta
            if not (0 <= penalty < math.inf and 0 <= bend < math.inf) or np.any(v < low) or np.any(v > high):
                return -math.inf
            # The Hessian of L = bets + penalty·(G − threshold) + bend·t(t + depth), t = yᵀθ + epsilon, on the boxes.
            sure = penalty * n - bets.lost(low, high)
            narrow, wide = np.maximum(np.maximum(low, -high), 0.0), np.maximum(np.abs(low), np.abs(high))
            sigma = np.where(sure > 0, _mu(wide) * _mu(-wide), _mu(narrow) * _mu(-narrow))
            hessian = (x.T * (sure * sigma)) @ x + 2 * bend * np.outer(y, y)
            if np.all(sure >= 0) and number == 0:
                gradient = x.T @ (penalty * (n * _mu(v) - k) + bets.slopes(v))
                value = bets.value(v) + penalty * (constant + _loss(x, n, k, theta) - self.threshold)
                proved = max(proved, value - _fall(x, sure * _mu(v) * _mu(-v), gradient, y))
            scale = np.sqrt(np.diag(hessian))
            if not np.all(scale > 0) or np.linalg.eigvalsh(hessian / np.outer(scale, scale))[0] < 1e-8:
                return proved
            inverse = np.linalg.inv(hessian)
            gradient = x.T @ (penalty * (n * _mu(v) - k) + bets.slopes(v)) + bend * depth * y
            multiplier = max(-float(y @ inverse @ gradient) / float(y @ inverse @ y), 0.0)
            gradient = gradient + multiplier * y
            norm = math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
            value = bets.value(v) + penalty * (constant + _loss(x, n, k, theta) - self.threshold)
            bound = value - norm**2 / 2
            proved = max(proved, bound if number == 0 else min(bound, needed))
            # What may still be below the level needed: an ellipsoid around θ, of which boxes and depth are taken.
            left = max(needed - value, 0.0)
            radius = norm + math.sqrt(norm**2 + 2 * left)
            reach = np.sqrt(np.einsum("xi,ij,xj->x", x, inverse, x)) * radius
            low, high = np.maximum(low, v - reach), np.minimum(high, v + reach)
            along = float(y @ inverse @ y)
            depth = min(depth, _root(multiplier, along, left + norm * radius))
        return proved

    def _bets(self, shares: Any, item: int) -> "_Bets":
        """All tilts and predictions against an item, answer group by answer group, with the shares of the bets."""
        p = np.asarray(shares, dtype=np.float64)
        if p.shape != (BETS,) or np.any(p < 0) or abs(p.sum() - 1) > 1e-9:
            raise CertificateRefused("The shares of the bets are not a distribution.")
        place = {int(measurement): number for number, measurement in enumerate(self.asked)}
        fixed = -float(np.sum(_xlogx(p))) - math.log(BETS)
        columns, weights, tilts = [], [], []
        pulled, won = np.zeros(len(self.asked)), np.zeros(len(self.asked))
        for stage, bet in self.bets:
            if item not in bet["rivals"]:
                continue
            shifts = np.asarray(bet["shifts"][bet["rivals"].index(item)], dtype=np.float64) @ self.basis
            for measurement, planned, pulls, wins, logit, limit in zip(
                *(stage[name] for name in ("measurements", "planned", "pulls", "wins")),
                bet["logits"],
                bet["limits"],
                strict=True,
            ):
                if planned == 0 or (pulls == 0 and not self.charged):
                    continue
                missing = planned - pulls if self.charged else 0
                wanted = shifts @ self.rows[measurement]
                predicted = p * (np.abs(wanted) > limit)
                c = np.where(predicted > 0, 0.0, np.clip(wanted, -TILT, TILT))
                yes, no = float(-_m(np.array(-logit))), float(-_m(np.array(logit)))
                fixed += float(p @ c) * wins - float(p @ np.abs(c)) * missing
                fixed += float(predicted.sum()) * (wins * yes + (pulls - wins) * no + missing * min(yes, no))
                if pulls:
                    column = place[measurement]
                    columns.extend([column] * BETS)
                    weights.extend((p * pulls).tolist())
                    tilts.extend(c.tolist())
                    pulled[column] += predicted.sum() * pulls
                    won[column] += predicted.sum() * wins
        at = np.asarray(columns, dtype=np.int64)
        return _Bets(fixed, at, np.asarray(weights), np.asarray(tilts), pulled, won)


@dataclass(frozen=True)
class _Bets:
    """A mix of bets against one rival: fixed + Σ over its answers; `pulled` and `won` of them were predicted."""

    fixed: float
    at: NDArray[np.int64]
    weights: Floats
    tilts: Floats
    pulled: Floats
    won: Floats

    def value(self, v: Floats) -> float:
        tilted = self.weights @ (_m(v[self.at] + self.tilts) - _m(v[self.at]))
        return self.fixed - float(tilted) + float(self.pulled @ _m(v) - self.won @ v)

    def slopes(self, v: Floats) -> Floats:
        result = self.pulled * _mu(v) - self.won
        np.add.at(result, self.at, -self.weights * (_mu(v[self.at] + self.tilts) - _mu(v[self.at])))
        return result

    def lost(self, low: Floats, high: Floats) -> Floats:
        """P: curvature is at least −P·s(v), by s(v+c)/s(v) ≤ exp(|c|·t), t the largest ∓tanh(v/2) on the box."""
        steepest = np.where(self.tilts > 0, np.tanh(-low[self.at] / 2), np.tanh(high[self.at] / 2))
        result = -self.pulled
        np.add.at(result, self.at, self.weights * np.expm1(np.abs(self.tilts) * steepest))
        return result


def _measurements(problem: Mapping[str, Any], items: Floats) -> Floats:
    if "measurements" in problem:
        return np.asarray(problem["measurements"], dtype=np.float64)
    rows = np.array([items[i] - items[j] if j >= 0 else items[i] for i, j in problem["about"]])
    rows[:, -1] += bool(problem.get("position", False))
    return rows


def _boxes(
    x: Floats, n: Floats, k: Floats, theta: Floats, y: Floats, multiplier: float, room: float
) -> tuple[Floats, float, float, Floats]:
    """Bounds of |xᵀ(θ' − θ)| and yᵀ(θ − θ'), and an ellipsoid, for θ' of the half-space with loss at most `room` up."""
    if room <= 0:
        raise CertificateRefused("A localiser without room proves nothing.")
    v = x @ theta
    weight = n * _mu(v) * _mu(-v)
    gradient = x.T @ (n * _mu(v) - k) + multiplier * y
    inverse = np.linalg.inv((x.T * weight) @ x)
    squared = np.einsum("xi,ij,xj->x", x, inverse, x)
    largest = math.sqrt(float(np.max(squared[n > 0])))
    tilt = largest * math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
    if tilt >= 1:
        raise CertificateRefused("The centre of a localiser is too far from its least point.")
    low, high = 0.0, (largest**2 * room + 1) / (1 - tilt)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if math.exp(-middle) + middle - 1 - tilt * middle < largest**2 * room:
            low = middle
        else:
            high = middle
    half = np.sqrt(squared) * high / largest
    for _ in range(7):
        # m(v+w) − m(v) − μ(v)w ≥ ½a·w² for |w| ≤ half, with the a of w = half away from zero
        out, wide = np.abs(v), np.maximum(half, 1e-3)
        steep = np.maximum(_m(out + wide) - _m(out) - _mu(out) * wide - 1e-15 * (out + wide), 0.0) * 2 / wide**2
        inverse = np.linalg.inv((x.T * (n * steep)) @ x)
        slope = math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
        radius = slope + math.sqrt(slope**2 + 2 * room)
        half = np.minimum(half, np.sqrt(np.einsum("xi,ij,xj->x", x, inverse, x)) * radius)
    depth = _root(multiplier, float(y @ inverse @ y), room + slope * radius)
    return np.asarray(half), depth, radius, np.asarray(inverse, dtype=np.float64)


def _fall(x: Floats, weights: Floats, gradient: Floats, y: Floats) -> float:
    """How far a function falls at most on the half-space, whose curvature along x is at least weight·e^{−|move|}."""
    inverse = np.linalg.inv((x.T * weights) @ x)
    multiplier = max(-float(y @ inverse @ gradient) / float(y @ inverse @ y), 0.0)
    total = gradient + multiplier * y
    largest = math.sqrt(float(np.max(np.einsum("xi,ij,xj->x", x, inverse, x))))
    product = largest * math.sqrt(max(float(total @ inverse @ total), 0.0))
    if not product < 1:
        return math.inf
    return (product + (1 - product) * math.log1p(-product)) / largest**2


def _root(multiplier: float, along: float, room: float) -> float:
    """The largest t with multiplier·t + t²/(2·along) ≤ room."""
    return math.sqrt((multiplier * along) ** 2 + 2 * along * room) - multiplier * along


def _onto(theta: Floats, y: Floats, epsilon: float) -> Floats:
    return np.asarray(theta - y * ((float(y @ theta) + epsilon) / float(y @ y)))


def _loss(x: Floats, n: Floats, k: Floats, theta: Floats) -> float:
    v = x @ theta
    return float(k @ _m(-v) + (n - k) @ _m(v))


def _m(v: Floats) -> Floats:
    """log(1+eᵛ)."""
    return np.asarray(np.logaddexp(0.0, v))


def _mu(v: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -v)))


def _norm(vector: Floats) -> float:
    return math.sqrt(float(vector @ vector))


def _xlogx(q: Floats) -> Floats:
    return np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0)
