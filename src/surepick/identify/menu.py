"""Policies by the names they have on the command line and in logs."""

from collections.abc import Mapping
from typing import Any

from surepick.errors import InvalidInput
from surepick.identify.anytime import Anytime
from surepick.identify.gl_gape import GlGapE
from surepick.identify.rage_glm import RageGlm
from surepick.identify.rage_glm_2 import RageGlm2
from surepick.identify.rage_glm_r import RageGlmR
from surepick.identify.rage_linear import RageLinear
from surepick.identify.stagewise import Stagewise
from surepick.identify.static import GOptimal, Passive, Uniform

POLICIES: dict[str, tuple[type[Stagewise] | type[Anytime], dict[str, Any]]] = {
    "anytime": (Anytime, {}),
    "rage-glm": (RageGlm, {}),
    "rage-glm-halving": (RageGlm, {"targets": "halving"}),
    "rage-glm-printed": (RageGlm, {"constants": "printed"}),
    "rage-glm-r": (RageGlmR, {}),
    "rage-glm-2": (RageGlm2, {}),
    "passive": (Passive, {}),
    "passive-printed": (Passive, {"constants": "printed"}),
    "g-optimal": (GOptimal, {}),
    "uniform": (Uniform, {}),
    "gl-gape": (GlGapE, {}),
    "rage-linear": (RageLinear, {}),
}
"""Name on the command line: the class, and the options that the name implies."""


def policy_named(name: str, **options: Any) -> Stagewise | Anytime:
    """The policy of this name with these options."""
    if name not in POLICIES:
        raise InvalidInput(f"There is no policy {name!r}; there are {', '.join(sorted(POLICIES))}.")
    made, implied = POLICIES[name]
    try:
        return made(**{**implied, **options})
    except TypeError as error:
        raise InvalidInput(f"{name} does not take these options ({error}).") from None


def policy_from_json(fields: Mapping[str, Any]) -> Stagewise | Anytime:
    """An equal policy to the one whose `to_json` gave this."""
    options = dict(fields)
    if "name" not in options:
        raise InvalidInput(f"This is not a policy written by surepick: it has no name, only {sorted(options)}.")
    return policy_named(options.pop("name"), **options)
