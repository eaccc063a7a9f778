"""Studies whose questions cannot be planned in time are refused when they are created."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.identify import Problem
from surepick.registry import policy_named
from surepick.session import Session
from surepick.store import plannable
from surepick.store.plannable import MOST_COMPARED, MOST_COORDINATES, require_plannable, require_size


def names(count: int) -> list[str]:
    return [str(number) for number in range(count)]


@pytest.mark.parametrize(
    ("items", "coordinates", "policy", "says"),
    [
        (MOST_COMPARED + 1, 5, "winner", "compares at most 2,000 items, got 2,001"),
        (400, MOST_COORDINATES + 1, "anytime", "at most 300 coordinates, got 301"),
        (400, MOST_COORDINATES + 1, "rage-glm", "use the policy winner"),
    ],
)
def test_sizes_that_take_too_long_are_refused(items: int, coordinates: int, policy: str, says: str) -> None:
    shape: Any = SimpleNamespace(items=np.empty((items, coordinates)))
    with pytest.raises(InvalidInput, match=says):
        require_size(shape, SimpleNamespace(name=policy))  # type: ignore[arg-type]


def test_the_largest_sizes_are_taken() -> None:
    winner, anytime = policy_named("winner"), policy_named("anytime")
    shapes: Any = [SimpleNamespace(items=np.empty(shape)) for shape in ((MOST_COMPARED, 5), (9_000, MOST_COORDINATES))]
    require_size(shapes[0], winner)
    require_size(shapes[1], anytime)


@pytest.mark.parametrize("policy", ["winner", "anytime"])
def test_usual_studies_pass_the_trial(policy: str) -> None:
    features = np.random.default_rng(1).normal(size=(60, 5))
    session = Session(Problem.from_pairs(features, names=names(60)), policy_named(policy))
    require_plannable(session)
    assert len(session.log) == 1  # the trial is a session of its own


def test_slow_plans_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def slow(self: Session, n: int = 1) -> list[Any]:
        now[0] += 2.0
        return ask(self, n)

    ask = Session.ask
    monkeypatch.setattr(Session, "ask", slow)
    monkeypatch.setattr(plannable, "time", SimpleNamespace(process_time=lambda: now[0]))
    with pytest.raises(InvalidInput, match=r"takes about 2\.0 s to plan \(3 items, 3 coordinates, policy winner\)"):
        require_plannable(Session(Problem.from_pairs(names(3))))


@pytest.mark.parametrize("items", [1_000, 2_000])
@pytest.mark.parametrize("features", [5, None])
def test_comparisons_of_many_items_are_planned_in_time(items: int, features: int | None) -> None:
    vectors = np.random.default_rng(1).normal(size=(items, features or 1))
    problem = Problem.from_pairs(vectors, names=names(items)) if features else Problem.from_pairs(names(items))
    session = Session(problem)
    require_size(problem, session.policy)
    require_plannable(session)


def test_a_model_of_many_items_without_features_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 300 coordinates, got 1,000"):
        require_size(Problem.from_pairs(names(1_000)), policy_named("anytime"))
