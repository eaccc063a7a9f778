"""Takes a picture of every page in every state, to be looked at: python tests/system/every_page.py FOLDER.

Each page is taken on a phone and on a computer, light and dark, and once more beside the others on sheets. The names of
pages that are wider than the window are printed. Nothing is compared: what is ugly or unreadable, people see.
"""

import base64
import io
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page

from running_service import ADMIN, PATIENCE, TOKEN
from service_client import ServiceClient, running_browser, running_client

SIZES = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 800}}
TALLEST = 2_600
"""Pixels of a page that are on a sheet."""

Liking = Callable[[str, str], float]
"""Log-odds with which the first item is preferred to the second."""

SHOES = {"Clog": 3.0, "Sandal": 2.0, "Court shoe": 1.0, "Trail runner": 0.0, "Road runner": -0.5, "Winter boot": -1.0}
COLOURS = {"Sea": "#2a6f97", "Clay": "#bc6c25", "Plum": "#7b2d6e", "Moss": "#6a994e"}


def shoes(features: bool = False) -> list[dict[str, Any]]:
    found = [{"name": name.lower(), "label": name} for name in SHOES]
    return [item | ({"features": [place, (place * 3) % 7]} if features else {}) for place, item in enumerate(found)]


def sizes(count: int) -> list[dict[str, Any]]:
    return [{"name": f"{place}", "label": f"Size {place}", "features": [place]} for place in range(count)]


def colours() -> list[dict[str, Any]]:
    return [{"name": name.lower(), "label": name, "colour": code} for name, code in COLOURS.items()]


def pictures() -> list[dict[str, Any]]:
    result = []
    for name, code in COLOURS.items():
        drawn = io.BytesIO()
        Image.new("RGB", (320, 240), code).save(drawn, "PNG")
        uri = f"data:image/png;base64,{base64.b64encode(drawn.getvalue()).decode()}"
        result.append({"name": name.lower(), "label": name, "image": uri})
    return result


def by_shoe(first: str, second: str) -> float:
    liking = {name.lower(): value for name, value in SHOES.items()}
    return 2 * (liking[first] - liking[second])


def answer(client: ServiceClient, study: str, people: list[str], liking: Liking, most: int = 400) -> None:
    """Judges of these names answer in turns, `most` questions in all, until nothing is left for any of them."""
    chance, tokens = (
        random.Random(1),
        [client.ask("POST", f"/studies/{study}/judges", {"name": name}) for name in people],
    )
    headers = [{"Authorization": f"Bearer {made['token']}"} for made in tokens]
    given, done, end = 0, set[int](), time.monotonic() + PATIENCE
    while len(done) < len(people) and given < most and time.monotonic() < end:
        for number, header in enumerate(headers):
            taken: Any = httpx.post(f"{client.base}/studies/{study}/questions", headers=header, timeout=PATIENCE).json()
            if not taken["open"]:
                return
            done = done | {number} if taken["exhausted"] else done - {number}
            for question in taken["questions"]:
                lead = liking(question["a"]["name"], question["b"]["name"])
                said = "a" if chance.random() < 1 / (1 + math.exp(-lead)) else "b"
                body = {"question": question["id"], "answer": said}
                httpx.post(f"{client.base}/studies/{study}/answers", headers=header, json=body, timeout=PATIENCE)
                given += 1


def systems(client: ServiceClient) -> str:
    """A study of three systems, whose outputs are Markdown."""
    code = "```python\nprint('a line of code')\n```"
    text = f"**Short** answer: yes.\n\n1. First\n2. Second\n\n{code}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    rows = [
        f'"{name}","case {case}","{text}{"More words. " * 12 * place}"'
        for place, name in enumerate(("terse", "usual", "chatty"))
        for case in range(4)
    ]
    table = "\n".join(["system,input,output", *rows])
    reply = httpx.post(
        f"{client.base}/studies/systems",
        headers=ADMIN,
        files={"outputs": ("outputs.csv", table.encode(), "text/csv")},
        data={"settings": '{"title": "Which reply helps more?", "instructions": "Choose what *you* would send."}'},
    )
    assert reply.is_success, reply.text
    return str(reply.json()["id"])


def studies_in_all_states(client: ServiceClient) -> dict[str, str]:
    """The id of a study by what it is to show."""

    def made(items: list[dict[str, Any]], **fields: Any) -> str:
        usual = {"title": "Which shoe would you buy?", "policy": None, "delta": 0.05, "epsilon": 0.0, "repeats": None}
        return client.study(items, **usual | fields)

    found = {
        "empty": made(shoes()),
        "empty with features": made(shoes(features=True)),
        "open": made(shoes(features=True)),
        "nothing left": made(shoes()),
        "features first": made(sizes(12), title="Which size?"),
        "certain": made(shoes(), repeats="independent", delta=0.2),
        "within epsilon": client.study(colours()),
        "no winner": made(colours()[:3], repeats="independent", delta=0.2, title="Which colour?"),
        "refuted": made(sizes(6), assume="features", repeats="independent", delta=0.2, title="Which size?"),
        "paused": made(colours(), title="Which colour?"),
        "closed": made(shoes()),
    }
    team = ["Ann", "Ben", "Cleo"]
    circle = {"sea": "clay", "clay": "plum", "plum": "sea"}
    answer(client, found["open"], team, by_shoe, 20)
    answer(client, found["nothing left"], team, by_shoe)
    answer(client, found["features first"], team, lambda first, second: 8 * (int(first) - int(second)))
    answer(client, found["certain"], team, by_shoe)
    answer(
        client,
        found["within epsilon"],
        team,
        lambda first, second: 3 * (list(COLOURS).index(second.title()) - list(COLOURS).index(first.title())),
    )
    answer(client, found["no winner"], team, lambda first, second: 9.0 if circle[first] == second else -9.0)
    answer(client, found["refuted"], team, lambda first, second: abs(int(second) - 3.2) - abs(int(first) - 3.2))
    answer(client, found["closed"], team[:2], by_shoe, 12)
    client.ask("POST", f"/studies/{found['paused']}/state", {"state": "paused"})
    client.ask("POST", f"/studies/{found['closed']}/state", {"state": "closed"})
    return found


