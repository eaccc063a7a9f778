"""The inner loops of `plain`, compiled by numba: same names, same arguments, same meaning (see there).

Written as scalar loops because the matrices are small (d of a few dozen at most): a call costs about a microsecond
where NumPy needs twenty. Machine code is cached beside the sources, so that only the first run of all compiles. Numba
notices a change in a function's own file, not in the files of what it calls: after editing one of these, delete the
`__pycache__` here (the tests do).
"""

from surepick.contextual.compiled.algebra import (
    add_information,
    add_outer,
    far_logit,
    inverse,
    largest_entry,
    optimistic,
    squared_norms,
)
from surepick.contextual.compiled.evidence import (
    add_minorant,
    border_shares,
    curvatures,
    expert_evidence,
    forecast,
    lowered,
    minorant_matrix,
    reaches_of,
    tangent_offset,
)
from surepick.contextual.compiled.fit import newton, online_step, row_losses, support
from surepick.contextual.compiled.routing import advance, route

NAME = "numba"

__all__ = [
    "NAME",
    "add_information",
    "add_minorant",
    "add_outer",
    "advance",
    "border_shares",
    "curvatures",
    "expert_evidence",
    "far_logit",
    "forecast",
    "inverse",
    "largest_entry",
    "lowered",
    "minorant_matrix",
    "newton",
    "online_step",
    "optimistic",
    "reaches_of",
    "route",
    "row_losses",
    "squared_norms",
    "support",
    "tangent_offset",
]
