"""What no method can beat, and what the formulas of the literature promise. See docs/limits.md.

Reading order: `divergence`, `instance`, `transport`, `alternatives`; then `complexity`, `burn_in`, `family`, `regret`.
"""

from surepick.limits.burn_in import (
    GaussianBurnIn,
    corrected_information,
    covering_information,
    gaussian_burn_in,
    li_eigenvalue,
    printed_information,
    proof_information,
)
from surepick.limits.complexity import (
    Formula,
    Terms,
    beta_terms,
    fixed_g_optimal_formula,
    kazerouni_wein_formula,
    rage_glm_2_formula,
    rage_glm_formula,
    rho_opt,
    rho_star,
)
from surepick.limits.divergence import alpha, beta, kl_divergence
from surepick.limits.family import KappaFamily, kappa_family, kappa_family_bound
from surepick.limits.instance import Instance
from surepick.limits.lower_bound import LowerBound, lower_bound
from surepick.limits.regret import RegretBound, sup_logistic_regret

__all__ = [
    "Formula",
    "GaussianBurnIn",
    "Instance",
    "KappaFamily",
    "LowerBound",
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
    "printed_information",
    "proof_information",
    "rage_glm_2_formula",
    "rage_glm_formula",
    "rho_opt",
    "rho_star",
    "sup_logistic_regret",
]
