"""The check of the claim "features" by the policy exclusion: the wealth against every rival, derived from the tallies.

Nothing of the policy's code is used; the statements are those of docs/exclusion.md. For each rival z the file gives a
point θ, shares p of the players and multipliers λ ≥ 0 of the inequalities (z − u)ᵀθ ≥ margin that make z the best. None
of them needs to be right: the inequality

    log wealth ≥ Σ p_k·(L_k − log p_k),    log(1 + c·e^{−v}) ≥ q·(log c − v) + entropy(q)

holds for every p and q, and where Σ p_k·q·x = −Σ λ(z − u), its linear parts are at least Σ λ·margin on the whole cone.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.certificate.claim import Checked
from surepick.certificate.reading import distribution, limits, measurements, names, number, numbers, whole, wholes
from surepick.errors import CertificateRefused

# Constants of the rule itself, repeated so that the checker imports nothing of the policy. Shares of the players: the
# predictor, who stakes all on both answers, and six who stake a part of their wealth on one answer.
PLAYERS = (0.1, 0.2, 0.15, 0.15, 0.15, 0.1, 0.15)

ROUNDING = 1e-3
"""Nats by which the writer's arithmetic may differ from the checker's."""

TINY = 1e-12
"""Relative error of a sum."""


def check_exclusion(certificate: Mapping[str, Any]) -> Checked:
    """Derive the claim of a certificate of `Exclusion` again."""
    # What overflows or divides by zero ends as an infinity or NaN, which no comparison below lets pass.
    with np.errstate(all="ignore"):
        return _Checker(certificate).run()


class _Checker:
    def __init__(self, certificate: Mapping[str, Any]) -> None:
        self.given = certificate
        self.delta, self.epsilon = limits(certificate)
        self.items = numbers(certificate["problem"]["items"], "Items", -1, -1)
        self.names = names(certificate["problem"], len(self.items))
        rows = measurements(certificate["problem"], self.items)
        # Coordinates in the span of the measurements: what they do not see is not in any claim.
        _, singular, right = np.linalg.svd(rows, full_matrices=False)
        self.basis = right[singular > 1e-9 * singular[0]].T
        self.rows = rows @ self.basis
        outside = self.items - self.items[0]
        outside = outside - outside @ self.basis @ self.basis.T
        if not np.max(np.abs(outside)) <= 1e-6 * max(np.max(np.abs(self.items)), 1e-300):
            raise CertificateRefused("Some items differ in a direction that no measurement covers.")
        self.charged = {"ignorable": False, "charged": True}[certificate["missing"]]

    def run(self) -> Checked:
        count = len(self.items)
        best = whole(self.given["best"], "The best item", count)
        claims = {whole(claim["item"], "A rival", count): claim for claim in self.given["rivals"]}
        if best in claims or len(claims) != len(self.given["rivals"]):
            raise CertificateRefused("An item is named twice, as the best or as a rival.")
        stages = [self._stage(place, stage) for place, stage in enumerate(self.given["stages"])]
        nats = {}
        for item in range(count):
            if item == best:
                continue
            if item not in claims:
                raise CertificateRefused(f"Nothing is claimed about {self.names[item]!r}, so it may be the best.")
            nats[self.names[item]] = self._rival(claims[item], best, item, stages)
        answers = sum(int(sum(pulls)) for _, pulls, *_ in stages)
        return Checked(self.names[best], self.delta, self.epsilon, answers, nats)

    def _stage(self, place: int, stage: Mapping[str, Any]) -> tuple[Any, ...]:
        """Measurements, answers, ones and missing answers of a stage, its predicted chances, rivals and stakes."""
        where = wholes(stage["measurements"], f"Measurements of stage {place}", len(self.rows))
        planned, n, k = (
            wholes(stage[name], f"Counts of stage {place}").astype(np.float64) for name in ("planned", "pulls", "wins")
        )
        if not (len(where) == len(planned) == len(n) == len(k) and len(set(where.tolist())) == len(where)):
            raise CertificateRefused(f"Stage {place} does not list one count per measurement.")
        # An answer of the score s counts as s of a one and 1 − s of a zero: the geometric mean of both factors is at
        # most the arithmetic one.
        for row, scores in zip(range(len(n)), stage.get("partial", [[] for _ in n]), strict=True):
            found = numbers(scores, f"Partial scores of stage {place}", len(scores))
            if np.any((found <= 0) | (found >= 1)):
                raise CertificateRefused(f"Partial scores of stage {place} must lie between 0 and 1.")
            n[row], k[row] = n[row] + len(found), k[row] + float(found.sum())
        if np.any(k > n) or np.any(n > planned):
            raise CertificateRefused(f"Stage {place} counts more ones than answers, or more answers than questions.")
        told = stage["predictions"]
        chances = numbers(told["chances"], f"Chances of stage {place}", len(where))
        rivals = wholes(told["rivals"], f"Rivals of stage {place}", len(self.items)).tolist()
        stakes = np.zeros((len(where), len(PLAYERS) - 1, len(rivals)))
        if rivals:
            stakes = numbers(told["stakes"], f"Stakes of stage {place}", *stakes.shape)
        if len(set(rivals)) < len(rivals) or np.any((chances <= 0) | (chances >= 1)) or np.any(np.abs(stakes) >= 1):
            raise CertificateRefused(f"Stage {place} stakes more than there is, or twice against an item.")
        return where, n, k, (planned - n) * self.charged, chances, rivals, stakes

    def _rival(self, claim: Mapping[str, Any], best: int, item: int, stages: list[tuple[Any, ...]]) -> float:
        """Proven nats against one item, which must suffice to exclude it."""
        name = self.names[item]
        counted = stages[: whole(claim["stages"], "The number of stages of a proof", len(stages) + 1)]
        proved = {"cone": self._on_cone, "losses": self._by_losses}[claim["rule"]](claim, best, item, counted)
        needed = math.log(1 / self.delta)
        if not needed <= proved < math.inf:
            raise CertificateRefused(
                f"The evidence against {name!r} is proved to be {proved:.3f} nats, {needed:.3f} are needed."
            )
        stated = number(claim["nats"], "nats")
        if stated > proved + ROUNDING:
            raise CertificateRefused(f"{stated:.3f} nats are claimed against {name!r}, {proved:.3f} are proved.")
        return proved

    def _by_losses(self, claim: Mapping[str, Any], best: int, item: int, stages: list[tuple[Any, ...]]) -> float:
        """Where the item lost, v ≤ 0 on its cone and log(1 + c·e^{−v}) ≥ log(1 + c); elsewhere it is at least 0."""
        kept, signed, times, c = self._wealth(item, stages)
        others = np.delete(self.items, item, axis=0)
        # Rows are differences of items or their negatives, up to rounding.
        near = np.array([np.min(np.max(np.abs((others - self.items[item]) @ self.basis - x), axis=1)) for x in signed])
        lost = near <= 1e-9 * np.max(np.abs(self.rows))
        logs = kept + np.log(np.array(PLAYERS)) + (times * lost) @ np.log1p(c)
        return float(np.max(logs) + math.log(float(np.sum(np.exp(logs - np.max(logs)))))) - TINY

    def _on_cone(self, claim: Mapping[str, Any], best: int, item: int, stages: list[tuple[Any, ...]]) -> float:
        """The infimum over the cone, from the point, shares and multipliers of the claim."""
        name = self.names[item]
        p = distribution(claim["shares"], "the players", len(PLAYERS))
        kept, signed, times, c = self._wealth(item, stages)
        margins = np.zeros(len(self.items))
        margins[best] = self.epsilon
        multipliers = numbers(claim["multipliers"], "Multipliers of a proof", len(self.items))
        if np.any(multipliers < 0):
            raise CertificateRefused(f"A multiplier of the proof against {name!r} is negative.")
        theta = numbers(claim["theta"], "A point of a proof", self.items.shape[1]) @ self.basis
        pull = multipliers @ ((self.items[item] - self.items) @ self.basis)
        used = p > 0
        constant = float(p[used] @ (kept[used] + np.log(np.array(PLAYERS)[used]) - np.log(p[used])))
        proved = constant + _balanced(signed, c[:, used], times[:, None] * p[used], theta, pull)
        return proved + float(multipliers @ margins) - TINY * abs(constant)

    def _wealth(self, item: int, stages: list[tuple[Any, ...]]) -> tuple[Floats, Floats, Floats, Floats]:
        """Of the players against an item: Σ log(1 − b), and for each answer ±x, how often it was given, and c."""
        kept = np.zeros(len(PLAYERS))
        signed, times, coefficients = [], [], []
        for where, n, k, missing, chances, rivals, stakes in stages:
            for row, measurement in enumerate(where.tolist()):
                on_one = np.zeros(len(PLAYERS))
                on_zero = np.zeros(len(PLAYERS))
                on_one[0], on_zero[0] = chances[row], 1 - chances[row]
                if item in rivals:
                    stake = stakes[row, :, rivals.index(item)]
                    on_one[1:], on_zero[1:] = np.maximum(stake, 0), np.maximum(-stake, 0)
                for sign, count, a, b in ((1, k[row], on_one, on_zero), (-1, n[row] - k[row], on_zero, on_one)):
                    if count > 0:
                        kept += count * np.log1p(-b)
                        signed.append(sign * self.rows[measurement])
                        times.append(count)
                        coefficients.append(a / (1 - b))
                kept += missing[row] * np.log1p(-np.maximum(on_one, on_zero))
        if not times:
            raise CertificateRefused("There are no answers before which anything was predicted.")
        return kept, np.array(signed), np.array(times), np.array(coefficients)


def _balanced(x: Floats, c: Floats, weights: Floats, theta: Floats, pull: Floats) -> float:
    """Σ weights·(q·log c + entropy(q)) at a q with Σ weights·q·x = −pull, found from that of θ.

    `c` and `weights` are answers × players. Newton's step balances q up to rounding. A q* that balances exactly is
    near: q* = q + s·xᵀH⁻¹·(what is left), with s = q(1−q) and H = Σ weights·s·xxᵀ at θ; how much less it
    may be worth is subtracted.
    """
    odds = c * np.exp(-(x @ theta))[:, None]
    q = odds / (1 + odds)
    q[c == 0] = 0.0
    bend = q * (1 - q)
    hessian = (x.T * np.sum(weights * bend, axis=1)) @ x
    unit = np.sqrt(np.diag(hessian))
    if not np.all(unit > 0) or not np.linalg.eigvalsh(hessian / np.outer(unit, unit))[0] > 1e-9:
        return -math.inf
    x, pull = x / unit, pull / unit
    inverse = np.linalg.inv(hessian / np.outer(unit, unit))
    for _ in range(2):
        left = -pull - x.T @ np.sum(weights * q, axis=1)
        q = q + bend * (x @ (inverse @ left))[:, None]
        if not np.all((q >= 0) & (q <= 1)):
            return -math.inf
    most = np.abs(-pull - x.T @ np.sum(weights * q, axis=1))
    most += TINY * (np.abs(pull) + np.abs(x).T @ np.sum(weights * q, axis=1))
    off = 2 * bend * (np.abs(x) @ (np.abs(inverse) @ most))[:, None]
    if not np.all(off <= np.minimum(q, 1 - q) / 2):
        return -math.inf
    some = q > 0
    q, rest, c, weights, off = q[some], np.maximum(1 - q[some], 1e-17), c[some], weights[some], off[some]
    worth = weights * (q * np.log(c) - q * np.log(q) - (1 - q) * np.log(rest))
    lost = weights * off * (np.abs(np.log(c)) + np.abs(np.log(q)) + np.abs(np.log(rest)) + 1)
    return float(np.sum(worth) - np.sum(lost) - TINY * np.sum(np.abs(worth)))
