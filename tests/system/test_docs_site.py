"""The pages of the documentation and the widget in a real browser: no network, no sideways scrolling, a search."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import surepick as sp
from service_client import CHROMIUM, DESKTOP, PHONE, QUIET
from surepick.notebook import AskWidget

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("index", "install", "guarantees", "glossary", "votes", "theory", "cli")
"""Pages with formulas, tables, code and pictures. Others take longer to build and look alike."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small site of these pages, built with the configuration of the whole."""
    source, built = tmp_path_factory.mktemp("docs"), tmp_path_factory.mktemp("site")
    for name in ("conf.py", "mathml.py", "cli_reference.py", "static", "images"):
        (shutil.copytree if (DOCS / name).is_dir() else shutil.copy)(DOCS / name, source / name)
    for page in PAGES:
        shutil.copy(DOCS / f"{page}.md", source)
    subprocess.run([sys.executable, "-m", "sphinx", "-Q", "-b", "html", str(source), str(built)], check=True)
    return built


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


def sideways(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


CLIPPED = """[...document.querySelectorAll("article math, article pre, article table, article img")].filter(shown => {
    const fits = box => box.getBoundingClientRect().right <= innerWidth + 1;
    const scrolls = box => ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
    for (let box = shown; box.localName !== "article"; box = box.parentElement)
        if (fits(box) && (box === shown || scrolls(box))) return false;
    return true;
}).map(shown => shown.textContent.slice(0, 60))"""
"""What ends beyond the window's edge and scrolls only with the whole text."""


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_pages_fit_and_need_no_network(site: Path, browser: Browser, size: dict[str, int]) -> None:
    page = browser.new_page(viewport=size)
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url) if request.url.startswith("http") else None)
    formulas = lowered = 0
    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        assert sideways(page) <= 0, name
        assert page.evaluate(CLIPPED) == [], name
        formulas += page.locator("math").count()
        low = page.evaluate(
            """[...document.querySelectorAll("msub")].filter(sub => sub.children[0].localName === "mi").map(sub =>
            sub.children[1].getBoundingClientRect().bottom - sub.children[0].getBoundingClientRect().bottom)"""
        )
        assert all(by > 0.5 for by in low), (name, low)  # the font has the measures that lower subscripts
        lowered += len(low)
        assert page.locator("[mathvariant=double-struck], [mathvariant=script]").count() == 0  # browsers ignore them
    assert outside == []
    assert formulas > 10
    assert lowered > 0
    page.goto((site / "cli.html").as_uri())
    assert page.locator("code", has_text="--drop-bad-rows").count() > 0
    assert not re.search(r"[–—][a-z]", page.locator("article").inner_text())  # no dash of an option became another one
    page.goto((site / "index.html").as_uri())
    assert page.locator(".door").count() == 3
    if size == DESKTOP:
        assert page.get_by_placeholder("Search").is_visible()
    page.goto(f"{(site / 'search.html').as_uri()}?q=heuristic")
    page.locator("#search-results li").first.wait_for()
    page.close()


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_the_widget_fits(tmp_path: Path, browser: Browser, size: dict[str, int]) -> None:
    picture = (DOCS / "images" / "dashboard.png").resolve()
    (tmp_path / "items.csv").write_text(
        f"item,text,image\nshort,few words,{picture}\nlong,{'averylongwordwithoutblanks' * 12},\n"
    )
    items = sp.read_items(tmp_path / "items.csv")
    widget = AskWidget(sp.Session(items.problem(), seed=1), items, question="Which one?")
    page = browser.new_page(viewport=size)
    page.set_content(f"<!doctype html><body>{widget.html}</body>")
    assert sideways(page) <= 0
    page.wait_for_function("document.images.length === 1 && document.images[0].naturalWidth > 0")
    boxes = [card.bounding_box() for card in page.locator("div[style*='flex:1']").all()]
    assert len(boxes) == 2
    side_by_side = boxes[0]["y"] == boxes[1]["y"]
    assert side_by_side == (size == DESKTOP)
    page.close()
