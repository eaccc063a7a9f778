"""What a user may say of θ* beforehand: options shared by the policies that can use it."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick._arrays import Floats
from surepick.confidence.prior_bounds import Knowledge
from surepick.errors import InvalidInput
from surepick.glm import variance
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Stagewise
from surepick.linalg import norms


@dataclass(frozen=True, kw_only=True)
class Informed(Stagewise):
    """A policy that takes `kappa` ≤ s(xᵀθ*) for all measurement vectors, or `norm_bound` ≥ ‖θ*‖."""

    kappa: float | None = None
    norm_bound: float | None = None

    NEEDS_KNOWLEDGE: ClassVar[bool] = False
    """Whether it cannot do without."""

    @property
    def needs_knowledge(self) -> bool:
        """Whether it cannot do without, in this configuration."""
        return self.NEEDS_KNOWLEDGE

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The logistic model, and what was said of theta."""
        known = [f"Every answer has variance at least kappa = {self.kappa:g}."] if self.kappa is not None else []
        known += [f"The norm of theta is at most {self.norm_bound:g}."] if self.norm_bound is not None else []
        return (*super().assumptions, *known)

    def check(self, problem: Problem) -> None:
        """Refuse impossible knowledge, or none where some is needed."""
        if self.floors(problem) is None and self.needs_knowledge:
            raise InvalidInput(
                f"{self.name} needs kappa, a lower bound of every answer's variance, or norm_bound, got neither; "
                "the corrected RageGlm can do without."
            )

    def floors(self, problem: Problem) -> Floats | None:
        """Lower bounds of s(xᵀθ*) from prior knowledge, None without any; refuses a kappa that norm_bound rules out."""
        knowledge = Knowledge(norm_bound=self.norm_bound, kappa=self.kappa)
        if not knowledge:
            return None
        if self.kappa is not None and self.norm_bound is not None:
            longest = float(norms(problem.measurements).max())
            least = float(variance(np.array(self.norm_bound * longest)))
            if self.kappa < least * (1 - 1e-9):
                raise InvalidInput(
                    f"kappa = {self.kappa:g} is impossible for norm_bound = {self.norm_bound:g}: with vectors no "
                    f"longer than {longest:g}, every answer has variance {least:.3g} or more; leave kappa out, or "
                    "raise norm_bound."
                )
        return knowledge.variance_floor(problem.measurements)

    def believable(self, problem: Problem, theta: Floats) -> Floats:
        """The guess, made shorter until it keeps to kappa and norm_bound."""
        shrink = 1.0
        if self.kappa is not None:
            largest = float(np.max(np.abs(problem.measurements @ theta)))
            shrink = min(shrink, 2 * math.acosh(max(0.5 / math.sqrt(self.kappa), 1.0)) / max(largest, 1e-300))
        if self.norm_bound is not None:
            shrink = min(shrink, self.norm_bound / max(float(np.linalg.norm(theta)), 1e-300))
        return np.asarray(shrink * theta)

    def least_kappa(self, problem: Problem) -> float:
        """The smallest of them, for formulas with a single κ₀."""
        floors = self.floors(problem)
        assert floors is not None  # checked at the start
        return float(floors.min())
