"""The frame of all staged policies: closing, refusing, prior bounds, and what is kept."""

import json

import numpy as np
import pytest

from helpers import planned
from surepick import GOptimal, InvalidInput, Problem, RageGlm, RageGlm2, RageGlmPrinted, Uniform
from surepick.glm import variance
from surepick.identify import CannotClose, Plan
from surepick.identify.staged import rage_glm
from surepick.identify.staged.stage_bounds import stage_bounds
from surepick.judges import ExpectedJudge
from surepick.registry import POLICIES, policy_from_json, policy_named
from surepick_experiments.worlds import soare


def test_closing_a_stage_early() -> None:
    world = soare(3)
    problem, rng = world.problem, np.random.default_rng(0)
    for missing in ("ignorable", "refuse"):
        policy = RageGlm(kappa=world.kappa, missing=missing)
        state, plan = planned(policy, policy.start(problem), rng)
        assert isinstance(plan, Plan)
        pulls = plan.pulls - 1
        state = policy.update(state, 0, plan.tally(problem, pulls // 2, pulls))
        assert policy.verdict(state).questions == 0  # the stage is not answered
        if missing == "refuse":
            with pytest.raises(CannotClose, match="needs them; answer them"):
                policy.close(state, 0)
        else:
            verdict = policy.verdict(policy.close(state, 0))
            assert verdict.questions == pulls.sum()
            assert "closed without an answer" in verdict.assumptions[-1]


PROBLEM = soare(3).problem


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: RageGlm(delta=0.0), "delta must lie strictly between 0 and 1"),
        (lambda: RageGlm(epsilon=-1.0), "epsilon must not be negative"),
        (lambda: RageGlm(budget=0), "budget must be a whole number of at least 1, got 0"),
        (lambda: RageGlm(budget=2.5), "budget must be a whole number of at least 1, got 2.5"),
        (lambda: RageGlm(missing="guess"), "missing must be one of"),
        (lambda: RageGlm(targets="double"), "targets must be one of"),
        (lambda: RageGlm(kappa=0.3).start(PROBLEM), r"kappa .* lies in \(0, 0.25\], got 0.3"),
        (lambda: RageGlm(kappa=1e-4, norm_bound=2.0).start(PROBLEM), "kappa = 0.0001 is impossible for norm_bound = 2"),
        (lambda: RageGlmPrinted().start(PROBLEM), "rage-glm-printed needs kappa"),
        (lambda: GOptimal().start(PROBLEM), "g-optimal needs kappa"),
        (lambda: RageGlm2(kappa=0.1).start(PROBLEM), "needs norm_bound"),
        (lambda: policy_named("ragglm"), "no policy 'ragglm'"),
        (lambda: RageGlm2(kappa=0.1).start(PROBLEM), "rage-glm-2 needs norm_bound"),
        (lambda: RageGlm2().start(PROBLEM), "rage-glm-2 needs norm_bound"),
        (lambda: policy_from_json({"delta": 0.1}), r"no name, only \['delta'\]"),
        (lambda: policy_named("anytime", warm=3), "option of anytime has a value of the wrong type"),
        (
            lambda: policy_named("uniform", rounds=3),
            "uniform does not use rounds: no policy does. uniform takes delta, epsilon, budget",
        ),
        (
            lambda: (p := RageGlm(kappa=0.1, delta=1e-9, budget=100)).plan(p.start(PROBLEM), np.random.default_rng(0)),
            "budget of 100 questions: the first stage alone takes [0-9,]+, and the whole search is forecast",
        ),
        (lambda: Uniform().close(Uniform().start(PROBLEM), 0), "no stage 0"),
    ],
)
def test_bad_input_gets_a_sentence(call: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        call()
    assert str(caught.value).endswith(".")


def test_norm_bound_and_kappa_give_the_better_floor() -> None:
    short = Problem([[0.1, 0.0], [0.0, 1.0]], np.eye(2))
    both = RageGlm(kappa=0.12, norm_bound=2.0).floors(short)
    assert both is not None
    np.testing.assert_allclose(both, [float(variance(np.array(0.2))), 0.12])
    assert RageGlm().floors(short) is None


@pytest.mark.parametrize("name", POLICIES)
def test_a_stage_that_got_no_answer_is_not_the_end(name: str) -> None:
    world = soare(3, angle=0.5)
    for known in ({}, {"norm_bound": 2.0}):
        try:
            policy = policy_named(name, delta=0.2, **known)
            state = policy.start(world.problem)
        except InvalidInput:  # some need knowledge, some take none
            continue
        for answered in (False, True, False):
            state, plan = planned(policy, state, np.random.default_rng(0))
            assert isinstance(plan, Plan)
            pulls = plan.pulls * answered
            wins = ExpectedJudge(world.theta).wins(world.problem.measurements[plan.measurements], pulls)
            state = policy.close(policy.update(state, plan.stage, plan.tally(world.problem, wins, pulls)), plan.stage)
            verdict = policy.verdict(state)
            if verdict.status.final:
                break
        assert verdict.questions > 0


@pytest.mark.parametrize("name", POLICIES)
def test_a_memo_survives_json_with_the_same_fields(name: str) -> None:
    """What a log of the plan says is all that the policy reads again; nothing is added, lost or renamed on the way."""
    world = soare(3, angle=0.5)
    policy = policy_named(
        name,
        delta=0.2,
        **({} if name in ("anytime", "exclusion", "winner", "posterior", "rage-linear") else {"norm_bound": 2.0}),
    )
    if name in ("anytime", "exclusion", "winner", "posterior"):  # their memos are their own
        return
    state, plan = planned(policy, policy.start(world.problem), np.random.default_rng(0))
    for _ in range(2):
        assert isinstance(plan, Plan)
        assert set(plan.memo) == FIELDS[name][min(plan.stage, 1)]
        logged = json.loads(json.dumps(plan.to_json()))
        assert Plan.from_json(logged).memo == plan.memo
        wins = ExpectedJudge(world.theta).wins(world.problem.measurements[plan.measurements], plan.pulls)
        state, plan = planned(
            policy, policy.update(state, plan.stage, plan.tally(world.problem, wins)), np.random.default_rng(0)
        )


ROUND = {"kind", "round", "alive", "floors", "budget"}
LOOK = {"kind", "look", "alive", "asked", "weights", "first", "budget"}
PRINTED = {"round", "alive", "theta"}
SEED = {"order_seed"}
FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "rage-glm": (ROUND | SEED, ROUND | {"look"}),
    "rage-glm-halving": (ROUND | SEED, ROUND),
    "rage-glm-printed": (PRINTED, PRINTED),
    "rage-glm-r": (PRINTED, PRINTED),
    "rage-glm-2": ({"round", "alive", "floors", "budget"}, {"round", "alive", "floors"}),
    "passive": ({"kind", "look", "alive", "budget"} | SEED, LOOK),
    "passive-printed": ({"round", "alive"}, {"round", "alive", "asked", "weights"}),
    "g-optimal": (LOOK | SEED, LOOK),
    "uniform": (LOOK | SEED, LOOK),
    "gl-gape": (set(), set()),
    "rage-linear": ({"round", "alive"}, {"round", "alive"}),
}
"""Fields of the memos of the first stage and of the second, as logs have them."""


