"""What no method can beat, and what the formulas of the literature promise. See docs/limits.md.

Reading order: `instance`, `lower_bound`, `alternatives`, `winner_bound`, `shared_error`, `search_bound`,
`population_bound`; then `complexity` and `worst_case`.
"""

from surepick.limits.complexity import (
    Formula,
    GaussianBurnIn,
    Terms,
    beta_terms,
    corrected_information,
    covering_information,
    fixed_g_optimal_formula,
    gaussian_burn_in,
    kazerouni_wein_formula,
    li_eigenvalue,
    printed_information,
    proof_information,
    rage_glm_2_formula,
    rage_glm_formula,
    rho_opt,
    rho_star,
    rho_star_factor,
)
from surepick.limits.instance import Instance, alpha, beta, kl_divergence
from surepick.limits.lower_bound import LowerBound, lower_bound
from surepick.limits.population_bound import PopulationBound, population_bound
from surepick.limits.search_bound import search_bound
from surepick.limits.shared_error import shared_error_bound, winner_shared_error_bound
from surepick.limits.winner_bound import winner_lower_bound
from surepick.limits.worst_case import KappaFamily, RegretBound, kappa_family, kappa_family_bound, sup_logistic_regret

__all__ = [
    "Formula",
    "GaussianBurnIn",
    "Instance",
    "KappaFamily",
    "LowerBound",
    "PopulationBound",
    "RegretBound",
    "Terms",
    "alpha",
    "beta",
    "beta_terms",
    "corrected_information",
    "covering_information",
    "fixed_g_optimal_formula",
    "gaussian_burn_in",
    "kappa_family",
    "kappa_family_bound",
    "kazerouni_wein_formula",
    "kl_divergence",
    "li_eigenvalue",
    "lower_bound",
    "population_bound",
    "printed_information",
    "proof_information",
    "rage_glm_2_formula",
    "rage_glm_formula",
    "rho_opt",
    "rho_star",
    "rho_star_factor",
    "search_bound",
    "shared_error_bound",
    "sup_logistic_regret",
    "winner_lower_bound",
    "winner_shared_error_bound",
]
