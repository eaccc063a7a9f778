"""The check of the claim "features": every inequality behind a verdict, derived again from the tallies alone.

Nothing of the policy's code is used. Sums over answers are taken answer group by answer group, without its expansions;
the statements proved are those of docs/anytime.md, sections 1 to 3.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.certificate.claim import Checked
from surepick.certificate.evidence import (
    EvidenceAfter,
    MixedBets,
    boxes,
    fall,
    loss,
    mean,
    norm,
    onto,
    root,
    softplus,
    xlogx,
)
from surepick.certificate.reading import (
    distribution,
    limits,
    measurements,
    names,
    number,
    numbers,
    truth,
    whole,
    wholes,
)
from surepick.errors import CertificateRefused

# Constants of the rule itself (docs/anytime.md), repeated so that the checker imports nothing of the policy.
LOCALISER_SHARE = 0.3
TILT = 0.3
EXPERTS = 4
BETS = 4

ROUNDING = 1e-3
"""Nats by which the writer's arithmetic may differ from the checker's."""


def check_features(certificate: Mapping[str, Any]) -> Checked:
    """Derive the claim of a certificate of `Anytime` again."""
    if "process" in certificate:
        raise CertificateRefused("Earlier versions wrote it, with bets for each leader; they can check it.")
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
        self._replay({whole(claim["stages"], "The number of stages of a proof") for claim in claims.values()})
        nats = {}
        for item in range(count):
            if item == best:
                continue
            if item not in claims:
                raise CertificateRefused(f"Nothing is claimed about {self.names[item]!r}, so it may be the best.")
            nats[self.names[item]] = self._rival(claims[item], best, item)
        given = self.given["stages"]
        answers = sum(sum(stage["pulls"]) + sum(map(len, stage.get("partial", ()))) for stage in given)
        return Checked(self.names[best], self.delta, self.epsilon, answers, nats)

    def _replay(self, lengths: set[int]) -> None:
        """Compute the plug-in process from the tallies, and keep the evidence after each of these numbers of stages."""
        count = len(self.rows)
        pulls, wins = np.zeros(count), np.zeros(count)
        scores = np.zeros(EXPERTS)
        snapshots: list[tuple[Floats, Floats, Floats]] = []
        bets: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
        self.evidence: dict[int, EvidenceAfter] = {}
        for place, stage in enumerate(self.given["stages"]):
            where = wholes(stage["measurements"], f"Measurements of stage {place}", count)
            planned, n, k = (
                wholes(stage[name], f"Counts of stage {place}").astype(np.float64)
                for name in ("planned", "pulls", "wins")
            )
            if not (len(where) == len(planned) == len(n) == len(k) and len(set(where.tolist())) == len(where)):
                raise CertificateRefused(f"Stage {place} does not list one count per measurement.")
            partial = stage.get("partial", [[] for _ in n])
            # An answer of the score s counts as s of a one and 1 − s of a zero: every factor lies below its chord.
            for row, given in zip(range(len(n)), partial, strict=True):
                if not given:
                    continue
                found = numbers(given, f"Partial scores of stage {place}", len(given))
                if np.any((found <= 0) | (found >= 1)):
                    raise CertificateRefused(f"Partial scores of stage {place} must lie between 0 and 1.")
                n[row], k[row] = n[row] + len(found), k[row] + float(found.sum())
            if np.any(k > n) or np.any(n > planned):
                raise CertificateRefused(
                    f"Stage {place} counts more ones than answers, or more answers than questions."
                )
            counted = {**stage, "pulls": n.tolist(), "wins": k.tolist()}
            if truth(stage["restart"], "restart"):
                snapshots.append((pulls.copy(), wins.copy(), scores.copy()))
            predictions = numbers(stage["predictions"], f"Predictions of stage {place}", EXPERTS, len(where))
            # Log-scores of the experts; a missing answer is charged the worse of its two scores.
            for e in range(EXPERTS):
                yes, no = -softplus(-predictions[e]), -softplus(predictions[e])
                scores[e] += k @ yes + (n - k) @ no
                if self.charged:
                    scores[e] += (planned - n) @ np.minimum(yes, no)
            pulls[where] += n
            wins[where] += k
            if stage["bets"] is not None:
                rivals = wholes(stage["bets"]["rivals"], f"Rivals of the bets of stage {place}", len(self.items))
                if len(set(rivals.tolist())) != len(rivals):  # two bets on the same answers are no fair game
                    raise CertificateRefused(f"Stage {place} bets twice against one item.")
                bets.append((counted, stage["bets"]))
            if place + 1 in lengths:
                self.evidence[place + 1] = EvidenceAfter.after(pulls, wins, scores, snapshots, self.rows, bets)
        if lengths - set(self.evidence):
            raise CertificateRefused("A proof uses stages that the certificate does not have.")
        self.threshold = math.log(1 / (LOCALISER_SHARE * self.delta))

    def _rival(self, claim: Mapping[str, Any], best: int, item: int) -> float:
        name, rule, then = self.names[item], claim["rule"], self.evidence[claim["stages"]]
        # Where an item is the best it is as good as any other, so refuting that it is as good as one of them will do.
        # With epsilon > 0 it must be refuted that it is better by more than that than the item named.
        leader = whole(claim["leader"], "A leader", len(self.items))
        if leader == item or (self.epsilon > 0 and leader != best):
            raise CertificateRefused(f"{name!r} was not compared with the item that is named.")
        y = (self.items[leader] - self.items[item]) @ self.basis
        if not np.any(y):
            raise CertificateRefused(
                f"{name!r} has the features of {self.names[leader]!r}, so no answer tells them apart."
            )
        # The writer states the larger of its two bounds, of which a directional proof needs only the second.
        most = self.threshold if rule == "directional" else -math.inf
        if rule == "far":
            self._far(then, y, name)
            proved, needed = self.threshold, self.threshold
        elif rule == "plug-in":
            proved, needed = self._plug_in(then, claim, y), self.threshold
        elif rule == "directional":
            needed = -math.log((1 - LOCALISER_SHARE) * self.delta)  # the level left by the localiser
            proved = self._directional(then, claim, y, item, needed)
        else:
            raise CertificateRefused(f"There is no rule {rule!r}.")
        if not needed <= proved < math.inf:
            raise CertificateRefused(
                f"The evidence against {name!r} is proved to be {proved:.3f} nats by the {rule} rule, "
                f"{needed:.3f} are needed."
            )
        stated = number(claim["nats"], "nats")
        if stated > max(proved, most) + ROUNDING:
            raise CertificateRefused(f"{stated:.3f} nats are claimed against {name!r}, {proved:.3f} are proved.")
        return proved

    def _far(self, then: EvidenceAfter, y: Floats, name: str) -> None:
        """No θ with log E below the threshold has yᵀθ ≤ −epsilon, by an ellipsoid around all of them."""
        n, k, constant = then.minorant(self.given["far"]["shares"])
        theta = self._point(self.given["far"]["theta"])
        x = then.x
        room = self.threshold - (constant + loss(x, n, k, theta))
        _, _, radius, inverse = boxes(x, n, k, theta, 0 * y, 0.0, room)
        if not float(y @ theta) + self.epsilon > radius * math.sqrt(max(float(y @ inverse @ y), 0.0)):
            raise CertificateRefused(f"{name!r} is not far enough behind for the rule 'far' to exclude it.")

    def _plug_in(self, then: EvidenceAfter, claim: Mapping[str, Any], y: Floats) -> float:
        """inf of the minorant over the half-space, by Fenchel's inequality at a balanced q.

        A claim may name the questions it uses: no loss is negative, so leaving others out only lowers the bound.
        """
        n, k, constant = then.minorant(claim["shares"])
        x, theta = then.x, self._point(claim["theta"])
        if "kept" in claim:
            some = np.isin(then.asked, wholes(claim["kept"], "Questions of a proof", len(self.rows)))
            n, k, x = n[some], k[some], x[some]
            _, sizes, directions = np.linalg.svd(x, full_matrices=False)
            basis = directions[sizes > 1e-9 * sizes[0]].T
            if norm(y - basis @ (y @ basis)) > 1e-7 * norm(y):
                return -math.inf
            x, y, theta = x @ basis, y @ basis, theta @ basis
        theta = onto(theta, y, self.epsilon)
        v = x @ theta
        mu, nu = mean(v), mean(-v)
        pushes = (n - k) * mu - k * nu
        gradient, hessian = x.T @ pushes, (x.T * (n * mu * nu)) @ x
        multiplier = max(-float(y @ np.linalg.solve(hessian, gradient)) / float(y @ np.linalg.solve(hessian, y)), 0.0)
        # Newton's step in q: at the minimiser of the loss on the half-space it balances Σ n(q − k/n)x = −multiplier·y.
        u = x @ np.linalg.solve(hessian, gradient + multiplier * y)
        # 1 − q is kept beside q, which may be one to rounding.
        q, rest = mu * (1 - nu * u), nu * (1 + mu * u)
        if np.any(((q <= 0) | (rest <= 0)) & (n > 0)):
            return -math.inf
        q, rest = np.where(n > 0, q, 0.5), np.where(n > 0, rest, 0.5)
        # A q* that balances exactly is near: q* = q − s·xᵀH⁻¹·unbalanced, whose entropy is nearly the same.
        # What is unbalanced along y only changes the multiplier; across it, add what rounding may have hidden.
        unit = y / norm(y)
        unbalanced = x.T @ (pushes - n * mu * nu * u) + multiplier * y
        unbalanced = np.abs(unbalanced - unit * float(unit @ unbalanced))
        unbalanced += 1e-15 * float(
            ((n - k) * mu + k * nu) @ (np.linalg.norm(x - np.outer(x @ unit, unit), axis=1) + 1e-15)
        )
        inverse = np.linalg.inv(hessian)
        far = mu * nu * np.sqrt(np.einsum("xi,ij,xj->x", x, inverse, x) * np.trace(inverse)) * norm(unbalanced)
        if np.any((far > np.minimum(q, rest) / 2)[n > 0]) or not np.all(np.isfinite(far)):
            return -math.inf
        lost = float(np.sum((n * far * (np.abs(np.log(q) - np.log(rest)) + 1))[n > 0]))
        # n·m(v) ≥ n(qv + entropy(q)) for every v; the linear parts add up to −multiplier·yᵀθ ≥ multiplier·epsilon.
        entropy = -xlogx(q) - xlogx(rest)
        return constant + float(n @ entropy) + multiplier * self.epsilon - lost

    def _directional(self, then: EvidenceAfter, claim: Mapping[str, Any], y: Floats, item: int, needed: float) -> float:
        """min of the log of the mixed bets over the localiser and the half-space, in passes over shrinking boxes."""
        n, k, constant = then.minorant(claim["shares"])
        x = then.x
        bets = self._bets(then, claim["bets"], item)
        centre = onto(self._point(claim["centre"]), y, self.epsilon)
        mu = mean(x @ centre)
        gradient, hessian = x.T @ (n * mu - k), (x.T * (n * mu * mean(-x @ centre))) @ x
        multiplier = max(-float(y @ np.linalg.solve(hessian, gradient)) / float(y @ np.linalg.solve(hessian, y)), 0.0)
        room = max(self.threshold - (constant + loss(x, n, k, centre)), 1e-6)
        half, depth, _, _ = boxes(x, n, k, centre, y, multiplier, room)
        low, high = x @ centre - half, x @ centre + half
        proved = -math.inf
        for place, one in enumerate(claim["passes"]):
            theta = onto(self._point(one["theta"]), y, self.epsilon)
            penalty, bend = number(one["penalty"], "penalty"), number(one["bend"], "bend")
            v = x @ theta
            if penalty < 0 or bend < 0 or not (np.all(v >= low) and np.all(v <= high)):
                return -math.inf
            # The Hessian of L = bets + penalty·(G − threshold) + bend·t(t + depth), t = yᵀθ + epsilon, on the boxes.
            sure = penalty * n - bets.lost(low, high)
            narrow, wide = np.maximum(np.maximum(low, -high), 0.0), np.maximum(np.abs(low), np.abs(high))
            sigma = np.where(sure > 0, mean(wide) * mean(-wide), mean(narrow) * mean(-narrow))
            hessian = (x.T * (sure * sigma)) @ x + 2 * bend * np.outer(y, y)
            if np.all(sure >= 0) and place == 0:
                gradient = x.T @ (penalty * (n * mean(v) - k) + bets.slopes(v))
                value = bets.value(v) + penalty * (constant + loss(x, n, k, theta) - self.threshold)
                proved = max(proved, value - fall(x, sure * mean(v) * mean(-v), gradient, y))
            scale = np.sqrt(np.diag(hessian))
            if not np.all(scale > 0) or np.linalg.eigvalsh(hessian / np.outer(scale, scale))[0] < 1e-8:
                return proved
            inverse = np.linalg.inv(hessian)
            gradient = x.T @ (penalty * (n * mean(v) - k) + bets.slopes(v)) + bend * depth * y
            multiplier = max(-float(y @ inverse @ gradient) / float(y @ inverse @ y), 0.0)
            gradient = gradient + multiplier * y
            norm = math.sqrt(max(float(gradient @ inverse @ gradient), 0.0))
            value = bets.value(v) + penalty * (constant + loss(x, n, k, theta) - self.threshold)
            bound = value - norm**2 / 2
            # From the second pass on the boxes hold only what may be below `needed`, so no more than that is proved.
            proved = max(proved, bound if place == 0 else min(bound, needed))
            # Any θ whose evidence is below `needed` lies in an ellipsoid around this one: shrink the boxes to it.
            left = max(needed - value, 0.0)
            radius = norm + math.sqrt(norm**2 + 2 * left)
            reach = np.sqrt(np.einsum("xi,ij,xj->x", x, inverse, x)) * radius
            low, high = np.maximum(low, v - reach), np.minimum(high, v + reach)
            along = float(y @ inverse @ y)
            depth = min(depth, root(multiplier, along, left + norm * radius))
        return proved

    def _point(self, values: Any) -> Floats:
        """A theta of the certificate, in the span of the measurements."""
        return np.asarray(numbers(values, "A point of a proof", self.items.shape[1]) @ self.basis)

    def _bets(self, then: EvidenceAfter, shares: Any, item: int) -> MixedBets:
        """All tilts and predictions against an item, answer group by answer group, with the shares of the bets."""
        p = distribution(shares, "the bets", BETS)
        place = {int(measurement): number for number, measurement in enumerate(then.asked)}
        fixed = -float(np.sum(xlogx(p))) - math.log(BETS)
        columns, weights, tilts = [], [], []
        pulled, won = np.zeros(len(then.asked)), np.zeros(len(then.asked))
        for stage, bet in then.bets:
            rivals = wholes(bet["rivals"], "Rivals of a bet", len(self.items)).tolist()
            if item not in rivals:
                continue
            asked, dimension = len(stage["measurements"]), self.items.shape[1]
            shifts = numbers(bet["shifts"][rivals.index(item)], "Shifts of a bet", BETS, dimension) @ self.basis
            for measurement, planned, pulls, wins, logit, limit in zip(
                *(stage[name] for name in ("measurements", "planned", "pulls", "wins")),
                numbers(bet["logits"], "Logits of a bet", asked),
                numbers(bet["limits"], "Limits of a bet", asked),
                strict=True,
            ):
                if planned == 0 or (pulls == 0 and not self.charged):
                    continue
                missing = planned - pulls if self.charged else 0
                wanted = shifts @ self.rows[measurement]
                # Where the wanted shift exceeds its limit, the bet is a prediction (`logit`) instead of a tilt.
                predicted = p * (np.abs(wanted) > limit)
                c = np.where(predicted > 0, 0.0, np.clip(wanted, -TILT, TILT))
                yes, no = float(-softplus(np.array(-logit))), float(-softplus(np.array(logit)))
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
        return MixedBets(fixed, at, np.asarray(weights), np.asarray(tilts), pulled, won)
