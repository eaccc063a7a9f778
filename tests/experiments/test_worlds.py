from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from helpers import write_zappos
from surepick import InvalidInput, Passive, RageGlm, Session, find_best
from surepick.glm import probability_of_yes, variance
from surepick.judges import ExpectedJudge, RecordedJudge, World
from surepick.session import Question
from surepick_experiments.worlds import (
    CATALOGUE,
    catalogue,
    example_1,
    example_2,
    gaussian,
    load_zappos,
    one_over_kappa,
    pairs_of_pairs,
    soare,
)


def test_soare() -> None:
    made = soare(10)
    assert made.problem.items.shape == (11, 10)
    assert made.best == "e1"
    assert made.gap == pytest.approx(2 * (1 - np.cos(0.1)))
    assert made.kappa == pytest.approx(float(variance(np.array(2.0))))
    with pytest.raises(InvalidInput, match="at least 2 dimensions"):
        soare(1)


def test_examples() -> None:
    assert example_1(3.0).kappa == pytest.approx(float(variance(np.array(3.0))))
    assert len(example_2(3.0).problem.measurements) == 3
    assert example_2(3.0, gap=0.2).gap == pytest.approx(0.2)


@pytest.mark.parametrize("column", CATALOGUE)
def test_catalogue_has_the_sizes_of_the_paper(column: str) -> None:
    made = catalogue(column)
    items, gap, _ = CATALOGUE[column]
    assert made.problem.items.shape == (items, 25)
    assert made.problem.measurements.shape == (5000, 25)
    assert made.gap == pytest.approx(gap, rel=1e-6)
    assert made.kappa == pytest.approx(0.1, rel=0.2)


def test_small_worlds_match_what_is_asked() -> None:
    assert gaussian(4, 9, norm=3.0, gap=0.2).gap == pytest.approx(0.2)
    assert gaussian(4, 9, norm=3.0).norm == pytest.approx(3.0)
    base = catalogue("pointy", items=50, pairs=60)
    twice = pairs_of_pairs(base, 80)
    assert twice.kappa == pytest.approx(base.kappa)
    assert twice.best == base.best
    with pytest.raises(InvalidInput, match="no column 'shiny'"):
        catalogue("shiny")


def test_one_over_kappa_family() -> None:
    """Everybody but the best says no with probability 1 − 1/(2n), the best says yes with it."""
    n = 21
    made = one_over_kappa(n, epsilon=0.5)
    assert len(made.problem.items) == n
    yes = np.sort(probability_of_yes(made.scores))[::-1]
    assert yes[0] >= 1 - 1 / (2 * n) - 1e-12
    assert yes[1] <= 1 / (2 * n) + 1e-12
    np.testing.assert_allclose(np.linalg.norm(made.problem.items, axis=1), 1.0)
    with pytest.raises(InvalidInput, match="more than 20 items"):
        one_over_kappa(4)


def test_judges_follow_the_model() -> None:
    made = soare(3)
    vectors, pulls = made.problem.measurements, np.full(4, 200_000)
    wins = np.asarray(made.judge(0).wins(vectors, pulls))
    expected = probability_of_yes(vectors @ made.theta)
    np.testing.assert_allclose(wins / pulls, expected, atol=0.006)  # five standard errors
    np.testing.assert_allclose(np.asarray(ExpectedJudge(made.theta).wins(vectors, pulls)) / pulls, expected, atol=1e-5)
    judge = made.judge(1)
    question = Session(made.problem, RageGlm(kappa=made.kappa)).ask(1)[0]
    share = np.mean([judge(question) for _ in range(4000)])
    assert share == pytest.approx(float(probability_of_yes(question.vector @ made.theta)), abs=0.04)


def test_a_world_of_ones_own_checks_theta() -> None:
    with pytest.raises(InvalidInput, match="theta must be a list of 2 numbers"):
        World("mine", soare(2).problem, [1.0])


def test_real_catalogue_files(tmp_path: Path) -> None:
    scores = write_zappos(tmp_path)
    made = load_zappos(tmp_path, "sporty", dimension=10, pairs=200)
    assert made.problem.items.shape == (60, 10)
    assert len(made.problem.measurements) == 200
    images = [int(name.removeprefix("image ")) - 1 for name in made.problem.names]
    assert np.corrcoef(made.scores, scores[images])[0, 1] > 0.9
    assert load_zappos(tmp_path, "open", items=30, pairs=50).problem.items.shape == (30, 12)


def test_broken_catalogue_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no file .*zappos-labels.mat"):
        load_zappos(tmp_path, "open")
    with pytest.raises(InvalidInput, match="no attribute 'shiny'"):
        load_zappos(tmp_path, "shiny")
    savemat(tmp_path / "zappos-labels.mat", {"other": [1]})
    with pytest.raises(InvalidInput, match="no variable 'mturkOrder'"):
        load_zappos(tmp_path, "open")
    write_zappos(tmp_path)
    savemat(tmp_path / "zappos-gist.mat", {"gistfeats": np.ones((3, 4))})
    with pytest.raises(InvalidInput, match="3 rows of gistfeats do not have"):
        load_zappos(tmp_path, "open")


def write_votes(folder: Path) -> tuple[Path, Path]:
    items, answers = folder / "items.csv", folder / "answers.csv"
    items.write_text("item,label,size\nx,Ex,1\ny,Why,2\nz,Zed,4\n")
    answers.write_text(
        "item_a,item_b,winner\nx,y,b\ny,x,a\nz,y,a\nx,z,tie\nx,w,a\ny,y,a\nz,x,skip\nx,y,a\nz,y,perhaps\n"
    )
    return items, answers


def test_recorded_votes_are_replayed_in_order_whichever_way_round(tmp_path: Path) -> None:
    judge = RecordedJudge.of(*write_votes(tmp_path), drop_bad_rows=True)
    problem = judge.problem
    assert problem.names == ("x", "y", "z")
    assert len(problem.measurements) == 3
    assert judge.remaining == 6
    assert sorted(int(sentence.split(":")[0].rpartition(" ")[2]) for sentence in judge.unused) == [6, 7, 10]

    def ask(first: str, second: str) -> object:
        return judge(Question(1, 0, 0, np.zeros(1), first, second, False))

    assert [ask("x", "y"), ask("x", "y"), ask("y", "x"), ask("x", "y")] == [0, 0, 0, None]
    assert [ask("z", "x"), ask("z", "x"), ask("y", "z")] == ["tie", None, 0]


def test_a_search_on_recorded_votes_ends(tmp_path: Path) -> None:
    judge = RecordedJudge.of(*write_votes(tmp_path), drop_bad_rows=True)
    problem = judge.problem
    verdict = find_best(problem, judge, policy=Passive(kappa=0.2, budget=2000))
    assert verdict.questions <= 4
    (tmp_path / "answers.csv").write_text("item_a,item_b,winner\np,q,a\n")
    with pytest.raises(InvalidInput, match="no vote that can be used"):
        RecordedJudge.of(tmp_path / "items.csv", tmp_path / "answers.csv")
