"""Colours: hexadecimal names, CIELAB coordinates, and features in which a taste for colours is nearly linear."""

import numpy as np

from surepick._arrays import Floats
from surepick.errors import InvalidInput

COORDINATES = ("lightness", "redness", "yellowness")
"""L*, a* (green to red) and b* (blue to yellow)."""

FEATURES = (
    *COORDINATES,
    *(f"{name}²" for name in COORDINATES),
    "lightness·redness",
    "lightness·yellowness",
    "redness·yellowness",
)


def parse_colour(text: str) -> tuple[float, float, float]:
    """Red, green and blue between 0 and 1 of a colour written #rrggbb or #rgb."""
    digits = text.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    try:
        if len(digits) != 6 or not text.startswith("#"):
            raise ValueError
        red, green, blue = (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))
    except ValueError:
        raise InvalidInput(f"A colour is written #rrggbb, got {text!r}.") from None
    return red, green, blue


def colour_features(rgb: Floats) -> Floats:
    """Nine features of colours given by red, green and blue between 0 and 1.

    Standardised CIELAB coordinates, their squares and products, scaled so that the longest difference has length one.
    """
    lab = cielab(rgb)
    deviation = lab.std(axis=0)
    lab = (lab - lab.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    first, second, third = lab.T
    features = np.column_stack([lab, lab**2, first * second, first * third, second * third])
    apart = float(np.linalg.norm(features[:, None] - features[None], axis=2).max())
    return np.asarray(features / apart) if apart > 0 else features


def cielab(rgb: Floats) -> Floats:
    """CIE 1976 L*a*b* of sRGB colours, white point D65."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
    )
    xyz = linear @ to_xyz.T / np.array([0.95047, 1.0, 1.08883])
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.column_stack([116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])])
