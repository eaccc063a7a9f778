"""The pages in a real browser: judges answer to the verdict, the admin watches; nothing leaves the server."""

import base64
import io
import math
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, expect

from databases import fresh_database
from running_service import PATIENCE, TOKEN, free_port
from service_client import CHROMIUM, COLOURS, DESKTOP, PHONE, ServiceClient, running_browser, running_client

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed; the Debian package is chromium")

WAIT = 120_000.0
"""Milliseconds for what takes a few on a machine that has nothing else to do."""

LIKING = dict(zip(COLOURS, (6.0, 1.0, 0.5, 0.0), strict=True))
"""The first is ahead by more than epsilon, so that no other verdict is right, whatever order the questions come in."""
CHANCE = random.Random(3)

expect.set_options(timeout=WAIT)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceClient]:
    if request.param == "sqlite":
        with running_client(f"sqlite:///{tmp_path_factory.mktemp('client')}/studies.db") as made:
            yield made
    else:
        with fresh_database(request.getfixturevalue("postgres")) as url, running_client(url) as made:
            yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as started:
        yield started


@pytest.fixture
def visit(browser: Browser) -> Iterator[Any]:
    """Opens pages, each in a browser context of its own; in the end no page may have complained or gone elsewhere."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def open_page(url: str, size: dict[str, int] = DESKTOP, **options: Any) -> Page:
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        context.set_default_timeout(WAIT)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}"))
        ours = (url[: url.index("/", len("http://")) + 1], "data:image/")
        page.on("request", lambda sent: None if sent.url.startswith(ours) else wrong.append(f"went to {sent.url}"))
        page.goto(url)
        return page

    def expected(text: str) -> None:
        """The browser's own report of a refusal or a broken connection that the test brought about."""
        assert any(text in line for line in wrong)
        wrong[:] = [line for line in wrong if text not in line]

    open_page.expected = expected
    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def liked(page: Page) -> str:
    """Which of the two shown the judge picks, "a" or "b": mostly the better one, as the model says."""
    first, second = ((LIKING | SHOES)[name] for name in page.locator("#cards .name").all_inner_texts())
    return "a" if CHANCE.random() < 1 / (1 + math.exp(second - first)) else "b"


def answer(page: Page, how: str) -> bool:
    """Answer one question by mouse or keyboard, and see it go; False where there is none to answer."""
    expect(page.locator("#question, #notice").locator("visible=true")).to_be_visible()
    page.wait_for_timeout(130)  # nobody is faster, and a double tap must not count twice
    if page.locator("#notice").is_visible():
        return False
    before, word = page.locator("#cards").get_attribute("data-shown"), liked(page)
    if how == "mouse":
        unless_over(page, page.locator(f"[data-answer={word}]").click)
    else:
        page.keyboard.press({"a": "ArrowLeft", "b": "ArrowRight"}[word])
    page.wait_for_function("before => cards.dataset.shown !== before || question.hidden", arg=before)
    return True


def unless_over(page: Page, do: Callable[..., None]) -> None:
    """Click or tap, unless the notice comes in between."""
    end = time.monotonic() + PATIENCE
    while not page.locator("#notice").is_visible():
        try:
            do(timeout=1_000)
        except TimeoutError:
            assert time.monotonic() < end
        else:
            return


def press(page: Page, *keys: str) -> None:
    """Answer one question by these keys, and see that the next is there."""
    page.wait_for_timeout(130)
    before = page.locator("#cards").get_attribute("data-shown")
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator("#cards")).not_to_have_attribute("data-shown", before or "")
    expect(page.locator("#question")).to_be_visible()


def wait_for_the_next_question(page: Page) -> None:
    """Until the page has it, so that it is shown at once after an answer, with or without the server."""
    expect(page.locator("#cards")).to_have_attribute("data-held", "2")


def answer_to_the_end(page: Page, how: str, most: int = 200) -> None:
    for _ in range(most):
        if not answer(page, how):
            return
    raise AssertionError(f"no verdict after {most} answers")


def answer_in_turns(pages: list[Page], how: str) -> None:
    """Let several judges answer to the end, each whenever there is a question: one may wait for answers of another."""
    end = time.monotonic() + PATIENCE
    while not all(page.locator("#notice").is_visible() for page in pages):
        assert time.monotonic() < end, "no verdict"
        for page in pages:
            if page.locator("#question").is_visible():
                answer(page, how)
        pages[0].wait_for_timeout(20)


