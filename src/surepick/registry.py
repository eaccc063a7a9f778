"""Everything that has a name on the command line and in logs: policies, contextual policies, interval methods."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple, TypedDict

from numpy.typing import ArrayLike

from surepick import validate
from surepick.baselines.eco_log import EcoLog
from surepick.baselines.gl_gape import GlGapE
from surepick.baselines.intervals import interval_faury, interval_li, interval_printed, interval_wald
from surepick.baselines.logistic_ucb import LogisticUcb
from surepick.baselines.ofu import OfuGlb, OfuLog
from surepick.baselines.printed_forms import PassivePrinted, RageGlmPrinted, RageGlmR
from surepick.baselines.rage_glm_2 import RageGlm2
from surepick.baselines.rage_linear import RageLinear
from surepick.baselines.simple import Greedy, LogisticThompson, SquareCb, UniformArms
from surepick.baselines.sup_policies import SupCbGlm, SupLogisticPrinted
from surepick.baselines.ucb_glm import UcbGlm
from surepick.confidence.anytime import ConfidenceSet, interval_anytime
from surepick.confidence.fixed_design import interval_corrected
from surepick.confidence.result import Data, Intervals, Tallies, pooled
from surepick.contextual.likelihood_ratio import LikelihoodRatioUcb
from surepick.contextual.one_pass import OnePassUcb
from surepick.contextual.policy import AnyPolicy
from surepick.contextual.sup_logistic import SupLogistic
from surepick.errors import InvalidInput
from surepick.glm import Fit, Tally, fit
from surepick.identify.anytime.policy import Anytime
from surepick.identify.exclusion.policy import Exclusion
from surepick.identify.posterior import Posterior
from surepick.identify.staged.base import Stagewise
from surepick.identify.staged.rage_glm import RageGlm
from surepick.identify.staged.static_designs import GOptimal, Passive, Uniform
from surepick.identify.winner import Winner

AnyIdentifier = Stagewise | Anytime | Exclusion | Winner | Posterior

POLICIES: dict[str, tuple[type[AnyIdentifier], dict[str, Any]]] = {
    "anytime": (Anytime, {}),
    "exclusion": (Exclusion, {}),
    "winner": (Winner, {}),
    "posterior": (Posterior, {}),
    "rage-glm": (RageGlm, {}),
    "rage-glm-halving": (RageGlm, {"targets": "halving"}),
    "rage-glm-printed": (RageGlmPrinted, {}),
    "rage-glm-r": (RageGlmR, {}),
    "rage-glm-2": (RageGlm2, {}),
    "passive": (Passive, {}),
    "passive-printed": (PassivePrinted, {}),
    "g-optimal": (GOptimal, {}),
    "uniform": (Uniform, {}),
    "gl-gape": (GlGapE, {}),
    "rage-linear": (RageLinear, {}),
}
"""Name on the command line: the class, and the options that the name implies."""


def policy_named(name: str, **options: Any) -> AnyIdentifier:
    """The policy of this name with these options."""
    if name not in POLICIES:
        raise InvalidInput(f"There is no policy {name!r}; choose one of {', '.join(sorted(POLICIES))}.")
    made, implied = POLICIES[name]
    taken = [option.name for option in fields(made)]
    for option in options:
        if option not in taken:
            users = [other for other, (kind, _) in POLICIES.items() if option in (entry.name for entry in fields(kind))]
            others = f"it is an option of {', '.join(users)}" if users else "no policy does"
            raise InvalidInput(f"{name} does not use {option}: {others}. {name} takes {', '.join(taken)}.")
    try:
        return made(**{**implied, **options})
    except TypeError as error:  # a value of a type that cannot be compared with a number
        raise InvalidInput(f"An option of {name} has a value of the wrong type ({error}).") from None


def policy_from_json(written: Mapping[str, Any]) -> AnyIdentifier:
    """An equal policy to the one whose `to_json` gave this."""
    options = dict(written)
    if "name" not in options:
        raise InvalidInput(f"This is not a policy written by surepick: it has no name, only {sorted(options)}.")
    if options["name"] == "anytime" and "stop" in options:  # logs of earlier versions
        stop = options.pop("stop")
        if stop != "proved":
            raise InvalidInput(
                f"The stopping rule {stop!r} of the policy anytime was removed; search with assume='population', which "
                "proves what it estimated."
            )
    return policy_named(options.pop("name"), **options)


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
    "sup-logistic-printed": lambda task: SupLogisticPrinted(task.horizon, task.delta, most_arms=task.arms),
    "sup-logistic-tuned": lambda task: SupLogisticPrinted(task.horizon, task.delta, alpha=1.0),
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
    "uniform": lambda task: UniformArms(),
}

NAMES = tuple(_MAKERS)

CLASSES: dict[str, type[Any]] = {
    type(policy).__name__: type(policy) for policy in (maker(Task(2, 2, 1.0, 0.05)) for maker in _MAKERS.values())
}
"""The classes behind the names, by which logs refer to them."""


def policy_by_name(name: str, *, horizon: int, arms: int, norm_bound: float, delta: float = 0.05) -> AnyPolicy:
    """The policy of this name for `horizon` steps of at most `arms` arms; each takes what it needs of the rest."""
    if name not in _MAKERS:
        raise InvalidInput(f"There is no contextual policy {name!r}; choose one of {', '.join(NAMES)}.")
    return _MAKERS[name](Task(horizon, arms, norm_bound, delta))


METHODS = ("corrected", "corrected-ellipsoid", "anytime", "printed", "printed-empirical", "li", "faury", "wald")


class _Known(TypedDict):
    """What the theorems on fixed designs take alike."""

    delta: float
    data: Data
    norm_bound: float | None
    kappa: float | None
    logit_bounds: ArrayLike | None
    fitted: Fit


def default_methods(data: Data) -> Sequence[str]:
    """The proved methods for this kind of data, and Wald's to compare."""
    return ("corrected", "anytime", "wald") if data == "fixed" else ("anytime", "wald")


