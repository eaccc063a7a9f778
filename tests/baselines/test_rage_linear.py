"""RAGE for linear bandits, on answers that are not linear."""

from surepick import RageLinear
from surepick.identify import run
from surepick_experiments.worlds import soare


def test_linear_rage_is_marked_as_misspecified() -> None:
    world = soare(3, angle=0.5)
    verdict = run(world.problem, RageLinear(), world.judge(0))
    assert verdict.guarantee == "heuristic"
    assert "1/2 + x'theta" in verdict.assumptions[0]
