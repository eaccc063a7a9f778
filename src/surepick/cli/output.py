"""What commands print: JSON for programs, tables for people."""

import json
import math
from typing import Any

import numpy as np


def print_json(fields: dict[str, Any]) -> None:
    """One JSON document on standard output; infinite and missing numbers become null."""
    print(json.dumps(plain(fields), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Turn arrays, NumPy numbers and non-finite floats into what JSON can hold."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
