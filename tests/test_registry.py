"""Names of policies on the command line and in logs."""

import pytest

from surepick import RageGlm, interval_faury
from surepick.errors import InvalidInput
from surepick.glm import Tally
from surepick.identify import Anytime
from surepick.registry import POLICIES, policy_by_name, policy_from_json, policy_named


def test_policies_survive_json() -> None:
    for name in POLICIES:
        known = {"norm_bound": 2.0} if name == "rage-glm-2" else {}
        policy = policy_named(name, delta=0.01, epsilon=0.1, **known)
        again = policy_from_json(policy.to_json())
        assert again == policy
        assert type(again) is type(policy)


def test_every_policy_states_its_guarantee_and_assumptions() -> None:
    tags = {name: str(policy_named(name).guarantee) for name in POLICIES}
    assert [name for name, tag in tags.items() if tag == "proved"] == [
        "anytime",
        "exclusion",
        "winner",
        "posterior",
        "rage-glm",
        "rage-glm-halving",
        "passive",
        "g-optimal",
        "uniform",
    ]
    # Without Filippi's factor the width of GLGapE is not that of a published bound.
    assert [name for name, tag in tags.items() if tag == "cited"] == ["rage-glm-2"]
    assert "sqrt(3 + 2 log(1 + 2/lambda_0))" in policy_named("gl-gape").statement
    assert all(policy_named(name).assumptions and policy_named(name).statement for name in POLICIES)
    assert "norm of theta is at most 2" in RageGlm(norm_bound=2.0).assumptions[-1]


def test_what_is_cited_with_a_constant_of_ours_says_so() -> None:
    for name in ("logistic-ucb-1", "logistic-ucb-2"):
        facts = policy_by_name(name, horizon=100, arms=3, norm_bound=2.0).facts
        assert str(facts.guarantee) == "cited"
        assert "our derivation" in facts.statement
    found = interval_faury(Tally([[1.0], [0.5]], [9, 9], [4, 5]), [[1.0]], norm_bound=2.0)
    assert str(found.guarantee) == "cited"
    assert "is our derivation" in found.statement
    assert "our derivation" in policy_named("rage-glm-2").statement


def test_an_option_of_earlier_logs_is_read_or_refused():
    assert policy_from_json({"name": "anytime", "delta": 0.1, "stop": "proved"}) == Anytime(delta=0.1)
    with pytest.raises(InvalidInput, match="assume='population'"):
        policy_from_json({"name": "anytime", "stop": "posterior"})