@pytest.mark.parametrize(("how", "size"), [("mouse", PHONE), ("keyboard", DESKTOP)])
def test_a_judge_answers_to_the_verdict(client: ServiceClient, visit: Any, how: str, size: dict[str, int]) -> None:
    study = client.study()
    page = visit(client.link(study), size)
    answer_to_the_end(page, how)
    expect(page.locator("#notice-title")).to_have_text("That is all, thank you!")
    found = client.result(study)
    assert (found["best"], found["status"], found["guarantee"]) == ("sea", "within epsilon", "proved")
    expect(page.locator("#notice-text")).to_contain_text(f"Your {len(client.answers(study))} answers counted.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_judge_for_whom_no_second_question_is_ready_asks_now_and_then(client: ServiceClient, visit: Any) -> None:
    study = client.study(budget=2)
    page = visit(client.link(study))
    assert answer(page, "keyboard")
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "/questions" in sent.url else None)
    page.wait_for_event("request", lambda sent: "/questions" in sent.url)
    page.wait_for_timeout(2_000)  # while the last question is shown
    assert 1 <= len(asked) < 10
    answer_to_the_end(page, "keyboard")
    assert client.result(study)["status"] == "budget spent"


def test_undo_takes_the_last_answer_back_until_it_was_evaluated(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    page = visit(client.link(study))
    expect(page.locator("#question")).to_be_visible()
    first = page.locator("#cards").get_attribute("data-shown")
    wait_for_the_next_question(page)
    press(page, "ArrowLeft")
    page.keyboard.press("u")
    expect(page.locator("#cards")).to_have_attribute("data-shown", first)
    expect(page.locator("#undo")).to_be_disabled()
    press(page, "ArrowRight")
    client.wait_until(study, "answers", 1)  # by itself, after a moment
    assert [said["winner"] for said in client.answers(study)] == ["b"]
    page.locator("#undo").click()
    expect(page.locator("#said")).to_contain_text("can no longer be undone")
    visit.expected("status of 409")
    press(page, "ArrowUp")
    press(page, "ArrowDown")
    answer(page, "keyboard")
    client.wait_until(study, "answers", 2)
    assert [said["winner"] for said in client.answers(study)][:3] == ["b", "tie", "skip"]


def test_two_judges_at_once(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    pages = [visit(client.link(study, name), PHONE) for name in ("Ann", "Ben")]
    answer_in_turns(pages, "keyboard")
    for page in pages:
        expect(page.locator("#notice-title")).to_have_text("That is all, thank you!")
    assert client.result(study)["best"] == "sea"
    said = client.answers(study)
    counts = [sum(row["judge"] == judge for row in said) for judge in {row["judge"] for row in said}]
    assert len(counts) == 2
    shown = [page.locator("#notice-text").inner_text() for page in pages]
    assert sorted(f"Your {count} answers" in text for count in counts for text in shown)[-2:] == [True, True]


def test_three_visitors_join_by_the_shared_link(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    board = visit(f"{client.base}/study/{study}#{TOKEN}", PHONE)
    board.locator("#phrase").fill("open the door")
    board.get_by_role("button", name="Open a shared link").click()
    expect(board.locator("#shared-link")).to_have_value(re.compile(f"/join/{study}#[a-z2-7]{{16}}$"))
    board.wait_for_function("() => document.getElementById('shared-qr').naturalWidth > 0")
    link = board.locator("#shared-link").input_value()
    pages = [visit(link, PHONE) for _ in range(3)]
    for page, name in zip(pages, ("Ann", "Ben", ""), strict=True):
        expect(page.locator("#title")).to_have_text("Which colour for the door?")
        page.get_by_label("Your name").fill(name)
        page.get_by_label("Pass phrase").fill("open the window" if name == "Ann" else "open the door")
        page.get_by_role("button", name="Start").click()
    expect(pages[0].locator("#error")).to_contain_text("not the pass phrase")
    visit.expected("status of 403")
    pages[0].get_by_label("Pass phrase").fill("open the door")
    pages[0].get_by_role("button", name="Start").click()
    for page in pages:
        expect(page.locator("#question")).to_be_visible()
    expect(board.locator("#shared-said")).to_contain_text("3 of at most 100 visitors have joined")
    assert answer(pages[2], "mouse")
    mine = pages[2].url
    pages[2].goto(link)  # the same browser goes on as the same judge
    expect(pages[2].locator("#question")).to_be_visible()
    assert pages[2].url == mine
    answer_in_turns(pages, "keyboard")
    assert client.result(study)["best"] == "sea"
    assert sorted(judge["name"] for judge in client.ask("GET", f"/studies/{study}/judges")) == ["", "Ann", "Ben"]
    assert board.evaluate("document.documentElement.scrollWidth <= innerWidth")


SHOES = {"Clog": 3.0, "Sandal": 2.0, "Court shoe": 1.0, "Trail runner": 0.0, "Winter boot": -1.0}
TABLE = "item,label,weight,price,warmth\n" + "\n".join(
    f"{name.lower()},{name},{200 + 70 * place},{30 + (place * 41) % 60},{place}" for place, name in enumerate(SHOES)
)


@pytest.fixture
def serve_shoes(tmp_path: Path) -> Iterator[list[str]]:
    """`surepick serve --items shoes.csv --question …`, and the lines that it prints before it serves."""
    (tmp_path / "shoes.csv").write_text(TABLE, encoding="utf-8")
    command = [sys.executable, "-m", "surepick.cli", "serve", f"sqlite:///{tmp_path}/studies.db"]
    chosen = ["--port", str(free_port()), "--items", "shoes.csv", "--question", "Which shoe would you buy?"]
    with subprocess.Popen([*command, *chosen], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        lines = list[str]()
        while not lines or not lines[-1].startswith("Instead of"):
            lines.append(served.stdout.readline())
            assert lines[-1], lines
        yield lines
        served.terminate()


def test_three_colleagues_prove_a_short_list_by_the_link_of_a_table(serve_shoes: list[str], visit: Any) -> None:
    assert any("Even then fewer than 5 cannot prove one winner." in line for line in serve_shoes)
    address = {line.split()[0]: line.split()[1] for line in serve_shoes if line.startswith(("Admin:", "Judges:"))}
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not reachable(address["Judges:"]):
        time.sleep(0.1)
    board = visit(address["Admin:"])
    pages = [visit(address["Judges:"], PHONE) for _ in range(3)]
    for page, name in zip(pages, ("Ann", "Ben", "Cleo"), strict=True):
        page.get_by_label("Your name").fill(name)
        page.get_by_role("button", name="Start").click()
    answer_in_turns(pages, "keyboard")
    for page in pages:
        expect(page.locator("#notice-title")).to_have_text("Thank you")
    short_list = re.compile(r"(The best is .*|No item is excluded); the best guess is \w+")
    expect(board.locator("#claim")).to_have_text(short_list)
    expect(board.locator("#reason")).to_contain_text("All 3 judges have answered every question that could decide it")
    expect(board.locator("#reason")).to_contain_text("with probability about")
    expect(board.locator("#claims tr")).to_have_count(2)
    expect(board.locator("#needed")).to_contain_text("more judge")
    board.get_by_role("link", name="Printable result").click()
    expect(board.locator(".result h1")).to_have_text(short_list)  # maybe shorter by now: the last answers come in late
    expect(board.locator(".result header")).to_contain_text("more judge")


def reachable(address: str) -> bool:
    try:
        return httpx.get(address).is_success
    except httpx.HTTPError:
        return False


def test_long_markdown_scrolls_blind_and_a_comment_is_kept(client: ServiceClient, visit: Any) -> None:
    long = "# Plan\n\n```python\n" + "x = 1  # " + "a long line " * 30 + "\n```\n\n" + "**Read** this.\n\n" * 60
    items = [{"name": f"gpt-{place}", "text": long} for place in range(3)]
    study = client.study(items, title="Which answer?", blind=True, instructions="Be *fair*.")
    page = visit(client.link(study), PHONE)
    expect(page.locator("#instructions-text em")).to_have_text("fair")
    expect(page.locator("#cards .name")).to_have_text(["A", "B"])
    assert "gpt-" not in page.content()
    text = page.locator("#cards .text").first
    expect(text.locator("strong").first).to_have_text("Read")
    assert text.evaluate("one => one.scrollHeight > one.clientHeight")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.wait_for_timeout(130)
    text.click()  # reading is not answering
    page.keyboard.press("c")
    page.get_by_label("Comment", exact=True).fill("A and b are the same, <b>are they?</b>")
    page.keyboard.press("ArrowLeft")  # moves the cursor, and answers nothing
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#said")).to_have_text("Your comment is saved.")
    assert client.answers(study) == []
    page.locator("[data-answer=b]").click()
    client.wait_until(study, "comments", 1)
    board = visit(f"{client.base}/study/{study}#{TOKEN}")
    expect(board.locator("#comments")).to_contain_text("A and b are the same, <b>are they?</b>")
    expect(board.locator("#about-items")).to_contain_text("Judges do not see their names.")
    client.wait_until(study, "answers", 1)
    assert client.answers(study)[0]["winner"] == "b"


def test_outputs_of_systems_are_compared_blind_below_their_input(client: ServiceClient, visit: Any) -> None:
    rows = [f'gpt-{one},mail {two},"Dear *sir* {one}"' for one in range(3) for two in range(5)]
    table = "\n".join(["system,input,output", *rows])
    texts = "\n".join(["input,text", *(f'mail {two},"Where is **parcel {two}**? <script>"' for two in range(5))])
    page = visit(f"{client.base}/new#{TOKEN}", {"width": 390, "height": 844})
    page.locator("#title").fill("Which reply is better?")
    for field, content in (("outputs", table), ("inputs", texts)):
        file = {"name": f"{field}.csv", "mimeType": "text/csv", "buffer": content.encode()}
        page.locator(f"#{field}").set_input_files(file)
    page.get_by_role("button", name="Start the study").click()
    expect(page.locator("#about-items")).to_contain_text("two outputs for one of 5 inputs")
    study = page.locator("#study").get_attribute("data-study")
    judge = visit(client.link(study), {"width": 390, "height": 844}, has_touch=True)
    expect(judge.locator("#input-text strong")).to_contain_text("parcel")
    expect(judge.locator("#input-text")).to_contain_text("<script>")
    expect(judge.locator("#cards .text em").first).to_have_text("sir")
    expect(judge.locator("#cards .name")).to_have_text(["A", "B"])
    assert "gpt-" not in judge.content()
    assert judge.evaluate("document.documentElement.scrollWidth <= innerWidth")
    judge.wait_for_timeout(130)
    judge.locator("#cards .card").first.tap()
    client.wait_until(study, "answers", 1)
    assert client.answers(study)[0]["input"].startswith("mail ")


def pictures(count: int) -> list[dict[str, Any]]:
    """Items with a picture each, the first the best."""
    made = []
    for place in range(count):
        drawn = io.BytesIO()
        Image.new("RGB", (300, 200), (40 * place, 90, 200 - 30 * place)).save(drawn, "PNG")
        coded = base64.b64encode(drawn.getvalue()).decode()
        made.append({"name": f"picture {place}", "image": f"data:image/png;base64,{coded}"})
    return made


def four(page: Page) -> list[str]:
    """The four items shown, once the question is there."""
    expect(page.locator("#cards .card")).to_have_count(4)
    page.wait_for_timeout(130)
    return page.locator("#cards .name").all_inner_texts()


def test_four_pictures_are_ranked_by_touch_and_by_keyboard(client: ServiceClient, visit: Any) -> None:
    study = client.study(pictures(6), policy=None, assume="winner", show=4, answer="rank", title="Which first?")
    page = visit(client.link(study), {"width": 390, "height": 844}, has_touch=True)
    expect(page.locator("#task")).to_have_text("Tap the best first, then the next best: 3 taps.")
    names = four(page)
    page.wait_for_function(
        "() => [...document.querySelectorAll('#cards img')].every((one) => one.complete && one.naturalWidth === 300)"
    )
    boxes = [page.locator("#cards .card").nth(place).bounding_box() for place in range(4)]
    assert all(
        box and box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["y"] + box["height"] <= 844 for box in boxes
    )
    cards = page.locator("#cards .card")
    cards.nth(2).tap()
    cards.nth(0).tap()
    expect(cards.nth(0)).to_have_attribute("data-rank", "2")
    cards.nth(0).tap()  # tapped again: taken back
    expect(cards.nth(0)).to_have_attribute("data-rank", "")
    cards.nth(3).tap()
    page.locator("#undo").tap()  # the last tap only
    expect(cards.nth(3)).to_have_attribute("data-rank", "")
    cards.nth(1).tap()
    shown = page.locator("#cards").get_attribute("data-shown")
    wait_for_the_next_question(page)
    cards.nth(3).tap()
    expect(page.locator("#cards")).not_to_have_attribute("data-shown", shown)
    page.locator("#undo").tap()  # the whole answer, as long as it has not been evaluated
    expect(page.locator("#cards")).to_have_attribute("data-shown", shown)
    assert four(page) == names
    press(page, *"314")
    second = four(page)
    for key in "u2u431":  # u takes back the answer before, or the last digit
        page.keyboard.press(key)
        page.wait_for_timeout(150)
    four(page)
    client.wait_until(study, "answers", 1)
    said = client.answers(study)[0]
    assert said["ranking"] in (
        " > ".join([names[2], names[0], names[3]]),
        " > ".join([names[3], names[2], names[0]]),
    )
    assert len(second) == 4
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("form", "how"), [("pick", "touch"), ("pick", "keyboard"), ("rank", "touch")])
def test_the_best_of_four_pictures_is_found(client: ServiceClient, visit: Any, form: str, how: str) -> None:
    study = client.study(pictures(5), policy=None, assume="winner", show=4, answer=form, title="Which first?")
    page = visit(client.link(study), {"width": 390, "height": 844}, has_touch=True)
    for _ in range(80):
        expect(page.locator("#question, #notice").locator("visible=true")).to_be_visible()
        if page.locator("#notice").is_visible():
            break
        names = four(page)
        shown = page.locator("#cards").get_attribute("data-shown")
        order = sorted(range(4), key=lambda place: names[place])[: 1 if form == "pick" else 3]
        for place in order:
            if how == "keyboard":
                page.keyboard.press(str(place + 1))
                continue
            unless_over(page, page.locator("#cards .card").nth(place).tap)
        page.wait_for_function("before => cards.dataset.shown !== before || !notice.hidden", arg=shown)
    found = client.result(study)
    assert (found["best"], found["guarantee"]) == ("picture 0", "proved")


def test_grades_by_button_and_by_digit(client: ServiceClient, visit: Any) -> None:
    study = client.study(policy=None, assume="winner", answer="grade")
    page = visit(client.link(study), {"width": 390, "height": 844}, has_touch=True)
    expect(page.locator("#grades")).to_be_visible()
    assert page.locator("#cards .name").first.inner_text().startswith("A: ")
    for how in ("A much better", "B better", "3"):
        page.wait_for_timeout(150)
        shown = page.locator("#cards").get_attribute("data-shown")
        if how == "3":
            page.keyboard.press(how)
        else:
            page.get_by_role("button", name=how).tap()
        expect(page.locator("#cards")).not_to_have_attribute("data-shown", shown)
    client.wait_until(study, "answers", 2)
    assert [said["winner"] for said in client.answers(study)][:2] == ["much better", "worse"]


def test_answers_given_offline_are_kept_and_sent_later(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    page = visit(client.link(study), PHONE)
    expect(page.locator("#question")).to_be_visible()
    wait_for_the_next_question(page)
    page.context.set_offline(True)
    page.wait_for_timeout(130)
    page.locator("[data-answer=a]").click()
    page.wait_for_timeout(130)
    page.locator("[data-answer=a]").click()
    expect(page.locator("#unsaved")).to_contain_text("not saved yet")
    assert client.answers(study) == []
    page.context.set_offline(False)
    expect(page.locator("#unsaved")).to_be_hidden()
    client.wait_until(study, "answers", 2)
    # A page that goes away at once still sends what it holds.
    expect(page.locator("#question")).to_be_visible()
    page.wait_for_timeout(130)
    page.locator("[data-answer=a]").click()
    page.reload()
    client.wait_until(study, "answers", 3)
    expect(page.locator("#progress")).to_contain_text("3 answers from you")
    visit.expected("ERR_INTERNET_DISCONNECTED")


def test_links_that_no_longer_work_say_so(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    link = client.link(study)
    judge = client.ask("GET", f"/studies/{study}/judges")[0]["id"]
    client.ask("POST", f"/studies/{study}/judges/{judge}/revoke")
    page = visit(link)
    expect(page.locator("#notice-text")).to_contain_text("It was revoked.")
    page = visit(link[:-3])
    expect(page.locator("#notice-text")).to_contain_text("ask whoever invited you for a new one")
    page = visit(f"{client.base}/judge")
    expect(page.locator("#notice-title")).to_have_text("This page needs a link")
    visit.expected("status of 403")
    visit.expected("status of 401")


def test_the_dashboard_moves_live(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    board = visit(f"{client.base}/study/{study}#{TOKEN}")  # logs in, as the address that `surepick serve` prints
    expect(board.locator("#claim")).to_have_text("No answers yet")
    assert TOKEN not in board.url
    expect(board.get_by_text("Nobody is invited yet.")).to_be_visible()
    board.locator("#name").fill("Ann")
    board.get_by_role("button", name="Add judge").click()
    expect(board.locator("#judges")).to_contain_text("Ann")
    expect(board.locator("#link")).to_have_value(re.compile("/judge#"))
    page = visit(board.locator("#link").input_value(), PHONE)
    for _ in range(4):
        assert answer(page, "mouse")
    expect(board.locator("#answers")).to_have_text(re.compile("[34]"))  # the fourth may still be undone
    expect(board.locator("#claim")).to_contain_text("leads")
    before = board.locator("#evidence polyline").first.get_attribute("points")
    board.get_by_role("button", name="Pause").click()
    expect(board.locator("#state")).to_have_text("paused")
    expect(board.locator("#inviting")).to_be_visible()
    client.wait_until(study, "answers", 4)
    for _ in range(2):  # questions held may be answered while it is paused
        if page.locator("#question").is_visible():
            answer(page, "mouse")
    expect(page.locator("#notice-title")).to_have_text("A short break")
    board.get_by_role("button", name="Resume").click()
    answer_to_the_end_after_a_break(page)
    expect(board.locator("#claim")).to_have_text("Sea is the best, or within 2 of it")
    expect(board.locator("#state")).to_have_text("decided")
    expect(board.locator("#inviting")).to_be_hidden()  # nobody is asked any more
    assert board.locator("#evidence polyline").first.get_attribute("points") != before
    expect(board.locator("#scores circle")).to_have_count(4)
    expect(board.locator("#judges tr")).to_contain_text("%")
    expect(board.locator("#quiet")).to_be_visible()
    board.get_by_role("link", name="Printable result").click()
    expect(board.locator(".result h1")).to_contain_text("Sea is the best")
    expect(board.locator(".result")).to_contain_text("in at most 1 of 5 such searches, if ")
    assert board.get_by_role("link", name="Download certificate.json").is_visible()
    board.emulate_media(media="print")
    expect(board.locator(".bar")).to_be_hidden()
    assert board.pdf().startswith(b"%PDF")


def answer_to_the_end_after_a_break(page: Page) -> None:
    expect(page.locator("#question")).to_be_visible()
    answer_to_the_end(page, "keyboard")


def test_items_change_midway_and_a_judges_data_are_deleted(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    judge = visit(client.link(study, "Flo Secret"), PHONE)
    for _ in range(3):
        assert answer(judge, "keyboard")
    client.wait_until(study, "answers", 3)
    page = visit(f"{client.base}/study/{study}#{TOKEN}")
    page.get_by_role("link", name="Items and data").click()
    items = page.locator("#items")
    expect(items).to_contain_text("all 3 answers of this phase")
    items.get_by_label("Moss").check()
    items.locator("#add").fill("Grey\nGold")
    items.get_by_role("button").click()  # not yet: nobody said that a new phase shall begin
    items.get_by_label("Start a new phase").check()
    items.locator("#add").fill("clay")
    items.get_by_role("button").click()
    expect(items.locator(".error")).to_contain_text("choose another name")
    visit.expected("status of 409")
    assert client.ask("GET", f"/studies/{study}")["phase"] == 0
    items.locator("#add").fill("Grey\nGold")
    items.get_by_role("button").click()
    expect(page.locator("#answers")).to_have_text("0")
    for name in ("Sea", "Clay", "Plum", "Grey", "Gold"):
        expect(page.locator("#surviving")).to_contain_text(name)
    expect(page.locator("#surviving")).not_to_contain_text("Moss")
    expect(page.locator("#judges")).to_contain_text("Flo Secret")
    page.get_by_role("link", name="Items and data").click()
    page.locator("#who").select_option(index=1)
    page.get_by_label("permanently").check()
    page.get_by_role("button", name="Delete the data").click()
    expect(page.locator("#deleted")).to_contain_text("stay without a name")
    assert "Flo Secret" not in str(client.ask("GET", f"/studies/{study}/judges"))
    judge.reload()
    expect(judge.locator("#notice")).to_be_visible()
    visit.expected("status of 404")
    page.goto(f"{client.base}/study/nosuchstudy")
    expect(page.locator("main")).to_contain_text("There is no study 'nosuchstudy'.")
    visit.expected("status of 404")


def test_a_study_from_a_form_and_labels_that_would_be_scripts(client: ServiceClient, visit: Any) -> None:
    evil = "<img src=x onerror=alert(1)>"
    page = visit(f"{client.base}/new")
    page.locator("#token").fill("not the token at all")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#error")).to_contain_text("not the admin's token")
    visit.expected("status of 401")
    page.locator("#token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.locator("#title").fill(f"Which? {evil}")
    table = f"item,label,text,colour\none,{evil},<script>alert(2)</script>,#ff0000\ntwo,Two,plain,#0000ff\n"
    page.locator("#table").set_input_files({"name": "items.csv", "mimeType": "text/csv", "buffer": table.encode()})
    page.get_by_role("button", name="Start the study").click()
    expect(page.locator("h1")).to_have_text(f"Which? {evil}")
    study = page.locator("#study").get_attribute("data-study")
    judge = visit(client.link(study, evil), PHONE)
    expect(judge.locator("h1").first).to_have_text(f"Which? {evil}")
    expect(judge.locator("#cards .name").filter(has_text="onerror")).to_have_text(evil)
    expect(judge.locator("#cards .text").filter(has_text="script")).to_have_text("<script>alert(2)</script>")
    expect(page.locator("#surviving")).to_contain_text(evil)
    expect(page.locator("#judges")).to_contain_text(evil)
    for path in ("/", f"/study/{study}/result"):
        page.goto(client.base + path)
        expect(page.locator("main")).to_contain_text(evil)


def test_a_new_study_says_whom_it_takes_and_what_was_done_to_its_items(client: ServiceClient, visit: Any) -> None:
    page = visit(f"{client.base}/new#{TOKEN}", {"width": 390, "height": 844})
    page.locator("#title").fill("Which shoe would you buy?")
    table = "item,weight,sole\nrunner,240,soft\nboot,900,hard\nsandal,150,cork\n"
    page.locator("#table").set_input_files({"name": "shoes.csv", "mimeType": "text/csv", "buffer": table.encode()})
    page.get_by_role("button", name="Start the study").click()
    expect(page.locator("#needed")).to_contain_text(re.compile(r"If all agree, about \d judges are needed"))
    expect(page.locator("#prepared")).to_contain_text("sole")
    expect(page.locator("#evidence")).to_be_hidden()  # there is nothing to see yet
    page.get_by_role("button", name="Open a shared link").click()
    expect(page.locator("#shared-link")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name="Studies").click()
    page.get_by_role("link", name="Audit log").click()
    expect(page.locator("tbody tr").first).to_contain_text(
        "opened or changed the shared link: Which shoe would you buy?"
    )
    page.locator("#action").select_option("created a study from a table")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr").first).to_contain_text("created a study from a table")
    expect(page.locator("tbody")).not_to_contain_text("shared link")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto(f"{client.base}/docs")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_grades_are_seen_without_scrolling(client: ServiceClient, visit: Any) -> None:
    study = client.study(pictures(4), policy=None, assume="winner", answer="grade", title="Which first?")
    page = visit(client.link(study), {"width": 390, "height": 844}, has_touch=True)
    expect(page.locator("#cards .card")).to_have_count(2)
    page.wait_for_function("() => [...document.querySelectorAll('#cards img')].every((one) => one.complete)")
    bar = page.locator(".others").bounding_box()
    last = page.get_by_role("button", name="B much better").bounding_box()
    assert bar
    assert last
    assert last["y"] + last["height"] <= bar["y"] + 1  # the bar at the bottom covers nothing
