"""All methods by name, for those who want them side by side."""

from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

from numpy.typing import ArrayLike

from surepick import validate
from surepick.confidence.anytime import interval_anytime, plug_in_evidence
from surepick.confidence.comparison import interval_faury, interval_li, interval_wald
from surepick.confidence.corrected import interval_corrected
from surepick.confidence.printed import interval_printed
from surepick.confidence.result import Data, Intervals, Tallies, pooled
from surepick.logistic import Fit, Tally, fit

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
    order_seed: int = 0,
    fitted: Fit | None = None,
) -> list[Intervals]:
    """Run several methods on the same answers with one fit and one evidence process; each takes what it can use."""
    for name in methods:
        validate.one_of("method", name, METHODS)
    estimate = fitted or fit(pooled(answers))
    ordered = data == "fixed" or not isinstance(answers, Tally)
    shared = "anytime" in methods and ordered
    evidence = plug_in_evidence(answers, data=data, order_seed=order_seed) if shared else None

    known: _Known = {
        "delta": delta,
        "data": data,
        "norm_bound": norm_bound,
        "kappa": kappa,
        "logit_bounds": logit_bounds,
        "fitted": estimate,
    }

    def corrected(form: Literal["query", "ellipsoid"]) -> Intervals:
        return interval_corrected(answers, queries, form=form, order_seed=order_seed, evidence=evidence, **known)

    run: dict[str, Callable[[], Intervals]] = {
        "corrected": lambda: corrected("query"),
        "corrected-ellipsoid": lambda: corrected("ellipsoid"),
        "anytime": lambda: interval_anytime(answers, queries, delta=delta, data=data, evidence=evidence),
        "printed": lambda: interval_printed(answers, queries, form="known", **known),
        "printed-empirical": lambda: interval_printed(answers, queries, form="empirical", **known),
        "li": lambda: interval_li(answers, queries, delta=delta, data=data, norm_bound=norm_bound, fitted=estimate),
        "faury": lambda: interval_faury(answers, queries, delta=delta, norm_bound=norm_bound),
        "wald": lambda: interval_wald(answers, queries, delta=delta, fitted=estimate),
    }
    return [run[name]() for name in methods]
