"""Names of policies on the command line and in logs."""

from surepick import RageGlm
from surepick.registry import POLICIES, policy_from_json, policy_named


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
        "rage-glm",
        "rage-glm-halving",
        "passive",
        "g-optimal",
        "uniform",
    ]
    assert all(policy_named(name).assumptions and policy_named(name).statement for name in POLICIES)
    assert "norm of theta is at most 2" in RageGlm(norm_bound=2.0).assumptions[-1]
