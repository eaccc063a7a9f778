"""Takes the pictures of the pages that the documentation shows: python tests/system/screenshots.py [FOLDER]."""

import math
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
from PIL import Image

from running_service import TOKEN
from service_client import DESKTOP, ServiceClient, running_browser, running_client

DOORS = {
    "Sea": ("#2a6f97", 2.6),
    "Clay": ("#bc6c25", 1.2),
    "Plum": ("#7b2d6e", 0.7),
    "Moss": ("#6a994e", 0.4),
    "Slate": ("#5c677d", -0.3),
    "Straw": ("#e9c46a", -1.2),
}
LIKED = {name.lower(): liking for name, (_, liking) in DOORS.items()}


def simulated_judges(client: ServiceClient, study: str, people: dict[str, str], most: int, seed: int) -> None:
    """Judges with the common taste, who err as the model says; `most` answers each, or until the verdict."""
    chance = random.Random(seed)
    for _ in range(most):
        for token in people.values():
            headers = {"Authorization": f"Bearer {token}"}
            taken: dict[str, Any] = httpx.post(f"{client.base}/studies/{study}/questions", headers=headers).json()
            for question in taken["questions"]:
                lead = LIKED[question["a"]["name"]] - LIKED[question["b"]["name"]]
                said = "a" if chance.random() < 1 / (1 + math.exp(-lead)) else "b"
                body = {"question": question["id"], "answer": said}
                httpx.post(f"{client.base}/studies/{study}/answers", headers=headers, json=body)
            if not taken["open"]:
                return


def main(folder: Path) -> None:
    """Take them all."""
    items = [{"name": name.lower(), "label": name, "colour": colour} for name, (colour, _) in DOORS.items()]
    with (
        tempfile.TemporaryDirectory() as data,
        running_client(f"sqlite:///{data}/studies.db") as client,
        running_browser() as browser,
    ):
        study = client.study(items, title="Which colour for the door?")
        for name, size in (("phone", {"width": 360, "height": 720}), ("desktop", DESKTOP)):
            page = browser.new_context(viewport=size).new_page()
            page.goto(client.link(study, f"Jo on a {name}"))
            page.locator("#question").wait_for()
            page.wait_for_timeout(500)
            page.screenshot(path=folder / f"judge_{name}.png")
            page.close()
        study = client.study(items, title="Which colour for the door?", delta=0.1, epsilon=0.0, seed=3)
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        page = context.new_page()
        page.goto(f"{client.base}/study/{study}#{TOKEN}")
        page.locator("#evidence").wait_for(state="attached")
        people = {
            name: client.ask("POST", f"/studies/{study}/judges", {"name": name})["token"]
            for name in ("Ann", "Ben", "Cleo")
        }
        simulated_judges(client, study, people, most=25, seed=1)
        page.wait_for_function("() => further.textContent !== '–'", timeout=150_000)
        page.wait_for_function("() => judges.textContent.includes('25')", timeout=60_000)
        page.screenshot(path=folder / "dashboard.png", full_page=True)
        simulated_judges(client, study, people, most=1_000, seed=2)
        page.wait_for_function("() => !certificate.hidden && quiet.offsetHeight", timeout=60_000)
        page.wait_for_timeout(5_000)
        page.goto(f"{client.base}/study/{study}/result")
        page.screenshot(path=folder / "result.png", full_page=True)
        page.goto(f"{client.base}/study/{study}/change")
        page.screenshot(path=folder / "change.png", full_page=True)
    for name in ("judge_phone", "judge_desktop", "dashboard", "result", "change"):
        shrink(folder / f"{name}.png")


def shrink(path: Path) -> None:
    """Few colours make small files; k-means keeps those of small things, which the median cut alone drops."""
    Image.open(path).convert("RGB").quantize(256, kmeans=2).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "docs" / "images")
