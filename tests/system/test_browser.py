"""The pages in a real browser: judges answer to the verdict, the admin watches; nothing leaves the server."""

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, expect

from databases import fresh_database
from running_service import TOKEN
from service_client import CHROMIUM, COLOURS, DESKTOP, PHONE, ServiceClient, running_browser, running_client

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed; the Debian package is chromium")

WAIT = 20_000.0
"""Milliseconds for what takes a few on a machine that has nothing else to do."""

LIKING = dict(zip(COLOURS, (3.0, 1.0, 0.5, 0.0), strict=True))
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
    first, second = (LIKING[name] for name in page.locator("#cards button .name").all_inner_texts())
    return "a" if CHANCE.random() < 1 / (1 + math.exp(second - first)) else "b"


def answer(page: Page, how: str) -> bool:
    """Answer one question by mouse or keyboard, and see that the next is there; False where there is none to answer."""
    expect(page.locator("#question, #notice").locator("visible=true")).to_be_visible(timeout=WAIT)
    page.wait_for_timeout(130)  # nobody is faster, and a double tap must not count twice
    if page.locator("#notice").is_visible():
        return False
    before, word = page.locator("#cards").get_attribute("data-shown"), liked(page)
    try:
        if how == "mouse":
            page.locator(f"[data-answer={word}]").click(timeout=1_000)
        else:
            page.keyboard.press({"a": "ArrowLeft", "b": "ArrowRight"}[word])
    except TimeoutError:
        assert page.locator("#notice").is_visible()  # it came in between
    page.wait_for_function("before => cards.dataset.shown !== before || !notice.hidden", arg=before)
    return True


def answer_to_the_end(page: Page, how: str, most: int = 200) -> None:
    for _ in range(most):
        if not answer(page, how):
            return
    raise AssertionError(f"no verdict after {most} answers")


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
    page.wait_for_timeout(2_000)  # while the last question is shown
    assert 1 <= len(asked) < 10
    answer_to_the_end(page, "keyboard")
    assert client.result(study)["status"] == "budget spent"


def test_undo_takes_the_last_answer_back_until_it_was_evaluated(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    page = visit(client.link(study))
    expect(page.locator("#question")).to_be_visible()
    first = page.locator("#cards").get_attribute("data-shown")
    page.wait_for_timeout(130)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#cards")).not_to_have_attribute("data-shown", first)
    page.keyboard.press("u")
    expect(page.locator("#cards")).to_have_attribute("data-shown", first)
    expect(page.locator("#undo")).to_be_disabled()
    page.wait_for_timeout(130)
    page.keyboard.press("ArrowRight")
    client.wait_until(study, "answers", 1)  # by itself, after a moment
    assert [said["winner"] for said in client.answers(study)] == ["b"]
    page.locator("#undo").click()
    expect(page.locator("#said")).to_contain_text("can no longer be undone")
    visit.expected("status of 409")
    page.keyboard.press("ArrowUp")
    page.wait_for_timeout(130)
    page.keyboard.press("ArrowDown")
    page.wait_for_timeout(130)
    answer(page, "keyboard")
    client.wait_until(study, "answers", 2)
    assert [said["winner"] for said in client.answers(study)][:3] == ["b", "tie", "skip"]


def test_two_judges_at_once(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    pages = [visit(client.link(study, name), PHONE) for name in ("Ann", "Ben")]
    for _ in range(60):
        if False in [answer(page, "keyboard") for page in pages]:  # both have a turn
            break
    for page in pages:
        answer_to_the_end(page, "keyboard")
        expect(page.locator("#notice-title")).to_have_text("That is all, thank you!")
    assert client.result(study)["best"] == "sea"
    said = client.answers(study)
    counts = [sum(row["judge"] == judge for row in said) for judge in {row["judge"] for row in said}]
    assert len(counts) == 2
    shown = [page.locator("#notice-text").inner_text() for page in pages]
    assert sorted(f"Your {count} answers" in text for count in counts for text in shown)[-2:] == [True, True]


def test_answers_given_offline_are_kept_and_sent_later(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    page = visit(client.link(study), PHONE)
    expect(page.locator("#question")).to_be_visible()
    page.wait_for_timeout(300)  # the next question is there as well
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
    board.locator("#name").fill("Ann")
    board.get_by_role("button", name="Add judge").click()
    expect(board.locator("#judges")).to_contain_text("Ann")
    page = visit(board.locator("#link").input_value(), PHONE)
    for _ in range(4):
        assert answer(page, "mouse")
    expect(board.locator("#answers")).to_have_text("3")  # the fourth may still be undone
    expect(board.locator("#claim")).to_contain_text("leads")
    before = board.locator("#evidence polyline").first.get_attribute("points")
    board.get_by_role("button", name="Pause").click()
    expect(board.locator("#state")).to_have_text("paused")
    client.wait_until(study, "answers", 4)
    for _ in range(2):  # questions held may be answered while it is paused
        if page.locator("#question").is_visible():
            answer(page, "mouse")
    expect(page.locator("#notice-title")).to_have_text("A short break")
    board.get_by_role("button", name="Resume").click()
    answer_to_the_end_after_a_break(page)
    expect(board.locator("#claim")).to_have_text("Sea is the best, or within 2 of it")
    expect(board.locator("#state")).to_have_text("decided")
    assert board.locator("#evidence polyline").first.get_attribute("points") != before
    expect(board.locator("#scores circle")).to_have_count(4)
    expect(board.locator("#judges tr")).to_contain_text("%")
    expect(board.locator("#quiet")).to_be_visible()
    board.get_by_role("link", name="Printable result").click()
    expect(board.locator(".result h1")).to_contain_text("Sea is the best")
    expect(board.locator(".result")).to_contain_text("with probability at most 20%")
    assert board.get_by_role("link", name="Download certificate.json").is_visible()
    board.emulate_media(media="print")
    expect(board.locator(".bar")).to_be_hidden()
    assert board.pdf().startswith(b"%PDF")


def answer_to_the_end_after_a_break(page: Page) -> None:
    expect(page.locator("#question")).to_be_visible(timeout=WAIT)
    answer_to_the_end(page, "keyboard")


def test_items_change_midway_and_a_judges_data_are_deleted(client: ServiceClient, visit: Any) -> None:
    study = client.study()
    judge = visit(client.link(study, "Flo Secret"), PHONE)
    for _ in range(3):
        assert answer(judge, "keyboard")
    client.wait_until(study, "answers", 3)
    page = visit(f"{client.base}/study/{study}#{TOKEN}")
    page.get_by_role("link", name="Change items, delete data").click()
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
    page.get_by_role("link", name="Change items, delete data").click()
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
