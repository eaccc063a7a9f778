"""Simulated studies: each a module with a `STUDY`, listed here by the name it has on the command line."""

from importlib import import_module

from surepick.errors import InvalidInput
from surepick.studies.frame import Options, Study, run_study

MODULES = {
    "anytime": "surepick.studies.anytime",
    "burnin": "surepick.studies.burnin",
    "checks": "surepick.studies.checks",
    "contextual": "surepick.studies.contextual",
    "coverage": "surepick.studies.coverage",
    "crossing": "surepick.studies.crossing",
    "delta": "surepick.studies.delta",
    "examples": "surepick.studies.examples",
    "forecast": "surepick.studies.forecast",
    "horizon": "surepick.studies.contextual_horizon",
    "insight": "surepick.studies.insight",
    "kappa": "surepick.studies.kappa",
    "limits": "surepick.studies.limits",
    "minimisation": "surepick.studies.minimisation",
    "people": "surepick.studies.people",
    "soare": "surepick.studies.soare",
    "supcb": "surepick.studies.contextual_supcb",
    "zappos": "surepick.studies.zappos",
}


def find_study(name: str) -> Study:
    """The study of this name; modules are imported only when asked for."""
    if name not in MODULES:
        raise InvalidInput(f"There is no study {name!r}; there are {', '.join(sorted(MODULES))}.")
    study: Study = import_module(MODULES[name]).STUDY
    return study


__all__ = ["MODULES", "Options", "Study", "find_study", "run_study"]
