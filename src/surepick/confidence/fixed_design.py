"""Intervals for fixed designs by the corrected theorem: the variance of the query at hand, not the worst 1/kappa.

Statement and proof: docs/theory.md, sections 3 and 4; its constants: `theorem`. `AtEstimate` is what all intervals
centred at the maximum-likelihood estimate share, those of `baselines` too: checked input, the fit, and its conditions.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats
from surepick.confidence.anytime import ConfidenceSet, interval_anytime
from surepick.confidence.prior_bounds import Knowledge
from surepick.confidence.result import Condition, Data, Intervals, Tallies, around, pooled
from surepick.confidence.theorem import Budget, Radii, Version, largest_xi, radii
from surepick.errors import InvalidInput
from surepick.glm import Fit, Tally, fit
from surepick.guarantee import Guarantee
from surepick.linalg import distinct_lines, factor, gram_matrix

Form = Literal["query", "ellipsoid"]

ANYTIME_SHARE = 0.2
"""Share of delta that buys the first bound of xi where what the user knows of theta* does not suffice."""

COMFORTABLE_SHIFT = 1.0
"""Prior knowledge suffices if the theorem at its ξ keeps logits within this; near its limit widths explode."""


@dataclass(frozen=True)
class AtEstimate:
    """One call of a method: the asked vectors with their answers, the queries, and the fit in the middle."""

    delta: float
    tally: Tally
    points: Floats
    estimate: Fit

    @classmethod
    def of(cls, answers: Tallies, queries: ArrayLike, delta: float, fitted: Fit | None) -> "AtEstimate":
        """Check what the caller gave, and fit unless that was done."""
        delta = validate.probability("delta", delta)
        tally = pooled(answers).asked()
        points = validate.matrix("queries", queries, columns=tally.dimension)
        return cls(delta, tally, points, _plain_fit(tally, fitted))

    @property
    def nowhere(self) -> Floats:
        """The width of every query before anything is known."""
        return np.full(len(self.points), np.inf)

    @property
    def rank(self) -> int:
        """Dimension of the span of the asked vectors."""
        return self.estimate.span.rank

    def conditions(self) -> list[Condition]:
        """That the estimate exists, and that it says something of every query."""
        outside = int(np.sum(~self.estimate.span.contains(self.points)))
        return [
            Condition("estimate exists", self.estimate.converged, self.estimate.status.sentence),
            Condition(
                "queries in the span",
                outside == 0,
                f"{outside} of {len(self.points)} queries lie outside the span of the asked vectors, where nothing is "
                "known; ask about vectors that cover them."
                if outside
                else "Every query lies in the span of the asked vectors.",
            ),
        ]

    def intervals(
        self,
        method: str,
        guarantee: Guarantee,
        statement: str,
        width: Floats,
        conditions: Sequence[Condition],
        details: Mapping[str, float],
    ) -> Intervals:
        """Estimate ± width; where there is no estimate or no finite width, the whole line."""
        centre = self.points @ self.estimate.theta
        low, high = around(centre, width)
        return Intervals(
            method=method,
            guarantee=guarantee,
            statement=statement,
            delta=self.delta,
            centre=centre,
            low=low,
            high=high,
            conditions=tuple(conditions),
            details={"d": float(self.rank)} | dict(details),
        )


def fixed_design(data: Data) -> Condition:
    """The condition of all fixed-design theorems."""
    validate.one_of("data", data, ("adaptive", "fixed"))
    return Condition(
        "fixed design",
        data == "fixed",
        "The answers are independent given the questions."
        if data == "fixed"
        else "The questions may have depended on the answers, which this theorem does not allow; "
        "use the anytime method, or say data='fixed' if they did not.",
    )


def _plain_fit(tally: Tally, fitted: Fit | None) -> Fit:
    """The maximum-likelihood fit, the one passed in if it is one: theorems on it say nothing of a penalised fit."""
    if fitted is None:
        return fit(tally)
    if not isinstance(fitted, Fit):
        raise InvalidInput(f"fitted must be a Fit, as returned by surepick.fit, got {fitted!r}.")
    # A fit that converged under constraints has a multiplier; a separated one has NaN there, which is fine.
    if fitted.ridge > 0 or (fitted.converged and fitted.multiplier != 0) or fitted.span.dimension != tally.dimension:
        raise InvalidInput(
            "fitted must be the plain fit of the same answers, without ridge, norm_bound or equality, got ridge "
            f"{fitted.ridge:g}, multiplier {fitted.multiplier:g}, {fitted.span.dimension} columns; "
            "omit it to compute a new fit."
        )
    return fitted


def interval_corrected(
    answers: Tallies,
    queries: ArrayLike,
    *,
    delta: float = 0.05,
    data: Data = "adaptive",
    norm_bound: float | None = None,
    kappa: float | None = None,
    logit_bounds: ArrayLike | None = None,
    form: Form = "query",
    order_seed: int | None = None,
    fitted: Fit | None = None,
    confidence_set: ConfidenceSet | None = None,
) -> Intervals:
    """Intervals for xᵀθ* at all queries at once, by the corrected theorem; the default for fixed designs.

    Any of norm_bound (‖θ*‖), kappa (least variance of an asked vector) or logit_bounds (|xᵀθ*| of each row of the
    tally) bounds ξ from above; where that does not suffice, the anytime sequence does, for a fifth of delta. On the
    theorem's own event ξ is then refined from the fit. If the theorem does not apply all the same, the anytime interval
    at that fifth of delta stands in, under the name "corrected (anytime)", and `reason` says so. form="ellipsoid" holds
    for every x, not only the queries.
    `fitted` and `confidence_set` reuse what was already computed from the same answers. One fit, O(p d²) beyond it.

    >>> tally = Tally([[1.0, 0.0], [0.0, 1.0]], pulls=[900, 900], wins=[500, 400])
    >>> interval_corrected(tally, [[1.0, -1.0]], data="fixed", norm_bound=1.0).valid
    True
    """
    validate.one_of("form", form, ("query", "ellipsoid"))
    at = AtEstimate.of(answers, queries, delta, fitted)
    conditions = [fixed_design(data), *at.conditions()]
    knowledge = Knowledge.for_asked(answers, norm_bound, kappa, logit_bounds)
    width, details = at.nowhere, dict[str, float]()
    around_truth: ConfidenceSet | None = None
    outcome: Radii | None = None
    if at.estimate.converged:
        setting = _AppliedTheorem.of(at, knowledge, form, at.delta)
        xi = setting.xi_known
        # Whether knowledge suffices is known without the answers, so the split of delta may depend on it.
        by_knowledge = radii(xi, at.rank, setting.budget)
        if by_knowledge is None or by_knowledge.shift > COMFORTABLE_SHIFT:
            setting = _AppliedTheorem.of(at, Knowledge(), form, at.delta * (1 - ANYTIME_SHARE))
            around_truth = confidence_set or ConfidenceSet.of(answers, data="fixed", order_seed=order_seed)
            xi = min(xi, _xi_by_anytime(around_truth, at, at.delta * ANYTIME_SHARE))
        outcome, xi_refined = setting.refine(xi)
        details |= {"xi": xi_refined, "xi_before_answers": xi}
        conditions.append(_burn_in(setting, xi, outcome))
        if outcome is not None:
            radius = outcome.query if form == "query" else outcome.ellipsoid
            details |= {"radius": radius, "shift": outcome.shift}
            width = radius * setting.query_norms(outcome.shift)
    name = "corrected" if form == "query" else "corrected-ellipsoid"
    scope = "All queries at once" if form == "query" else "All x at once"
    guarantee = Guarantee.PROVED if data == "fixed" else Guarantee.HEURISTIC
    if around_truth is not None and outcome is None:
        # Its event, of probability 1 − delta/5, is one of those that the corrected interval would have used: to fall
        # back on it after seeing the answers costs nothing. At level delta it would be a choice between two claims.
        found = interval_anytime(answers, at.points, delta=at.delta * ANYTIME_SHARE, confidence_set=around_truth)
        return replace(
            found,
            method=f"{name} (anytime)",
            guarantee=guarantee,
            statement=f"{scope}, by the anytime sequence at a fifth of delta, which stands in where the corrected "
            "theorem does not apply (docs/theory.md, 4 and 5).",
            delta=at.delta,
            conditions=(*_standing_in(conditions), *found.conditions),
            details={"d": float(at.rank)} | details | dict(found.details),
        )
    result = at.intervals(
        name,
        guarantee,
        f"{scope}, for answers independent given the questions (docs/theory.md, corrected theorem).",
        width,
        conditions,
        details,
    )
    return result if around_truth is None else replace(result, order_seed=around_truth.order_seed)


def _standing_in(conditions: Sequence[Condition]) -> list[Condition]:
    """The conditions, where the burn-in fails with a word on what was used instead."""
    used = " Instead of the corrected interval, which would be infinite, this is the anytime interval at delta/5."
    return [
        replace(condition, detail=condition.detail + used)
        if condition.name == "burn-in" and not condition.holds
        else condition
        for condition in conditions
    ]


@dataclass(frozen=True)
class _AppliedTheorem:
    """Everything about one call that does not depend on the current bound of ξ."""

    at: AtEstimate
    budget: Budget
    xi_known: float
    """Bound of ξ from prior knowledge alone; infinite without."""
    xi_estimated: float
    """Largest norm of an asked vector in the inverse information at the estimate: ξ up to a factor e^{D/2}."""
    known_norms: Floats
    """Query norms in the inverse of the information that prior knowledge guarantees."""

    @classmethod
    def of(cls, at: AtEstimate, knowledge: Knowledge, form: Form, delta: float) -> "_AppliedTheorem":
        tally, points, estimate = at.tally, at.points, at.estimate
        rows = estimate.span.coordinates(tally.vectors)
        # ξ = max ‖x‖ in H(θ*)⁻¹ over the asked vectors; any lower bound of H(θ*) bounds it from above.
        floor = knowledge.information_floor(tally, rows) if knowledge else None
        xi_known = math.inf if floor is None else float(floor.inverse_norms(rows).max())
        known_norms = np.full(len(points), np.inf)
        if floor is not None:
            known_norms = floor.inverse_norms(estimate.span.coordinates(points))
        # s ≤ 1/4, so ξ is at least this, whatever θ* is.
        best_case = factor(gram_matrix(rows, tally.pulls / 4.0))
        xi_best = math.inf if best_case is None else float(best_case.inverse_norms(rows).max())
        budget = plan_budget(
            at.rank, delta, xi_best, xi_known, len(distinct_lines(tally.vectors)), *_query_lines(tally, points, form)
        )
        xi_estimated = float(estimate.inverse_norms(tally.vectors).max())
        return cls(at, budget, xi_known, xi_estimated, known_norms)

    def radii(self, xi: float) -> Radii | None:
        """The theorem at ξ, with what the fit lacks to the optimum added (docs/theory.md, 3.7)."""
        # Proposition 2: the gap λ of the fit enters as slack, if kλ < 1 at the estimate.
        gap = self.at.estimate.gap
        near = 1 - self.xi_estimated * gap
        if not (math.isfinite(xi) and near > 0):
            return None
        first = radii(xi, self.at.rank, self.budget)
        if first is None:
            return None
        # The optimum is within D* of θ* and within −log(near) of the estimate, in logits; so the gap, measured at
        # the estimate, is at θ* larger by half their sum in the exponent, at most.
        slack = gap * math.exp(first.shift / 2) / math.sqrt(near)
        return radii(xi, self.at.rank, self.budget, slack=slack)

    def refine(self, xi: float) -> tuple[Radii | None, float]:
        """On the theorem's event ξ ≤ e^{D*/2}·ξ(estimate); iterate while that improves. Costs no extra delta."""
        outcome = self.radii(xi)
        # e^{−D*}·H(θ*) ≤ H(estimate) on the event, and a smaller ξ gives a smaller D*: each round is valid by the last.
        for _ in range(20):
            if outcome is None:
                break
            better = math.exp(outcome.shift / 2) * self.xi_estimated
            if better > xi * (1 - 1e-4):
                break
            xi = better
            outcome = self.radii(xi) or outcome
        return outcome, xi

    def query_norms(self, shift: float) -> Floats:
        """The smaller of two bounds of ‖x‖ in H(θ*)⁻¹: by prior knowledge, and by the estimate."""
        # Both hold on the same event, so the smaller one may be taken query by query.
        inside = self.at.estimate.inverse_norms(self.at.points)
        return np.where(np.isfinite(inside), np.minimum(self.known_norms, math.exp(shift / 2) * inside), np.inf)


