"""Reading numbers and names out of a certificate, which may have been damaged or forged in any place.

A value of another type, or too large to compute with, is refused here. NumPy would round a measurement 0.5 to 0, read
the text "1" as a number, and compare NaN with anything without a word.
"""

import math
from collections import Counter
from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Floats, Integers
from surepick.errors import CertificateRefused

MOST = 2**53
"""Whole numbers from here on are not all floating-point numbers."""


def whole(value: Any, what: str, below: int = MOST) -> int:
    """A whole number from 0 to below `below`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= index(value) < below:
        raise CertificateRefused(f"{what} must be a whole number from 0 to below {below:,}.")
    return index(value)


def wholes(values: Any, what: str, below: int = MOST) -> Integers:
    """A list of them."""
    if not isinstance(values, list | tuple):
        raise CertificateRefused(f"{what} must be a list of whole numbers.")
    return np.array([whole(value, what, below) for value in values], dtype=np.int64)


def number(value: Any, what: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CertificateRefused(f"{what} must be a finite number.")
    return float(value)


def numbers(values: Any, what: str, *shape: int) -> Floats:
    """Finite numbers in an array of this shape; −1 stands for any length."""
    array: NDArray[Any] = np.asarray(values)
    fits = array.ndim == len(shape) and all(
        wanted in (-1, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    # Integers beyond 64 bits make an array of objects, texts one of texts.
    if not fits or (array.size and array.dtype.kind not in "iuf") or not np.all(np.isfinite(array.astype(np.float64))):
        raise CertificateRefused(f"{what} must be finite numbers, as many as the certificate has use for.")
    return array.astype(np.float64)


def truth(value: Any, what: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise CertificateRefused(f"{what} must be true or false.")
    return value


def distribution(values: Any, what: str, length: int) -> Floats:
    """Shares that are not negative and sum to one."""
    p = numbers(values, f"The shares of {what}", length)
    if np.any(p < 0) or abs(p.sum() - 1) > 1e-9:
        raise CertificateRefused(f"The shares of {what} are not a distribution.")
    return p


def limits(certificate: Mapping[str, Any]) -> tuple[float, float]:
    """delta and epsilon: a probability and a tolerance."""
    delta, epsilon = number(certificate["delta"], "delta"), number(certificate["epsilon"], "epsilon")
    if not (0 < delta < 1 and epsilon >= 0):
        raise CertificateRefused(f"delta = {delta:g} and epsilon = {epsilon:g} are not a probability and a tolerance.")
    return delta, epsilon


def names(problem: Mapping[str, Any], items: int) -> list[str]:
    """The name of each item; items that are alike have several, and no name is used twice."""
    aliases = problem["aliases"]
    every = [name for group in aliases for name in group]
    if not (len(aliases) == items and all(aliases) and all(isinstance(name, str) for name in every)):
        raise CertificateRefused(f"The certificate does not have names for {items} items.")
    twice = next((name for name, times in Counter(every).items() if times > 1), None)
    if twice is not None:
        raise CertificateRefused(f"Two items have the name {twice!r}, so a claim about it says nothing.")
    return [group[0] for group in aliases]


def measurements(problem: Mapping[str, Any], items: Floats) -> Floats:
    """The measurement vectors, as given or as the differences of items that they are about."""
    count, dimension = items.shape
    if "measurements" in problem:
        return numbers(problem["measurements"], "Measurements", -1, dimension)
    rows = []
    for first, second in problem["about"]:
        vector = items[whole(first, "The first item of a question", count)]
        # −1: the question is about one item.
        rows.append(vector if second == -1 else vector - items[whole(second, "The second item of a question", count)])
    array = np.array(rows, dtype=np.float64).reshape(-1, dimension)
    array[:, -1] += truth(problem.get("position", False), "position")
    return array
