"""The study of forms of answers: fair comparisons between them, and a small run."""

from types import SimpleNamespace

import numpy as np

from surepick_experiments.studies import Options
from surepick_experiments.studies.answers import (
    HARD,
    PICK,
    RANK,
    SOFT,
    GradingJudge,
    TyingJudge,
    run_task,
    summarise,
    tasks,
)


def test_ties_leave_expected_scores_as_they_are():
    judge = TyingJudge(np.array([1.0]), np.random.default_rng(1))
    question = SimpleNamespace(vector=np.array([0.8]))
    said = [judge(question) for _ in range(20_000)]
    ties = said.count("tie") / len(said)
    mean = np.mean([0.5 if answer == "tie" else answer for answer in said])
    # Four standard errors of a share of 20,000 are 0.014.
    assert abs(ties - 0.3) < 0.014
    assert abs(mean - 1 / (1 + np.exp(-0.8))) < 0.014
    assert 0 < np.mean([judge(SimpleNamespace(vector=np.array([6.0]))) == "tie" for _ in range(2000)]) < 0.02


def test_soft_and_hard_answers_have_the_same_mean():
    question = SimpleNamespace(items=("3", "0"), first="3")
    for soft in (True, False):
        judge = GradingJudge(soft, np.random.default_rng(2))
        assert abs(np.mean([judge(question) for _ in range(20_000)]) - 0.4) < 0.014


def test_a_small_run_compares_forms_in_the_same_worlds():
    chosen = [task for task in tasks(Options(runs=4)) if task["world"] == "systems"]
    small = {"world": "colours", "items": 5, "gap": 1.5, "run": 0, "forms": [RANK, PICK]}
    tasks_of_runs = enumerate((*chosen, small))
    rows = [row for number, task in tasks_of_runs for row in run_task(task, np.random.default_rng([3, number]))]
    cells = {cell["answers"]: cell for cell in summarise(rows)["cells"]}
    assert set(cells) == {HARD, SOFT, RANK, PICK}
    assert cells[SOFT]["fewer"] > 2
    assert cells[RANK]["questions"] < cells[PICK]["questions"]
    assert not any(cell["wrong"] or cell["undecided"] for cell in cells.values())
