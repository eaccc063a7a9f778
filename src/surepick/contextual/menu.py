"""All contextual policies by the names they have on the command line and in logs."""

from collections.abc import Callable
from typing import Any, NamedTuple

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


class Task(NamedTuple):
    """What may be known of a stream before it starts; each policy takes what it needs."""

    horizon: int
    arms: int
    """The most arms offered at once."""
    norm_bound: float
    delta: float


_MAKERS: dict[str, Callable[[Task], AnyPolicy]] = {
    "likelihood-ratio-ucb": lambda task: LikelihoodRatioUcb(task.delta),
    "one-pass-ucb": lambda task: OnePassUcb(task.norm_bound, task.delta),
    "sup-logistic": lambda task: SupLogistic(task.horizon, task.delta, most_arms=task.arms),
    "sup-logistic-printed": lambda task: SupLogistic(
        task.horizon, task.delta, most_arms=task.arms, constants="printed"
    ),
    "sup-logistic-tuned": lambda task: SupLogistic(task.horizon, task.delta, alpha=1.0),
    "sup-cb-glm": lambda task: SupCbGlm(task.horizon, task.arms, task.norm_bound, task.delta),
    "ucb-glm": lambda task: UcbGlm(task.horizon, task.norm_bound, task.delta),
    "ucb-glm-tuned": lambda task: UcbGlm(task.horizon, task.norm_bound, task.delta, alpha=1.0),
    "logistic-ucb-1": lambda task: LogisticUcb(task.norm_bound, task.delta, version=1),
    "logistic-ucb-2": lambda task: LogisticUcb(task.norm_bound, task.delta, version=2),
    "ofu-log": lambda task: OfuLog(task.norm_bound, task.delta),
    "ofu-glb": lambda task: OfuGlb(task.norm_bound, task.delta),
    "eco-log": lambda task: EcoLog(task.norm_bound, task.delta),
    "square-cb": lambda task: SquareCb(),
    "logistic-thompson": lambda task: LogisticThompson(),
    "greedy": lambda task: Greedy(),
    "uniform": lambda task: Uniform(),
}

NAMES = tuple(_MAKERS)

CLASSES: dict[str, type[Any]] = {
    type(policy).__name__: type(policy) for policy in (maker(Task(2, 2, 1.0, 0.05)) for maker in _MAKERS.values())
}
"""The classes behind the names, by which logs refer to them."""


def policy_by_name(name: str, *, horizon: int, arms: int, norm_bound: float, delta: float = 0.05) -> AnyPolicy:
    """The policy of this name for `horizon` steps of at most `arms` arms; each takes what it needs of the rest."""
    if name not in _MAKERS:
        raise InvalidInput(f"There is no contextual policy {name!r}; there are {', '.join(NAMES)}.")
    return _MAKERS[name](Task(horizon, arms, norm_bound, delta))
