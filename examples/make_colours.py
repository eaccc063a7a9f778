"""Writes colours.csv: sixty named CSS colours, spread evenly over the colours a screen can show.

Starting from white, repeatedly adds the colour that is farthest in CIELAB from all colours chosen so far.
"""

import csv
from pathlib import Path

import numpy as np
from matplotlib.colors import CSS4_COLORS

from surepick.io.items import cielab, parse_colour

WANTED = 60
WORDS = ("light", "medium", "dark", "deep", "pale", "blanched", "dodger", "corn", "midnight", "steel", "sky", "sea",
         "spring", "lawn", "lime", "forest", "olive", "slate", "royal", "hot", "rosy", "sandy", "saddle", "indian",
         "powder", "cadet", "ghost", "old", "peach", "misty", "lavender", "antique", "floral", "navajo", "papaya",
         "lemon", "yellow", "green", "blue", "violet", "orange", "rebecca", "burly", "alice", "mint",
         "dim", "fire", "white")  # fmt: skip


def spoken(name: str) -> str:
    """darkolivegreen → dark olive green."""
    for word in WORDS:
        if name.startswith(word) and name != word:
            return f"{word} {spoken(name[len(word) :])}"
    return name


def main() -> None:
    """Choose the colours and write the file."""
    colours = {name: code.lower() for name, code in sorted(CSS4_COLORS.items()) if "grey" not in name}
    names = list(colours)
    places = cielab(np.array([parse_colour(colours[name]) for name in names]))
    chosen = [names.index("white")]
    while len(chosen) < WANTED:
        apart = np.linalg.norm(places[:, None] - places[chosen][None], axis=2).min(axis=1)
        chosen.append(int(apart.argmax()))
    with (Path(__file__).parent / "colours.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["item", "label", "colour"])
        writer.writerows([names[place], spoken(names[place]), colours[names[place]]] for place in sorted(chosen))


if __name__ == "__main__":
    main()