def plan_budget(
    dimension: int, delta: float, xi_best: float, xi_known: float, asked_lines: int, query_lines: int, other_lines: int
) -> Budget:
    """Choose version and split of delta without looking at the answers.

    `xi_best` is ξ if every answer had variance 1/4, `xi_known` its bound from prior knowledge (infinite without). The
    split is the one of smallest radius at their geometric mean, where the refined ξ tends to end, among those whose
    burn-in holds at xi_known. `other_lines` counts the query lines that were not asked. Without query lines the
    ellipsoid is what counts.
    """
    # Nothing here may depend on an answer: the split of delta must be fixed before them (docs/theory.md, 3.8).
    typical = 1.5 * xi_best if math.isinf(xi_known) else math.sqrt(xi_best * xi_known)
    lines: dict[Version, int] = {"norm": query_lines, "union": other_lines}
    options = [
        Budget.split(version, delta, share, asked_lines, lines[version])
        for version in lines
        for share in ((0.03, 0.1, 0.25, 0.5) if query_lines else (0.1, 0.5, 0.9, 0.99))
    ]

    def cost(budget: Budget) -> tuple[bool, float]:
        feasible = math.isinf(xi_known) or radii(xi_known, dimension, budget) is not None
        reached = radii(typical, dimension, budget) if math.isfinite(typical) else None
        if reached is None:
            return not feasible, math.inf
        return not feasible, reached.query if query_lines else reached.ellipsoid

    return min(options, key=cost)


