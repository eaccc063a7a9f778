"""The regret bound of SupLogistic (Jun et al. 2021, Theorem 3), as printed and with its constants corrected."""

import math
from dataclasses import dataclass
from typing import Literal

from surepick import validate
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee


@dataclass(frozen=True)
class RegretBound:
    """Regret ≤ leading + second, for horizons beyond a multiple of `burn_in` that nobody has worked out."""

    leading: float
    """Grows with √T, free of κ."""
    second: float
    """Grows with 1/κ and powers of log T; as printed, the constant hidden by O(·) is taken as one."""
    burn_in: float
    """Z·log⁴Z, Z = d/κ² + log²(K/δ)/(dκ²): the scale of the horizon from which on the bound is claimed."""
    width: float
    """α, by which the confidence widths are multiplied."""
    guarantee: Guarantee

    @property
    def total(self) -> float:
        """Leading and second term."""
        return self.leading + self.second


def sup_logistic_regret(
    dimension: int,
    horizon: int,
    arms: int,
    *,
    kappa: float,
    delta: float = 0.05,
    constants: Literal["corrected", "printed"] = "corrected",
) -> RegretBound:
    """C·α·√(d·T·ln(T/d)·log₂T) plus a term in α²d/κ.

    Printed: C = 10, α = 3.5·√ln(2(2+√(dT))·2STK/δ), second term α²d/κ·ln(α²T/κ). Corrected: C = 13; the union has to
    count 2 + T vectors and 2(S+1)TK events, S = ⌊log₂T⌋; second term 160·α²d/κ·ln(T/d)·log₂T. The corrected
    constants are the result of bookkeeping on the printed proof, which hides the length of the burn-in, so they
    are not called proved.
    """
    validate.one_of("constants", constants, ("corrected", "printed"))
    delta = validate.probability("delta", delta)
    kappa = validate.positive("kappa", kappa)
    dimension, arms = validate.whole("dimension", dimension), validate.whole("arms", arms)
    if horizon < 3 * dimension or horizon < 4:
        raise InvalidInput(
            f"horizon must be at least 4 and three times the dimension for the bound to make sense, got {horizon}."
        )
    d, levels, log2 = dimension, math.floor(math.log2(horizon)), math.log2(horizon)
    scale = d / kappa**2 + math.log(arms / delta) ** 2 / (d * kappa**2)
    spread = math.sqrt(d * horizon * math.log(horizon / d) * log2)
    if constants == "printed":
        events = 2 * (2 + math.sqrt(d * horizon)) * 2 * levels * horizon * arms
        width = 3.5 * math.sqrt(math.log(events / delta))
        leading = 10 * width * spread
        second = width**2 / kappa * d * math.log(width**2 * horizon / kappa)
        guarantee = Guarantee.AS_PRINTED
    else:
        events = 2 * (2 + horizon) * 2 * (levels + 1) * horizon * arms
        width = 3.5 * math.sqrt(math.log(events / delta))
        leading = 13 * width * spread
        second = 160 * width**2 / kappa * d * math.log(horizon / d) * log2
        guarantee = Guarantee.HEURISTIC
    return RegretBound(leading, second, scale * math.log(scale) ** 4, width, guarantee)
