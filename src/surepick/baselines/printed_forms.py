"""What the forms that Jun et al. 2021 print have in common: the option for them, BurnIn, estimate, width and sizes."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.confidence.theorem import printed_gamma
from surepick.design import apportion, g_optimal
from surepick.glm import Tally, fit, variance
from surepick.guarantee import Guarantee
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Filed, Stages
from surepick.identify.staged.prior_knowledge import Informed
from surepick.identify.staged.stage_bounds import Estimate
from surepick.linalg import factor, gram_matrix, span_of


@dataclass(frozen=True, kw_only=True)
class TwoForms(Informed):
    """A policy in two forms: corrected, and with the paper's constants, whose rounding parameter ε is `rounding`."""

    constants: Literal["corrected", "printed"] = "corrected"
    rounding: float = 0.1

    PRINTED_GUARANTEE: ClassVar[Guarantee]
    PRINTED_STATEMENT: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("constants", self.constants, ("corrected", "printed"))
        validate.positive("rounding", self.rounding)

    @property
    def is_printed(self) -> bool:
        """Whether it is the paper's form."""
        return self.constants == "printed"

    @property
    def name(self) -> str:
        """As on the command line, where the paper's form has a name of its own."""
        return f"{self.NAME}-printed" if self.is_printed else self.NAME

    @property
    def guarantee(self) -> Guarantee:
        """What stands behind its verdicts in this form."""
        return self.PRINTED_GUARANTEE if self.is_printed else self.GUARANTEE

    @property
    def statement(self) -> str:
        """What is claimed, and where it is proved."""
        return self.PRINTED_STATEMENT if self.is_printed else self.STATEMENT

    @property
    def needs_knowledge(self) -> bool:
        """The paper's burn-in does."""
        return self.is_printed


def printed_burn_in(problem: Problem, kappa: float, delta: float, rounding: float) -> Draft:
    """n₀ = max{3(1+ε)·d·γ(d)·log(2|X|(2+|X|)/δ)/κ₀, d²/ε} of the G-optimal design (Algorithm 2)."""
    d, count = problem.span.rank, len(problem.rows)
    gamma = printed_gamma(d, 2 + count, delta)
    questions = 3 * (1 + rounding) * d * gamma * math.log(2 * count * (2 + count) / delta) / kappa
    design = g_optimal(problem.rows)
    total = max(math.ceil(max(questions, d * d / rounding)), len(design.support))
    return Draft(design.support, apportion(design.weights, total).counts, {})


def round_nats(problem: Problem, delta: float, number: int) -> float:
    """log(1/δ_k) with δ_k = δ/(2k²·max(|Z|, |X|)·(2+|X|)) (Algorithm 1)."""
    count = len(problem.rows)
    return math.log(2 * number**2 * max(len(problem.items), count) * (2 + count) / delta)


@lru_cache(maxsize=64)  # a stage is looked at two or three times: verdict, plan, gaps
def fitted(problem: Problem, filed: tuple[Filed, ...]) -> Floats | None:
    """Maximum likelihood on all answers of these stages; None where it does not exist in all of the space."""
    pulls, wins = Stages(problem, filed).counts()
    asked = np.flatnonzero(pulls)
    if asked.size == 0:
        return None
    found = fit(Tally(problem.rows[asked], pulls[asked], wins[asked]))
    return found.theta if found.converged and found.span.is_full else None


def with_printed_width(stages: Stages, delta: float, at: Floats | None) -> Estimate | None:
    """The estimate of all these stages with radius 3.5·√(3·log(2|Z|(2+|X|)k²/δ)), k ≥ 1 the round of the last.

    Norms are in H(at)⁻¹ of all that was asked; without `at`, in that at the estimate.
    """
    problem, number = stages.problem, max(int(stages.last.plan.memo["round"]), 1)
    theta = fitted(problem, stages.filed)
    if theta is None:
        return None
    pulls, _ = stages.counts()
    rows = problem.rows[pulls > 0]
    shape = factor(gram_matrix(rows, pulls[pulls > 0] * variance(rows @ (theta if at is None else at))))
    assert shape is not None  # an estimate exists, so the asked vectors span the space
    nats = math.log(2 * len(problem.items) * (2 + len(problem.rows)) * number**2 / delta)
    return Estimate(theta, span_of(rows), shape, 3.5 * math.sqrt(3 * nats))
