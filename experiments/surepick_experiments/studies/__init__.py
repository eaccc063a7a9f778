"""Simulated studies: each a module with a `STUDY`, listed here by the name it has on the command line."""

from importlib import import_module

from surepick.errors import InvalidInput
from surepick_experiments.studies.runner import Options, Study, run_study

MODULES = {
    "advice": "surepick_experiments.studies.advice",
    "answers": "surepick_experiments.studies.answers",
    "anytime": "surepick_experiments.studies.anytime",
    "benchmark": "surepick_experiments.benchmark.study",
    "bounds": "surepick_experiments.studies.bounds",
    "burnin": "surepick_experiments.studies.burnin",
    "checks": "surepick_experiments.studies.checks",
    "claims": "surepick_experiments.studies.claims",
    "contextual": "surepick_experiments.studies.contextual",
    "coverage": "surepick_experiments.studies.coverage",
    "crossing": "surepick_experiments.studies.crossing",
    "delta": "surepick_experiments.studies.delta",
    "examples": "surepick_experiments.studies.examples",
    "forecast": "surepick_experiments.studies.forecast",
    "guess": "surepick_experiments.studies.guess",
    "horizon": "surepick_experiments.studies.contextual_horizon",
    "insight": "surepick_experiments.studies.insight",
    "kappa": "surepick_experiments.studies.kappa",
    "ladder": "surepick_experiments.studies.ladder",
    "limits": "surepick_experiments.studies.limits",
    "minimisation": "surepick_experiments.studies.minimisation",
    "people": "surepick_experiments.studies.people",
    "population": "surepick_experiments.studies.population",
    "soare": "surepick_experiments.studies.soare",
    "sticky": "surepick_experiments.studies.sticky",
    "supcb": "surepick_experiments.studies.contextual_supcb",
    "systems": "surepick_experiments.studies.systems",
    "zappos": "surepick_experiments.studies.zappos",
}


def find_study(name: str) -> Study:
    """The study of this name; modules are imported only when asked for."""
    if name not in MODULES:
        raise InvalidInput(f"There is no study {name!r}; choose one of {', '.join(sorted(MODULES))}.")
    study: Study = import_module(MODULES[name]).STUDY
    return study


__all__ = ["MODULES", "Options", "Study", "find_study", "run_study"]
