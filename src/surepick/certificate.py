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
        if certificate["format"] != 1 or certificate["policy"] != "anytime":
            raise CertificateRefused(
                f"Certificates of format 1 of the policy 'anytime' can be checked, this is format "
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
            experts = np.asarray(stage["experts"], dtype=np.float64) @ self.basis
            if experts.shape != (EXPERTS, self.rows.shape[1]):
                raise CertificateRefused(f"Stage {number} does not have {EXPERTS} experts.")
            for e in range(EXPERTS):
                v = self.rows[where] @ experts[e]
                yes, no = -_m(-v), -_m(v)
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
            proved = self._directional(claim, y, item)
            needed = math.log(1 / (0.6 * 0.4**process * (1 - LOCALISER_SHARE) * self.delta))
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
        half, radius, inverse = _boxes(x, n, k, theta, 0 * y, 0.0, room)
        del half
        if not float(y @ theta) + self.epsilon > radius * math.sqrt(max(float(y @ inverse @ y), 0.0)):
            raise CertificateRefused(f"{name!r} is not far enough behind to be passed without a closer look.")

    def _plug_in(self, claim: Mapping[str, Any], y: Floats) -> float:
        """inf of the minorant over the half-space, by Fenchel's inequality at a balanced q."""
        n, k, constant = self._minorant(claim["shares"])
        x = self.rows[self.asked]
        theta = _onto(np.asarray(claim["theta"]) @ self.basis, y, self.epsilon)
        v = x @ theta
        mu, nu = _mu(v), _mu(-v)
        gradient, hessian = x.T @ (n * mu - k), (x.T * (n * mu * nu)) @ x
        multiplier = max(-float(y @ np.linalg.solve(hessian, gradient)) / float(y @ np.linalg.solve(hessian, y)), 0.0)
        u = x @ np.linalg.solve(hessian, gradient + multiplier * y)
        q = mu - mu * nu * u
        if np.any((q < 0) | (q > 1)):
            return -math.inf
        unbalanced = x.T @ (n * q - k) + multiplier * y
        if np.max(np.abs(unbalanced) / np.sqrt(np.diag(hessian))) > 1e-6:
            return -math.inf
        # n·m(v) ≥ n(qv + entropy(q)) for every v; the linear parts add up to −multiplier·yᵀθ ≥ multiplier·epsilon.
        entropy = -_xlogx(q) - _xlogx(1 - q)
        return constant + float(n @ entropy) + multiplier * self.epsilon

    def _directional(self, claim: Mapping[str, Any], y: Floats, item: int) -> float:
        """min of the log of the mixed bets over the localiser and the half-space, by weak duality and convexity."""
        n, k, constant = self._minorant(claim["shares"])
        x = self.rows[self.asked]
        place = {int(measurement): number for number, measurement in enumerate(self.asked)}
        p = np.asarray(claim["bets"], dtype=np.float64)
        if p.shape != (BETS,) or np.any(p < 0) or abs(p.sum() - 1) > 1e-9:
            raise CertificateRefused("The shares of the bets are not a distribution.")
        fixed = -float(np.sum(_xlogx(p))) - math.log(BETS)
        columns, weights, tilts = [], [], []
        for stage, bet in self.bets:
            if item not in bet["rivals"]:
                continue
            shifts = np.asarray(bet["shifts"][bet["rivals"].index(item)], dtype=np.float64) @ self.basis
            for measurement, planned, pulls, wins in zip(
                stage["measurements"], stage["planned"], stage["pulls"], stage["wins"], strict=True
            ):
                if planned == 0 or (pulls == 0 and not self.charged):
                    continue
                c = np.clip(shifts @ self.rows[measurement], -TILT, TILT)
                fixed += float(p @ c) * wins - (float(p @ np.abs(c)) * (planned - pulls) if self.charged else 0.0)
                if pulls:
                    columns.extend([place[measurement]] * BETS)
                    weights.extend((p * pulls).tolist())
                    tilts.extend(c.tolist())
        at, w, c = np.asarray(columns, dtype=np.int64), np.asarray(weights), np.asarray(tilts)
        centre = _onto(np.asarray(claim["centre"]) @ self.basis, y, self.epsilon)
        theta = _onto(np.asarray(claim["theta"]) @ self.basis, y, self.epsilon)
        penalty = float(claim["penalty"])
        if not 0 <= penalty < math.inf:
            return -math.inf
        # Boxes around all θ of the localiser in the half-space.
        mu = _mu(x @ centre)
        gradient, hessian = x.T @ (n * mu - k), (x.T * (n * mu * _mu(-x @ centre))) @ x
        multiplier = max(-float(y @ np.linalg.solve(hessian, gradient)) / float(y @ np.linalg.solve(hessian, y)), 0.0)
        room = max(self.threshold - (constant + _loss(x, n, k, centre)), 1e-6)
        half, _, _ = _boxes(x, n, k, centre, y, multiplier, room)
        low, high = x @ centre - half, x @ centre + half
        v = x @ theta
        if np.any(v < low) or np.any(v > high):
            return -math.inf
        # Curvature: s(v+c)/s(v) ≤ exp(|c|·t), t the largest −tanh(v/2) (c > 0) or tanh(v/2) (c < 0) on the box.
        steepest = np.where(c > 0, np.tanh(-low[at] / 2), np.tanh(high[at] / 2))
        lost = np.zeros(len(x))
        np.add.at(lost, at, w * np.expm1(np.abs(c) * steepest))
        sure = penalty * n - lost
        if np.any(sure < 0):
            return -math.inf
        s = _mu(v) * _mu(-v)
        slope = penalty * (n * _mu(v) - k)
        np.add.at(slope, at, -w * (_mu(v[at] + c) - _mu(v[at])))
        inverse = np.linalg.inv((x.T * (sure * s)) @ x)
        gradient = x.T @ slope
        multiplier = max(-float(y @ inverse @ gradient) / float(y @ inverse @ y), 0.0)
        gradient = gradient + multiplier * y
        largest = math.sqrt(float(np.max(np.einsum("xi,ij,xj->x", x, inverse, x)[n > 0])))
        product = largest * math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
        if not product < 1:
            return -math.inf
        error = (product + (1 - product) * math.log1p(-product)) / largest**2
        value = fixed - float(w @ (_m(v[at] + c) - _m(v[at])))
        return value + penalty * (constant + _loss(x, n, k, theta) - self.threshold) - error


def _measurements(problem: Mapping[str, Any], items: Floats) -> Floats:
    if "measurements" in problem:
        return np.asarray(problem["measurements"], dtype=np.float64)
    rows = np.array([items[i] - items[j] if j >= 0 else items[i] for i, j in problem["about"]])
    rows[:, -1] += bool(problem.get("position", False))
    return rows


def _boxes(
    x: Floats, n: Floats, k: Floats, theta: Floats, y: Floats, multiplier: float, room: float
) -> tuple[Floats, float, Floats]:
    """Bounds of |xᵀ(θ' − θ)| for θ' in the half-space whose loss is at most `room` up, and their ellipsoid."""
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
    radius = math.inf
    for _ in range(6):
        inverse = np.linalg.inv((x.T * (weight * 2 / (2 + half))) @ x)
        slope = math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
        radius = slope + math.sqrt(slope**2 + 2 * room)
        half = np.minimum(half, np.sqrt(np.einsum("xi,ij,xj->x", x, inverse, x)) * radius)
    return np.asarray(half), radius, np.asarray(inverse, dtype=np.float64)


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


def _xlogx(q: Floats) -> Floats:
    return np.where(q > 0, q * np.log(np.where(q > 0, q, 1.0)), 0.0)
