"""The examples hold what they show: notebooks run, and a policy written from outside passes the contract."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from round_robin import TestRoundRobin

__all__ = ["TestRoundRobin"]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch):
    """Run the cells of a notebook as one program, where its files are and without a window; returns its names."""
    monkeypatch.chdir(EXAMPLES)

    def run_notebook(name: str) -> dict[str, Any]:
        names: dict[str, Any] = {}
        with mpl.rc_context({"backend": "agg"}):
            for cell in json.loads((EXAMPLES / name).read_text())["cells"]:
                if cell["cell_type"] == "code":
                    exec(compile("".join(cell["source"]), name, "exec"), names)
            if "plt" in names:
                names["plt"].close("all")
        return names

    return run_notebook


def test_the_notebook_that_finds_the_best_is_right(run):
    names = run("find_the_best.ipynb")
    assert names["verdict"].status == "certain"
    assert names["verdict"].best == names["truth"]
    assert names["nats"][-1] > names["nats"][0]


def test_the_notebook_that_compares_policies_shows_what_it_says(run):
    names = run("compare_policies.ipynb")
    ends = {name: curve[-1] for name, curve in names["curves"].items()}
    assert ends["likelihood-ratio-ucb"] < ends["uniform"] / 2
    assert names["stuck"]["greedy"] > 2 * names["stuck"]["likelihood-ratio-ucb"]


def test_the_notebook_of_forty_prompts_finds_the_models_favourite(run):
    names = run("forty_prompts.ipynb")
    assert names["verdict"].status == "certain"
    assert names["verdict"].best == "exact, two sentences"
    assert names["session"].answered == 1


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_kept_with_the_outputs_of_one_run(path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    assert str(Path.home()) not in path.read_text()
