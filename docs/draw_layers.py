"""Draw docs/images/layers.svg from the contract that `lint-imports` checks: `python docs/draw_layers.py`."""

import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "layers.svg"
GROUPS = {
    "cli": "interfaces",
    "service": "interfaces",
    "report": "interfaces",
    "judges": "sessions",
    "session": "sessions",
    "registry": "policies",
    "identify": "policies",
    "limits": "statistics",
    "glm": "statistics",
    "linalg": "foundations",
    "validate": "foundations",
    "errors": "foundations",
}
"""The group that starts at a layer, by one of the layer's packages."""
HEIGHT, LEFT, WIDTH, GAP = 40, 120, 720, 8


def layers() -> list[list[str]]:
    """Rows of packages, from the top layer to the bottom."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [re.findall(r"\w+", row) for row in rows]


def picture() -> str:
    """An SVG with one row of boxes per layer; a package imports only from rows below its own."""
    rows, parts, group = layers(), [], ""
    for number, row in enumerate(rows):
        top = number * (HEIGHT + GAP) + GAP
        name = next((GROUPS[package] for package in row if package in GROUPS), group)
        if name != group:
            parts.append(f'<text x="{LEFT - 16}" y="{top + 25}" text-anchor="end" fill="#777">{escape(name)}</text>')
            group = name
        width = (WIDTH - GAP * (len(row) - 1)) / len(row)
        for place, package in enumerate(row):
            x = LEFT + place * (width + GAP)
            parts.append(
                f'<rect x="{x:.0f}" y="{top}" width="{width:.0f}" height="{HEIGHT}" rx="6" fill="#eef4f1" '
                f'stroke="#2c6e54"/><text x="{x + width / 2:.0f}" y="{top + 25}" text-anchor="middle" fill="#143d2d">'
                f"{escape(package)}</text>"
            )
    height = len(rows) * (HEIGHT + GAP) + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + GAP} {height}" '
        f'font-family="system-ui, sans-serif" font-size="15" role="img" aria-label="The layers of surepick">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