def test_a_memo_of_another_policy_is_refused() -> None:
    policy, other = RageGlm(kappa=0.1), Uniform()
    plan = other.plan(other.start(PROBLEM), np.random.default_rng(0))
    assert isinstance(plan, Plan)
    state = policy.apply(policy.start(PROBLEM), plan)
    with pytest.raises(InvalidInput, match="not the memo of a stage of this policy"):
        policy.update(state, 0, plan.tally(PROBLEM, plan.pulls))


def test_the_estimate_is_made_once_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan, verdict and the next plan read what the answered stage said; only its last answer makes an estimate."""
    world, policy, rng = soare(3), RageGlm(kappa=soare(3).kappa), np.random.default_rng(0)
    made = []
    monkeypatch.setattr(rage_glm, "stage_bounds", lambda *given: made.append(given) or stage_bounds(*given))
    state, judge = policy.start(world.problem), world.judge(1)
    for rounds in range(1, 10):
        state, plan = planned(policy, state, rng)
        if not isinstance(plan, Plan):
            break
        half = plan.pulls // 2
        state = policy.update(state, plan.stage, plan.tally(world.problem, half // 2, half))
        assert len(made) == rounds - 1
        wins = judge.wins(world.problem.measurements[plan.measurements], plan.pulls)
        state = policy.update(state, plan.stage, plan.tally(world.problem, wins))
        policy.verdict(state), policy.verdict(state), policy.plan(state, rng)
        assert len(made) == rounds
    assert rounds > 2
