"""Writes clicks.csv and clicks_points.csv: a simulated banner test, eight variants shown equally often."""

import csv
import itertools
from pathlib import Path

import numpy as np

FEATURES = ["constant", "picture", "discount", "short_text"]
TASTE = np.array([-2.2, 0.5, 0.8, -0.1])
SHOWN = 4000


def main() -> None:
    """Simulate the clicks and write both files next to this one."""
    rng = np.random.default_rng(2021)
    here = Path(__file__).parent
    variants = [(1, *bits) for bits in itertools.product((0, 1), repeat=3)]
    with (here / "clicks.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([*FEATURES, "pulls", "wins"])
        for variant in variants:
            rate = 1 / (1 + np.exp(-np.dot(variant, TASTE)))
            table.writerow([*variant, SHOWN, rng.binomial(SHOWN, rate)])
    with (here / "clicks_points.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["label", *FEATURES])
        table.writerow(["plain banner", 1, 0, 0, 0])
        table.writerow(["picture and discount", 1, 1, 1, 0])
        table.writerow(["effect of a picture", 0, 1, 0, 0])
        table.writerow(["effect of a discount", 0, 0, 1, 0])
        table.writerow(["effect of a short text", 0, 0, 0, 1])


if __name__ == "__main__":
    main()
