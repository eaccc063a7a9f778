"""Build the wheel and the sdist, install each into clean environments, and go from forty prompts to a verdict.

`make wheel-test` runs it. The wheel is tried with every Python from 3.11 to 3.14 that uv or pyenv have on this machine,
the sdist with the oldest. In each environment the prompts are judged by a program, by recorded votes, by hand (lines
on standard input, each after its question was read) and by the buttons of the notebook widget, as docs/install.md has
it; then the commands of docs/systems.md that ask a language model run as they stand, against a server of the tests. All
of it with nothing but the installed package.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fake_model_server import FakeModelServer

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")

PROMPTS = "item,text\n" + "".join(f"prompt {i:02},Answer in {40 - i} words.\n" for i in range(40))

JUDGE = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "answer": "a" if asked["first"] > asked["second"] else "b"}), flush=True)
"""

VOTES = "item_a,item_b,winner,judge\n" + "".join(
    f"prompt {i:02},prompt {j:02},{'a' if i > j else 'b'},judge {judge}\n"
    for judge in range(12)
    for j in range(39)
    for i in {39, j + 1}
)

WIDGET = """
import surepick as sp
from surepick.notebook import AskWidget
items = sp.read_items("prompts.csv")
session = sp.Session(items.problem(), sp.Posterior(), repeats="spaced")
widget = AskWidget(session, items, question="Which prompt is better?")
while widget.question is not None:
    label = "A" if widget.question.first > widget.question.second else "B"
    next(button for button in widget._buttons.children if button.description == label).click()
print(session.verdict())
session.verdict().to_frame(); session.verdict().plot().savefig("verdict.svg"); sp.write_report(session, "report.html")
assert session.verdict().best == "prompt 39"
"""


CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
"""The environment without this repository on the path."""


def run(words: list[str], folder: Path, **more: str) -> str:
    """Run a command, with `more` variables in its environment; returns what it prints."""
    result = subprocess.run(words, cwd=folder, env=CLEAN | more, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(words)} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}")
    return result.stdout


def answer_by_hand(words: list[str], folder: Path) -> tuple[str, int]:
    """Read every question and type its answer; returns what is printed at the end, and how many lines were typed."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, cwd=folder, env=CLEAN, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    shown, typed = list[str](), 0
    for line in process.stderr:
        shown += re.findall(r"prompt \d\d", line)
        if "quit" in line:
            process.stdin.write("a\n" if shown[0] > shown[1] else "b\n")
            process.stdin.flush()
            shown, typed = [], typed + 1
    said = process.stdout.read()
    if process.wait():
        sys.exit(f"{' '.join(words)} ended with {process.returncode} after {typed} lines:\n{said}")
    return said, typed


def ask_model(surepick: str, folder: Path) -> None:
    """Run the commands of docs/systems.md that ask a language model, then the first again, which pays for nothing."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    page = (ROOT / "docs" / "systems.md").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [shlex.split(line)[1:] for line in page.splitlines() if line.startswith("    surepick find --systems")]
    with FakeModelServer() as server:
        server.models = {"some-model"}
        for words in (*commands, commands[0]):
            before = len(server.seen)
            said = run([surepick, *words], folder, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="none")
            options = " ".join(word for word in words if word.startswith("--"))
            print(f"  by a model:  {said.split('.')[0]} ({len(server.seen) - before} calls; {options})", flush=True)
            assert said.startswith("stepwise is the best of 4 items.")
    assert len(server.seen) == before, "The same command again must take its replies from the cache."


def try_package(package: Path, python: str, folder: Path) -> None:
    """Install a package into a new environment, and find the best prompt in four ways."""
    uv = str(Path(sys.executable).parent / "uv")
    run([uv, "venv", "--quiet", "--python", python, "venv"], folder)
    inside = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    install = [uv, "pip", "install", "--quiet", "--python", str(inside / "python")]
    run([*install, str(package)], folder)
    for name, text in (("prompts.csv", PROMPTS), ("judge.py", JUDGE), ("votes.csv", VOTES), ("widget.py", WIDGET)):
        (folder / name).write_text(text)
    surepick, began = str(inside / "surepick"), time.perf_counter()
    print(package.name, "with", run([str(inside / "python"), "--version"], folder).strip(), flush=True)
    print("  version:    ", run([surepick, "--version"], folder).strip())
    judged = run([surepick, "find", "prompts.csv", "--judge", f"{inside / 'python'} judge.py"], folder)
    print("  by program: ", judged.splitlines()[0], flush=True)
    print("  by votes:   ", run([surepick, "find", "prompts.csv", "--answers", "votes.csv"], folder).splitlines()[0])
    by_hand, keys = answer_by_hand([surepick, "ask", "prompts.csv", "--assume", "population"], folder)
    print(f"  by hand:     {by_hand.splitlines()[0]} ({keys} lines typed)", flush=True)
    run([*install, f"{package}[notebook]"], folder)
    print("  by widget:  ", run([str(inside / "python"), "widget.py"], folder).strip())
    run([*install, f"{package}[llm,plots]"], folder)
    ask_model(surepick, folder)
    print(f"  {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    """Build and try everything."""
    uv = str(Path(sys.executable).parent / "uv")
    found = {}
    installed = [str(folder) for folder in (Path.home() / ".pyenv" / "versions").glob("*/bin")]
    everywhere = os.environ | {"PATH": os.pathsep.join([os.environ["PATH"], *installed])}
    for version in VERSIONS:
        words = [uv, "python", "find", "--no-python-downloads", version]
        python = subprocess.run(words, capture_output=True, text=True, env=everywhere)
        if python.returncode:
            print(f"Python {version} is not installed here; not tried.")
        else:
            found[version] = python.stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "dist"
        subprocess.run([uv, "build", "--quiet", "--out-dir", str(built), str(ROOT)], check=True)
        for place, python in enumerate(found.values()):
            for package in sorted(built.glob("*.whl")) + (sorted(built.glob("*.tar.gz")) if place == 0 else []):
                room = Path(folder) / f"{package.suffix[1:]}-{place}"
                room.mkdir()
                try_package(package, python, room)


if __name__ == "__main__":
    main()
