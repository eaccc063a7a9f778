"""What the documentation shows must run."""

import ast
import doctest
import importlib
import pkgutil
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import surepick

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN_WHEN_IMPORTED = ("__main__", "migrations.env")
MODULES = [
    info.name
    for info in pkgutil.walk_packages(surepick.__path__, "surepick.")
    if not info.name.endswith(RUN_WHEN_IMPORTED)
]
PUBLIC = ["", ".checks", ".confidence", ".contextual", ".design", ".identify", ".limits", ".testing"]
"""What users are told to import from."""


def code_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_of_pages_run(page):
    names: dict[str, object] = {}  # a page is read from top to bottom, so later blocks may use earlier ones
    for block in code_blocks(page):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_formulas_on_lines_of_their_own_stand_apart(page):
    """In the middle of a paragraph $$ is read as two $, and what is formula and what is text changes places."""
    lines = ["", *page.read_text().splitlines(), ""]
    for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
        if re.fullmatch(r"\s*\$\$.+\$\$\s*", line):
            assert not before.strip(), line
            assert not after.strip(), line
        else:
            assert not re.search(r"\S\s*\$\$\s*\S", line.replace("`$$`", "")), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), f"{page.name} points at {target}"


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"sp": surepick}).failed == 0


def used_in(source: str) -> set[str]:
    """Names that a piece of code uses beyond importing them."""
    nodes = list(ast.walk(ast.parse(source)))
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    }


@pytest.fixture(scope="module")
def shown() -> set[str]:
    """Names used in code that the tests above run, and in the example that `test_examples` runs."""
    sources = [block for page in PAGES for block in code_blocks(page)]
    sources.append((ROOT / "examples" / "round_robin.py").read_text())
    for name in MODULES:
        tests = doctest.DocTestFinder().find(importlib.import_module(name))
        sources += [example.source for test in tests for example in test.examples]
    return set().union(*map(used_in, sources))


@pytest.mark.parametrize("package", PUBLIC)
def test_everything_exported_is_described_and_shown_in_use(package, shown):
    module = importlib.import_module(f"surepick{package}")
    assert set(module.__all__) <= shown, "show it in docs/api.md, or do not export it"
    for name in module.__all__:
        assert getattr(module, name).__doc__, f"{name} has no docstring"


def test_the_picture_of_the_layers_is_that_of_the_contract():
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_layers.py"))
    assert drawn["PICTURE"].read_text() == drawn["picture"](), "run python docs/draw_layers.py"


def test_every_hop_of_the_architecture_is_where_it_says():
    page = (ROOT / "docs" / "architecture.md").read_text()
    hops = re.findall(r"`([\w/]+\.(?:py|js))`: (`[\w.]+`(?:, `[\w.]+`)*)", page)
    assert len(hops) > 40
    for file, names in hops:
        (path,) = [
            path
            for room in ("src/surepick", "experiments")
            for path in (ROOT / room).rglob(Path(file).name)
            if path.as_posix().endswith(f"/{file}")
        ]
        for name in re.findall(r"`([\w.]+)`", names):
            for part in name.split("."):
                made = rf"^\s*(?:(?:export |async )*(?:def|class|function) {part}\b|{part}\(|{part}\b.* = )"
                assert re.search(made, path.read_text(), re.MULTILINE), (
                    f"{file} has no {part}; docs/architecture.md says so"
                )


def test_every_dependency_has_its_reason():
    groups = []
    for folder in (ROOT, ROOT / "experiments"):
        project = tomllib.loads((folder / "pyproject.toml").read_text())
        groups += [("", project["project"]["dependencies"]), *project["project"]["optional-dependencies"].items()]
        groups += [("", project.get("dependency-groups", {}).get("dev", []))]
    names = [(extra, re.match(r"[\w-]+", line).group()) for extra, lines in groups for line in lines]
    wanted = sorted(each for each in names if each[1] != "surepick")
    page = (ROOT / "docs" / "dependencies.md").read_text()
    listed = re.findall(r"^\|(?:(?: `([\w-]+)`)? \|)? `([\w-]+)` \| \S", page, re.MULTILINE)
    assert sorted(listed) == wanted