def intervals_by_name(
    methods: Sequence[str],
    answers: Tallies,
    queries: ArrayLike,
    *,
    delta: float = 0.05,
    data: Data = "adaptive",
    norm_bound: float | None = None,
    kappa: float | None = None,
    logit_bounds: ArrayLike | None = None,
    order_seed: int | None = None,
    fitted: Fit | None = None,
) -> list[Intervals]:
    """Run several methods on the same answers with one fit and one evidence process; each takes what it can use."""
    for name in methods:
        validate.one_of("method", name, METHODS)
    estimate = fitted or fit(pooled(answers))
    ordered = data == "fixed" or not isinstance(answers, Tally)
    shared = "anytime" in methods and ordered
    confidence_set = ConfidenceSet.of(answers, data=data, order_seed=order_seed) if shared else None

    known: _Known = {
        "delta": delta,
        "data": data,
        "norm_bound": norm_bound,
        "kappa": kappa,
        "logit_bounds": logit_bounds,
        "fitted": estimate,
    }

    def corrected(form: Literal["query", "ellipsoid"]) -> Intervals:
        return interval_corrected(
            answers, queries, form=form, order_seed=order_seed, confidence_set=confidence_set, **known
        )

    run: dict[str, Callable[[], Intervals]] = {
        "corrected": lambda: corrected("query"),
        "corrected-ellipsoid": lambda: corrected("ellipsoid"),
        "anytime": lambda: interval_anytime(answers, queries, delta=delta, data=data, confidence_set=confidence_set),
        "printed": lambda: interval_printed(answers, queries, form="known", **known),
        "printed-empirical": lambda: interval_printed(answers, queries, form="empirical", **known),
        "li": lambda: interval_li(answers, queries, delta=delta, data=data, norm_bound=norm_bound, fitted=estimate),
        "faury": lambda: interval_faury(answers, queries, delta=delta, norm_bound=norm_bound),
        "wald": lambda: interval_wald(answers, queries, delta=delta, fitted=estimate),
    }
    return [run[name]() for name in methods]
