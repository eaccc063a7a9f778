"""Takes the pictures of the pages that the documentation shows: python tests/screenshots.py [FOLDER]."""

import math
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from house import DESKTOP, House, running_browser, running_house
from running_service import TOKEN

DOORS = {
    "Sea": ("#2a6f97", 2.6),
    "Clay": ("#bc6c25", 1.2),
    "Plum": ("#7b2d6e", 0.7),
    "Moss": ("#6a994e", 0.4),
    "Slate": ("#5c677d", -0.3),
    "Straw": ("#e9c46a", -1.2),
}
LIKED = {name.lower(): liking for name, (_, liking) in DOORS.items()}


def simulated_judge(house: House, study: str, name: str, seed: int, pause: float) -> None:
    """Somebody with the common taste, who errs as the model says, until the verdict."""
    token = house.ask("POST", f"/studies/{study}/judges", {"name": name})["token"]
    chance = random.Random(seed)
    with httpx.Client(base_url=house.base, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        while True:
            taken: dict[str, Any] = client.post(f"/studies/{study}/questions?n=1").json()
            if not taken["open"]:
                return
            for question in taken["questions"]:
                lead = LIKED[question["a"]["name"]] - LIKED[question["b"]["name"]]
                said = "a" if chance.random() < 1 / (1 + math.exp(-lead)) else "b"
                client.post(f"/studies/{study}/answers", json={"question": question["id"], "answer": said})
                time.sleep(pause)


def main(folder: Path) -> None:
    """Take them all."""
    items = [{"name": name.lower(), "label": name, "colour": colour} for name, (colour, _) in DOORS.items()]
    with (
        tempfile.TemporaryDirectory() as data,
        running_house(Path(data)) as house,
        running_browser() as browser,
    ):
        study = house.study(items, title="Which colour for the door?", delta=0.1, epsilon=0.0, seed=3)
        for name, size in (("phone", {"width": 360, "height": 720}), ("desktop", DESKTOP)):
            page = browser.new_context(viewport=size).new_page()
            page.goto(house.link(study, f"Jo on a {name}"))
            page.locator("#question").wait_for()
            page.wait_for_timeout(500)
            page.screenshot(path=folder / f"judge_{name}.png")
            page.close()
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto(f"{house.base}/study/{study}#{TOKEN}")
        page.locator("#evidence").wait_for(state="attached")
        people = [
            threading.Thread(target=simulated_judge, args=(house, study, name, seed, 0.1))
            for seed, name in enumerate(["Ann", "Ben", "Cleo"])
        ]
        for person in people:
            person.start()
        page.wait_for_function("() => Number(answers.textContent) >= 60", timeout=120_000)
        page.wait_for_function("() => further.textContent !== '–'", timeout=120_000)
        page.screenshot(path=folder / "dashboard.png", full_page=True)
        for person in people:
            person.join()
        page.wait_for_timeout(5_000)
        page.screenshot(path=folder / "dashboard_end.png", full_page=True)
        page.goto(f"{house.base}/study/{study}/result")
        page.screenshot(path=folder / "result.png", full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "images")
