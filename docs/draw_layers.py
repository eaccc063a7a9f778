"""Draw docs/images/layers.svg from the contract that `lint-imports` checks: `python docs/draw_layers.py`."""

import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "layers.svg"
FLOORS = {
    "cli": "edges",
    "service": "edges",
    "report": "edges",
    "judges": "sessions",
    "session": "sessions",
    "registry": "policies",
    "identify": "policies",
    "limits": "statistics",
    "glm": "statistics",
    "linalg": "ground",
    "validate": "ground",
    "errors": "ground",
}
"""The name of the floor a layer belongs to, by one of its modules."""
HEIGHT, LEFT, WIDTH, GAP = 40, 120, 720, 8


def layers() -> list[list[str]]:
    """Rows of modules from the top of the house to the ground."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(each["layers"] for each in contracts if each["type"] == "layers")
    return [re.findall(r"\w+", row) for row in rows]


def picture() -> str:
    """The house as an SVG: a row of boxes a layer; whatever a box imports stands in a row below."""
    rows, parts, floor = layers(), [], ""
    for number, row in enumerate(rows):
        top = number * (HEIGHT + GAP) + GAP
        name = next((FLOORS[module] for module in row if module in FLOORS), floor)
        if name != floor:
            parts.append(f'<text x="{LEFT - 16}" y="{top + 25}" text-anchor="end" fill="#777">{escape(name)}</text>')
            floor = name
        width = (WIDTH - GAP * (len(row) - 1)) / len(row)
        for place, module in enumerate(row):
            x = LEFT + place * (width + GAP)
            parts.append(
                f'<rect x="{x:.0f}" y="{top}" width="{width:.0f}" height="{HEIGHT}" rx="6" fill="#eef4f1" '
                f'stroke="#2c6e54"/><text x="{x + width / 2:.0f}" y="{top + 25}" text-anchor="middle" fill="#143d2d">'
                f"{escape(module)}</text>"
            )
    height = len(rows) * (HEIGHT + GAP) + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + GAP} {height}" '
        f'font-family="system-ui, sans-serif" font-size="15" role="img" aria-label="The layers of surepick">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture())
