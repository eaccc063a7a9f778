"""A search beside what others need on the same simulated taste, and beside what nobody can beat."""

from dataclasses import dataclass
from typing import Any

from surepick.baselines import RageGlmPrinted
from surepick.errors import SurepickError
from surepick.identify import run
from surepick.judges import World
from surepick.limits import Instance, lower_bound


@dataclass(frozen=True)
class Comparison:
    """Numbers of questions for the same task."""

    least: float | None
    """No method with this delta asks fewer on average (proved); None where it cannot be computed."""
    printed: int | None
    """RAGE-GLM with its printed constants, told the true κ₀, in one simulated run."""
    pairs: int
    """Every question once."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"lower_bound": self.least, "rage_glm_printed": self.printed, "every_question_once": self.pairs}


def compare(world: World, *, delta: float, seed: int) -> Comparison:
    """Simulate and compute what others need in this world; seconds."""
    problem = world.problem
    try:
        least = lower_bound(
            Instance(problem.measurements, problem.items, world.theta, names=list(problem.names)), delta=delta, gap=0.05
        ).questions
    except SurepickError:  # a tie for the best, or answers certain to the precision of numbers
        least = None
    try:
        policy = RageGlmPrinted(delta=delta, kappa=world.kappa)
        printed = run(problem, policy, world.judge([seed, 3]), seed=seed)
    except SurepickError:
        return Comparison(least, None, len(problem.measurements))
    return Comparison(least, printed.questions if printed.status.decided else None, len(problem.measurements))
