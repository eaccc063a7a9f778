"""All methods by name, for those who want them side by side."""

from collections.abc import Callable, Sequence
from typing import Literal

from numpy.typing import ArrayLike

from surepick import validate
from surepick.confidence.anytime import interval_anytime, plug_in_evidence
from surepick.confidence.comparison import interval_faury, interval_li, interval_wald
from surepick.confidence.corrected import interval_corrected
from surepick.confidence.printed import interval_printed
from surepick.confidence.result import Answers, Data, Intervals, pooled
from surepick.logistic import Fit, Tally, fit

METHODS = ("corrected", "corrected-ellipsoid", "anytime", "printed", "printed-empirical", "li", "faury", "wald")


def default_methods(data: Data) -> Sequence[str]:
    """The proved methods for this kind of data, and Wald's to compare."""
    return ("corrected", "anytime", "wald") if data == "fixed" else ("anytime", "wald")


def intervals_by_name(
    methods: Sequence[str],
    answers: Answers,
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

    def corrected(form: Literal["query", "ellipsoid"]) -> Intervals:
        return interval_corrected(
            answers,
            queries,
            delta=delta,
            data=data,
            norm_bound=norm_bound,
            kappa=kappa,
            logit_bounds=logit_bounds,
            form=form,
            order_seed=order_seed,
            fitted=estimate,
            evidence=evidence,
        )

    def printed(form: Literal["known", "empirical"]) -> Intervals:
        return interval_printed(
            answers,
            queries,
            delta=delta,
            data=data,
            norm_bound=norm_bound,
            kappa=kappa,
            logit_bounds=logit_bounds,
            form=form,
            fitted=estimate,
        )

    run: dict[str, Callable[[], Intervals]] = {
        "corrected": lambda: corrected("query"),
        "corrected-ellipsoid": lambda: corrected("ellipsoid"),
        "anytime": lambda: interval_anytime(answers, queries, delta=delta, data=data, evidence=evidence),
        "printed": lambda: printed("known"),
        "printed-empirical": lambda: printed("empirical"),
        "li": lambda: interval_li(answers, queries, delta=delta, data=data, norm_bound=norm_bound, fitted=estimate),
        "faury": lambda: interval_faury(answers, queries, delta=delta, norm_bound=norm_bound),
        "wald": lambda: interval_wald(answers, queries, delta=delta, fitted=estimate),
    }
    return [run[name]() for name in methods]
