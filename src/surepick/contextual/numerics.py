"""Which inner loops run: numba's if it is installed (`pip install surepick[fast]`), NumPy's otherwise.

Policies call `numerics.kernels.<name>`, so that the choice is made in one place, and only when a policy first computes:
importing numba takes as long as importing all of surepick.
"""

from importlib import import_module
from types import ModuleType

kernels: ModuleType
"""The module of the inner loops, `compiled` or `plain`; set when it is first asked for."""


def __getattr__(name: str) -> ModuleType:
    if name != "kernels":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    global kernels
    try:
        kernels = import_module("surepick.contextual.compiled")
    except ImportError:
        kernels = import_module("surepick.contextual.plain")
    return kernels
