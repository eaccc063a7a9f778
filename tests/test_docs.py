"""What the documentation shows must run."""

import doctest
import importlib
import pkgutil
import re
import runpy
from pathlib import Path

import pytest

import surepick

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN_WHEN_IMPORTED = ("__main__", "migrations.env")
MODULES = [
    info.name
    for info in pkgutil.walk_packages(surepick.__path__, "surepick.")
    if not info.name.endswith(RUN_WHEN_IMPORTED)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_of_pages_run(page):
    names: dict[str, object] = {}  # a page is read from top to bottom, so later blocks may use earlier ones
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), f"{page.name} points at {target}"


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"sp": surepick}).failed == 0


def test_everything_exported_exists_and_is_documented():
    for name in surepick.__all__:
        assert getattr(surepick, name).__doc__, f"{name} has no docstring"


def test_the_picture_of_the_layers_is_that_of_the_contract():
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_layers.py"))
    assert drawn["PICTURE"].read_text() == drawn["picture"](), "run python docs/draw_layers.py"
