"""Which inner loops run: numba's if it is installed (`pip install surepick[fast]`), NumPy's otherwise.

Policies call `numerics.kernels.<name>`, so that the choice is made in one place.
"""

from types import ModuleType

from surepick.contextual import plain

kernels: ModuleType = plain
try:
    from surepick.contextual import compiled
except ImportError:
    pass
else:
    kernels = compiled
