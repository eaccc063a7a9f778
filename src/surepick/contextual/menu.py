"""All contextual policies by the names they have on the command line and in logs."""

from collections.abc import Callable
from typing import Any

from surepick.contextual.eco_log import EcoLog
from surepick.contextual.greedy import Greedy
from surepick.contextual.likelihood_ratio import LikelihoodRatioUcb
from surepick.contextual.logistic_ucb import LogisticUcb
from surepick.contextual.ofu_glb import OfuGlb
from surepick.contextual.ofu_log import OfuLog
from surepick.contextual.one_pass import OnePassUcb
from surepick.contextual.policy import AnyPolicy
from surepick.contextual.square_cb import SquareCb
from surepick.contextual.sup_cb_glm import SupCbGlm
from surepick.contextual.sup_logistic import SupLogistic
from surepick.contextual.thompson import LogisticThompson
from surepick.contextual.ucb_glm import UcbGlm
from surepick.contextual.uniform import Uniform
from surepick.errors import InvalidInput

_MAKERS: dict[str, Callable[[int, int, float, float], AnyPolicy]] = {
    "likelihood-ratio-ucb": lambda horizon, arms, bound, delta: LikelihoodRatioUcb(delta),
    "one-pass-ucb": lambda horizon, arms, bound, delta: OnePassUcb(bound, delta),
    "sup-logistic": lambda horizon, arms, bound, delta: SupLogistic(horizon, delta, most_arms=arms),
    "sup-logistic-printed": lambda horizon, arms, bound, delta: SupLogistic(
        horizon, delta, most_arms=arms, constants="printed"
    ),
    "sup-logistic-tuned": lambda horizon, arms, bound, delta: SupLogistic(horizon, delta, alpha=1.0),
    "sup-cb-glm": lambda horizon, arms, bound, delta: SupCbGlm(horizon, arms, bound, delta),
    "ucb-glm": lambda horizon, arms, bound, delta: UcbGlm(horizon, bound, delta),
    "ucb-glm-tuned": lambda horizon, arms, bound, delta: UcbGlm(horizon, bound, delta, alpha=1.0),
    "logistic-ucb-1": lambda horizon, arms, bound, delta: LogisticUcb(bound, delta, version=1),
    "logistic-ucb-2": lambda horizon, arms, bound, delta: LogisticUcb(bound, delta, version=2),
    "ofu-log": lambda horizon, arms, bound, delta: OfuLog(bound, delta),
    "ofu-glb": lambda horizon, arms, bound, delta: OfuGlb(bound, delta),
    "eco-log": lambda horizon, arms, bound, delta: EcoLog(bound, delta),
    "square-cb": lambda horizon, arms, bound, delta: SquareCb(),
    "logistic-thompson": lambda horizon, arms, bound, delta: LogisticThompson(),
    "greedy": lambda horizon, arms, bound, delta: Greedy(),
    "uniform": lambda horizon, arms, bound, delta: Uniform(),
}

NAMES = tuple(_MAKERS)

CLASSES: dict[str, type[Any]] = {
    type(policy).__name__: type(policy) for policy in (maker(2, 2, 1.0, 0.05) for maker in _MAKERS.values())
}
"""The classes behind the names, by which logs refer to them."""


def policy_by_name(name: str, *, horizon: int, arms: int, norm_bound: float, delta: float = 0.05) -> AnyPolicy:
    """The policy of this name for `horizon` steps of at most `arms` arms; each takes what it needs of the rest."""
    if name not in _MAKERS:
        raise InvalidInput(f"There is no contextual policy {name!r}; there are {', '.join(NAMES)}.")
    return _MAKERS[name](horizon, arms, norm_bound, delta)