def pages_of_judges(client: ServiceClient, found: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Names and addresses; each address is opened by several browsers, so each is a shared or a personal link."""
    asked = {
        "compare": client.study(colours(), instructions="Think of **your** door."),
        "grade": client.study(pictures(), policy=None, answer="grade", repeats=None),
        "pick": client.study(pictures(), policy=None, answer="pick", show=4, repeats=None),
        "rank": client.study(pictures(), policy=None, answer="rank", show=4, repeats=None),
        "systems": systems(client),
        "yes or no": client.study(shoes(features=True), kind="items", title="Would you buy this shoe?"),
    }
    for name, study in asked.items():
        yield f"judge {name}", client.link(study)
    for name in ("within epsilon", "paused", "closed"):
        yield f"judge {name}", client.link(found[name])
    yield "judge without a link", f"{client.base}/judge"
    yield "judge of a wrong link", client.link(found["open"])[:-3]
    study = found["empty with features"]
    shared = client.ask("PUT", f"/studies/{study}/shared-link", {"most": 5, "phrase": "open the door"})
    yield "join", shared["shared"]["link"]
    yield "join by a wrong link", f"{client.base}/join/{study}#aaaaaaaaaaaaaaaa"


def pages_of_the_admin(client: ServiceClient, found: dict[str, str]) -> Iterator[tuple[str, str]]:
    yield "studies", f"{client.base}/"
    yield "new study", f"{client.base}/new"
    for name, study in found.items():
        yield f"dashboard {name}", f"{client.base}/study/{study}"
    for name, study in found.items():
        yield f"result {name}", f"{client.base}/study/{study}/result"
    yield "change items", f"{client.base}/study/{found['open']}/change"
    yield "audit log", f"{client.base}/audit-log"
    yield "not found", f"{client.base}/study/nosuchstudy"
    yield "docs of the API", f"{client.base}/docs"


def take(page: Page, address: str, path: Path) -> None:
    page.goto("about:blank")  # a link that differs behind its # only would not be loaded
    page.goto(address)
    page.wait_for_timeout(700)
    page.screenshot(path=path, full_page=True)
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        print(f"wider than the window: {path.name}")


def sheet(paths: list[Path], path: Path, columns: int, scale: float) -> None:
    """Pictures side by side, on pages of as many as `columns`."""
    for first in range(0, len(paths), columns):
        shown = [Image.open(one).convert("RGB") for one in paths[first : first + columns]]
        shown = [one.crop((0, 0, one.width, min(one.height, TALLEST))) for one in shown]
        shown = [one.resize((round(one.width * scale), round(one.height * scale))) for one in shown]
        page = Image.new("RGB", (sum(one.width + 8 for one in shown), max(one.height for one in shown)), "magenta")
        for place, one in enumerate(shown):
            page.paste(one, (sum(before.width + 8 for before in shown[:place]), 0))
        page.save(path.with_stem(f"{path.stem}-{first // columns:02}"))


def contexts(browser: Browser) -> Iterator[tuple[str, BrowserContext]]:
    for device, size in SIZES.items():
        for scheme in ("light", "dark"):
            yield f"{device}-{scheme}", browser.new_context(viewport=size, color_scheme=scheme)


def main(folder: Path) -> None:
    """Take them all."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        running_client(f"sqlite:///{data}/studies.db") as client,
        running_browser() as browser,
    ):
        found = studies_in_all_states(client)
        judged = list(pages_of_judges(client, found))
        administered = list(pages_of_the_admin(client, found))
        watching = browser.new_context().new_page()
        for study in found.values():  # so that insights and forecasts are there
            watching.goto(f"{client.base}/study/{study}#{TOKEN}")
            watching.wait_for_timeout(1_500)
        for how, context in contexts(browser):
            page = context.new_page()
            taken = []
            for name, address in [*judged, ("log in", f"{client.base}/"), *administered]:
                if (name, address) == administered[0]:
                    page.goto("about:blank")
                    page.goto(f"{client.base}/#{TOKEN}")
                    page.get_by_role("heading", name="Studies").wait_for()
                taken.append(folder / f"{how} {name}.png")
                take(page, address, taken[-1])
            context.close()
            sheet(taken, folder / f"sheet-{how}.png", *((5, 0.8) if how.startswith("phone") else (3, 0.5)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
