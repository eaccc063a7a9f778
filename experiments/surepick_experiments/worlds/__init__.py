"""Simulated worlds: what studies, benches and tests ask their questions to."""

from surepick_experiments.worlds.synthetic import (
    CATALOGUE,
    catalogue,
    example_1,
    example_2,
    gaussian,
    one_over_kappa,
    pairs_of_pairs,
    person,
    soare,
)
from surepick_experiments.worlds.zappos import load_zappos

__all__ = [
    "CATALOGUE",
    "catalogue",
    "example_1",
    "example_2",
    "gaussian",
    "load_zappos",
    "one_over_kappa",
    "pairs_of_pairs",
    "person",
    "soare",
]
