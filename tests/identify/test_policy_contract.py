"""Every policy passes the contract that is shipped for policies of others."""

from typing import Any

import pytest

from surepick.identify import Policy
from surepick.registry import policy_named
from surepick.testing import PolicyContract

KNOWN = {"kappa": 0.1}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "anytime": ("anytime", {}),
    "anytime, charged": ("anytime", {"missing": "charged"}),
    "exclusion": ("exclusion", {}),
    "exclusion, charged": ("exclusion", {"missing": "charged"}),
    "winner": ("winner", {}),
    "posterior": ("posterior", {}),
    "winner, charged": ("winner", {"missing": "charged"}),
    "rage-glm": ("rage-glm", KNOWN),
    "rage-glm, nothing known": ("rage-glm", {}),
    "rage-glm, norm bound": ("rage-glm", {"norm_bound": 1.4}),
    "rage-glm-halving": ("rage-glm-halving", KNOWN),
    "rage-glm-printed": ("rage-glm-printed", KNOWN),
    "rage-glm-printed, gap": ("rage-glm-printed", KNOWN | {"elimination": "gap"}),
    "rage-glm-r": ("rage-glm-r", KNOWN),
    "rage-glm-2": ("rage-glm-2", {"norm_bound": 1.4}),
    "passive": ("passive", KNOWN),
    "passive, nothing known": ("passive", {}),
    "passive-printed": ("passive-printed", KNOWN),
    "g-optimal": ("g-optimal", KNOWN),
    "uniform": ("uniform", {}),
    "gl-gape": ("gl-gape", KNOWN),
    "rage-linear": ("rage-linear", {}),
}


@pytest.mark.parametrize("setting", SETTINGS)
class TestContract(PolicyContract):
    @pytest.fixture(autouse=True)
    def _configure(self, setting: str) -> None:
        self.setting = setting
        self.plans_ahead = setting.startswith(("anytime", "exclusion", "winner", "posterior"))
        self.on_average = setting == "posterior"
        if setting.startswith("winner"):
            self.budget = 20_000  # it plans a question at a time, and ties use the budget up
        if setting.startswith("exclusion"):
            self.budget = 3_000  # its cost grows with the stages, and ties use the budget up
        if "nothing known" in setting or setting == "uniform":
            self.turned = 1.5  # the anytime sequence splits batches at random, so a look may double

    def policy(self, **limits: Any) -> Policy[Any]:
        name, options = SETTINGS[self.setting]
        return policy_named(name, **options, **limits)