def _query_lines(tally: Tally, points: Floats, form: Form) -> tuple[int, int]:
    """Query lines in all, and those not among the asked ones; the ellipsoid needs none."""
    if form == "ellipsoid":
        return 0, 0
    # A query on the line of an asked vector shares its event: x and 2x, or x and −x, are the same direction.
    asked = {line.tobytes() for line in distinct_lines(tally.vectors)}
    queries = [line.tobytes() for line in distinct_lines(points)]
    return len(queries), sum(line not in asked for line in queries)


def _xi_by_anytime(confidence_set: ConfidenceSet, at: AtEstimate, delta: float) -> float:
    """Bound ξ on the event of the anytime sequence: no logit of an asked vector is off by more than its reach."""
    reach = confidence_set.reach(delta=delta)
    if reach > 200:  # e to that power is beyond any burn-in
        return math.inf
    span = at.estimate.span
    rows = span.coordinates(at.tally.vectors)
    least = span.coordinates(confidence_set.span.embed(confidence_set.least.point))
    # Logits within D of those at the least point: H(θ*) ≥ e^{−D}·H(least), hence ξ ≤ e^{D/2}·ξ(least).
    information = at.tally.information(span.embed(least))
    shape = factor(span.coordinates(span.coordinates(information).T))
    return math.inf if shape is None else math.exp(reach / 2) * float(shape.inverse_norms(rows).max())


def _burn_in(setting: _AppliedTheorem, xi: float, outcome: Radii | None) -> Condition:
    if outcome is not None:
        return Condition("burn-in", True, f"xi is at most {xi:.4g} before refinement; the theorem applies.")
    # Information grows with the answers in proportion, ξ falls with their root: hence the squares below.
    needed = largest_xi(setting.at.rank, setting.budget)
    if math.isfinite(xi):
        times = (xi / needed) ** 2
        more = (times - 1) * setting.at.tally.total
        remedy = (
            f"ask every vector about {times:.3g} times as often "
            f"({f'{math.ceil(more):,}' if more < 1e12 else f'{more:.3g}'} more answers in all), "
            "or give a smaller norm bound if you know one"
        )
    else:
        times = (max(setting.xi_estimated, needed) / needed) ** 2
        remedy = f"ask every vector several times as often (at least {times:.3g} times), or give norm_bound or kappa"
    return Condition("burn-in", False, f"xi is at most {xi:.3g}, but the theorem needs {needed:.3g}: {remedy}.")
