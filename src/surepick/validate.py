"""Checks of user input: each returns a clean array or number, or raises one clear sentence.

Every message shows the value received and says what would be accepted.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput

LARGEST_ENTRY = 1e100
"""Features beyond this, or below its inverse, over- or underflow when squared and summed."""


def probability(name: str, value: float) -> float:
    """Return `value` if it lies strictly between 0 and 1."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidInput(f"{name} must lie strictly between 0 and 1, got {value!r}; 0.05 is customary.")
    return number


def positive(name: str, value: float) -> float:
    """Return `value` if it is a finite number above zero."""
    number = real(name, value)
    if number <= 0.0:
        raise InvalidInput(f"{name} must be greater than 0, got {value!r}.")
    return number


def nonnegative(name: str, value: Any) -> float:
    """Return `value` if it is a finite number, zero or above."""
    number = real(name, value)
    if number < 0.0:
        raise InvalidInput(f"{name} must not be negative, got {value!r}.")
    return number


def real(name: str, value: Any) -> float:
    """Return `value` as a finite float."""
    number = _number(value)
    if not np.isfinite(number):
        raise InvalidInput(f"{name} must be a finite number, got {_short(value)}.")
    return number


def whole(name: str, value: Any, *, least: int = 1) -> int:
    """Return `value` if it is a whole number, not below the least."""
    number = _number(value)
    if not (least <= number < np.inf and number == np.floor(number)):
        raise InvalidInput(f"{name} must be a whole number of at least {least}, got {_short(value)}.")
    return int(value)  # exactly, however large


def one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    """Return `value` if it is one of the allowed words."""
    if not (isinstance(value, str) and value in allowed):
        raise InvalidInput(f"{name} must be one of {', '.join(map(repr, allowed))}, got {_short(value)}.")
    return value


def matrix(name: str, value: ArrayLike, *, columns: int | None = None, empty: bool = False) -> Floats:
    """Return `value` as a finite two-dimensional float array, one vector per row.

    `columns` fixes the length of a row. An array without rows is refused unless `empty`.
    """
    array = _floats(name, value)
    if array.ndim != 2:
        raise InvalidInput(
            f"{name} must be two-dimensional, one vector per row, got {array.ndim} dimension(s) "
            f"of shape {array.shape}; a single vector is passed as [vector]."
        )
    if columns is not None and array.shape[1] != columns:
        raise InvalidInput(f"{name} must have {columns} columns like the data, got {array.shape[1]}.")
    if array.shape[1] == 0:
        raise InvalidInput(f"{name} has no columns; at least one feature is needed.")
    if array.shape[0] == 0 and not empty:
        raise InvalidInput(f"{name} is empty; at least one row is needed.")
    _refuse_unusable(name, array)
    return array


def vector(name: str, value: ArrayLike, *, length: int, tiny: bool = False) -> Floats:
    """Return `value` as a finite one-dimensional float array of the given length.

    `tiny` accepts entries however small: a point may have them, a direction may not.
    """
    array = _floats(name, value)
    if array.shape != (length,):
        raise InvalidInput(f"{name} must be a list of {length} numbers, got shape {array.shape}.")
    _refuse_unusable(name, array, tiny=tiny)
    return array


def counts(name: str, value: ArrayLike, *, length: int) -> Integers:
    """Return `value` as whole numbers, none negative."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.shape != (length,):
        raise InvalidInput(f"{name} must be a list of {length} counts, one per row, got shape {array.shape}.")
    if array.dtype.kind not in "iufb":
        raise InvalidInput(f"{name} must be whole numbers, got values of type {array.dtype}.")
    if array.dtype.kind in "iub" and array.min(initial=0) >= 0 and array.max(initial=0) <= 2**53:
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # narrower floats cannot hold the limit below
    bad = np.flatnonzero(~np.isfinite(array) | (array < 0) | (array != np.floor(array)) | (array > 2**53))
    if bad.size:
        row = bad[0]
        raise InvalidInput(
            f"{name} must be whole numbers from 0 to 2^53, got {array[row]} at row {row}"
            f"{_and_more(bad.size)}; count how often each vector was asked."
        )
    return array.astype(np.int64)


def _number(value: Any) -> float:
    """As a float; NaN where it is no number."""
    try:
        return np.nan if isinstance(value, str | bytes | bool | np.bool_) or np.ndim(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _floats(name: str, value: ArrayLike) -> Floats:
    try:
        array = np.asanyarray(value)
        if array.dtype.kind not in "biufO" or (array.dtype.kind == "O" and _holds_other_things(array)):
            raise TypeError
        if np.ma.is_masked(array):  # its hidden entries are not data
            raise TypeError
        return np.asarray(array, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must hold numbers only, got {_short(value)}.") from None


def _holds_other_things(array: NDArray[Any]) -> bool:
    """Whether an array of Python objects holds what is not a number, even if it could be read as one."""
    return any(entry is None or isinstance(entry, str | bytes) for entry in array.flat)


def _refuse_unusable(name: str, array: Floats, *, tiny: bool = False) -> None:
    largest = np.maximum(array.max(initial=0.0), -array.min(initial=0.0))  # NaN if there is one; takes no copy
    if not tiny and 0.0 < largest < 1.0 / LARGEST_ENTRY:
        raise InvalidInput(
            f"{name} must not be smaller than {1 / LARGEST_ENTRY:g} throughout, got at most {largest:g}; "
            "measure the features in larger units."
        )
    if largest <= LARGEST_ENTRY:  # False for NaN as well
        return
    bad = np.argwhere(~(np.abs(array) <= LARGEST_ENTRY))
    where = ", ".join(f"{axis} {index}" for axis, index in zip(("row", "column"), bad[0], strict=False))
    raise InvalidInput(
        f"{name} must be finite numbers below {LARGEST_ENTRY:g} in size, got {array[tuple(bad[0])]} at {where}"
        f"{_and_more(len(bad))}; remove such rows or fill them in."
    )


def _and_more(number: int) -> str:
    return f" (and {number - 1} more)" if number > 1 else ""


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())  # arrays print on several lines
    return text if len(text) <= 60 else text[:57] + "..."
