"""The benchmark: methods see only items and answers, worlds keep their promises, rows say what happened."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from surepick.errors import InvalidInput
from surepick_experiments.benchmark import METHODS, WORLDS, Answer, Challenge, Comparisons, Entry, Question, play, row
from surepick_experiments.benchmark import study as benchmark
from surepick_experiments.benchmark.methods import obstacle
from surepick_experiments.benchmark.methods.counts import Counts, Posterior, random_pair
from surepick_experiments.benchmark.methods.successive_elimination import SuccessiveElimination
from surepick_experiments.benchmark.play import told, transcript
from surepick_experiments.benchmark.recorded import recorded_worlds
from surepick_experiments.studies import Options, find_study, run_study
from surepick_experiments.worlds.preferences import bradley_terry

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import make_benchmark  # noqa: E402

CLEAR = Comparisons(bradley_terry(np.array([-1.0, 0.0, 4.0, 0.5, -0.5]))[None])
FEATURES = np.random.default_rng(5).normal(size=(5, 2))
KNOWN = {"kappa": 0.05, "norm": 2.0}
ANSWERS = [Answer(score) for score in np.random.default_rng(6).choice([0.0, 0.5, 1.0], size=60).tolist()]


def challenge_of(entry: Entry) -> Challenge:
    """Something that this method can take."""
    challenge = Challenge(5, FEATURES, budget=60, known={name: KNOWN[name] for name in entry.needs})
    return challenge if not entry.unfit(challenge) else replace(challenge, pairs=False)


@pytest.fixture(params=METHODS)
def entry(request: pytest.FixtureRequest) -> Entry:
    found = METHODS[request.param]
    if obstacle(found, challenge_of(found)):
        pytest.skip(obstacle(found, challenge_of(found)))
    return found


class TestMethods:
    def test_what_a_method_does_depends_on_items_and_answers_only(self, entry: Entry) -> None:
        """The same answers lead to the same questions, though no world is there to look at."""
        assert transcript(entry, challenge_of(entry), ANSWERS, 1) == transcript(entry, challenge_of(entry), ANSWERS, 1)

    def test_questions_are_about_the_items(self, entry: Entry) -> None:
        challenge = challenge_of(entry)
        for question, best in transcript(entry, challenge, ANSWERS, 2):
            assert question.times == 1
            assert 0 <= question.first < 5
            assert question.second is None if not challenge.pairs else 0 <= question.second != question.first
            assert best is None or 0 <= best < 5

    def test_it_finds_a_clear_winner(self, entry: Entry) -> None:
        if entry.unfit(CLEAR.challenge):
            pytest.skip("needs features")
        result = row("it", entry, CLEAR, 3, most=3000, until=400)
        assert result["right_400"]
        assert not result["wrong"]


class Cheat:
    """Knows the truth from elsewhere."""

    truth = 0

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.items = challenge.items

    def ask(self) -> Question:
        return Question(Cheat.truth, (Cheat.truth + 1) % self.items)

    def tell(self, question: Question, answer: Answer) -> None: ...

    def best(self) -> int:
        return Cheat.truth

    def done(self) -> bool:
        return False


def test_a_method_that_sees_the_truth_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    first = transcript(Entry(Cheat, ""), Challenge(5), ANSWERS, 1)
    monkeypatch.setattr(Cheat, "truth", 2)
    assert transcript(Entry(Cheat, ""), Challenge(5), ANSWERS, 1) != first


def test_prior_knowledge_is_told_to_those_who_need_it_only() -> None:
    assert told(METHODS["winner"], CLEAR, 10).known == {}
    assert set(told(METHODS["log-ts"], CLEAR, 10).known) == {"norm"}
    assert set(vars(told(METHODS["log-ts"], CLEAR, 10))) == set(vars(Challenge(5)))


@pytest.mark.parametrize("name", WORLDS)
class TestWorlds:
    def test_answers_have_the_stated_mean(self, name: str) -> None:
        """Single answers and many at once, at a false-alarm rate of 1e-6 a world."""
        world, rng = WORLDS[name].draw(np.random.default_rng(1)), np.random.default_rng(2)
        count = 2000
        (best,) = sorted(world.best)[:1]
        other = (best + 1) % world.challenge.items
        question = Question(best, other) if world.challenge.pairs else Question(best)
        mean = world.scores[best, other] if isinstance(world, Comparisons) else float(world._yes[best])
        for total in (
            sum(world.answer(question, rng).score for _ in range(count)),
            world.answer(replace(question, times=count), rng).score,
        ):
            # A tie is half a win, which only makes the sum vary less than a binomial number.
            assert binom.ppf(5e-7, count, mean) <= total <= binom.isf(5e-7, count, mean)

    def test_the_truth_is_what_it_says(self, name: str) -> None:
        world = WORLDS[name].draw(np.random.default_rng(3))
        assert world.has_winner == (name != "circle on top")
        assert all(world.behind(item) == 0 for item in world.best)
        assert all(world.behind(item) > 0 for item in range(world.challenge.items) if item not in world.best)
        if isinstance(world, Comparisons):
            assert np.allclose(world.scores + world.scores.T, 1)
            with pytest.raises(InvalidInput, match="compares two items"):
                world.answer(Question(0), np.random.default_rng(0))

    def test_the_best_is_in_no_particular_place(self, name: str) -> None:
        found = {best for seed in range(12) for best in WORLDS[name].draw(np.random.default_rng(seed)).best}
        assert len(found) > 2


def test_position_bias_and_judges() -> None:
    rng = np.random.default_rng(4)
    world = WORLDS["careless judges"].draw(rng)
    judges = {world.answer(Question(0, 1), rng).judge for _ in range(200)}
    assert judges == set(range(10))
    assert WORLDS["systems"].draw(rng).answer(Question(0, 1), rng).judge == 0
    biased = Comparisons(bradley_terry(np.array([1.0, 0.0]))[None], bias=2.0)
    assert 0.5 < biased.scores[0, 1] < bradley_terry(np.array([1.0, 0.0]))[0, 1]


class TestPosterior:
    def test_mode_and_covariance(self) -> None:
        rng = np.random.default_rng(7)
        counts = Counts(Challenge(5, FEATURES))
        for _ in range(100):
            counts.add(Question(*random_pair(5, rng)), Answer(float(rng.random() < 0.6)))
        model = Posterior.usual(counts)
        model.refit(12)
        slope, factor = model.slope_and_factor(counts.won)
        assert np.allclose(slope, 0, atol=1e-9)
        step = 1e-5 * np.eye(2)[0]
        model.theta = model.theta + step
        assert np.allclose(
            model.slope_and_factor(counts.won)[0], -(np.tril(factor) @ np.tril(factor).T) @ step, rtol=1e-3
        )
        model.refit(3)
        drawn = np.cov(model.samples(100_000, rng))
        assert np.allclose(drawn, model.covariance(), atol=0.05 * model.covariance().max())

    def test_yes_or_no(self) -> None:
        counts = Counts(Challenge(5, FEATURES, pairs=False))
        for item in range(5):
            counts.add(Question(item, times=20), Answer(10.0 + item))
        model = Posterior(counts, 0.5)
        model.refit(10)
        assert np.allclose(model.slope_and_factor(counts.won)[0], 0, atol=1e-9)


def test_fixed_budgets_are_spent_in_halves() -> None:
    method = SuccessiveElimination(Challenge(8, budget=60), np.random.default_rng(1))
    world = Comparisons(bradley_terry(np.arange(8.0))[None])
    play(method, world, np.random.default_rng(2), most=60, until=0)
    assert len(method.left) == 2
    assert method.best() == 7


class TestStudy:
    def test_rows_resume_and_do_not_depend_on_other_methods(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(benchmark, "WORLDS", {name: WORLDS[name] for name in ("5 items", "circle on top")})
        monkeypatch.setitem(benchmark.PROFILES, "small", (2, 50))
        study = find_study("benchmark")
        one, _ = run_study(study, Options(policies=("elo",)), out=tmp_path / "one")
        both, summary = run_study(study, Options(policies=("winner", "elo")), out=tmp_path / "both")
        timeless = [{name: row[name] for name in row if name != "milliseconds"} for row in [*one, *both]]
        assert all(row in timeless[len(one) :] for row in timeless[: len(one)])
        assert {row["seed"] for row in one} == {row["seed"] for row in both}  # the same instances
        assert [path.name for path in study.draw(both, summary, tmp_path)] == ["guesses.png", "stops.png"]
        assert len(study.tables(summary)) == 2
        again, _ = run_study(study, Options(policies=("winner", "elo")), out=tmp_path / "both")
        assert again == both

    def test_methods_that_cannot_take_part_leave_no_row(self) -> None:
        task = {"world": "5 items", "method": "features", "run": 0, "seed": 0, "until": 25}
        assert benchmark.run_task(task, np.random.default_rng(0)) == []
        with pytest.raises(InvalidInput, match="knows no method"):
            benchmark.tasks(Options(policies=("nonsense",)))
        with pytest.raises(InvalidInput, match="--profile must be one of"):
            Options(profile="large")

    def test_a_claim_that_is_wrong_too_often_is_found_and_one_that_is_not_is_not(self) -> None:
        def rows(wrong: int) -> list[dict[str, Any]]:
            known = {"world": "5 items", "method": "winner", "has_winner": True, "explained": False, "stopped": True}
            return [known | {"wrong": k < wrong, "questions": 10 + k, "milliseconds": 1.0} for k in range(100)]

        assert benchmark.summarise(rows(20))["broken"] == ["winner"]
        (cell,) = benchmark.summarise(rows(8))["cells"]
        assert not cell["broken"]
        assert cell["error"] == 0.08
        assert cell["questions_low"] < cell["questions"] < cell["questions_high"]

    def test_medians_of_runs_that_did_not_stop(self) -> None:
        assert benchmark.median_limits([np.inf] * 6 + [1.0] * 4)[1] == np.inf
        low, median, high = benchmark.median_limits([float(value) for value in range(1, 102)])
        assert (low, median, high) == (41, 51, 61)
        assert benchmark.median_limits([1.0, 2.0, 3.0, 4.0, 5.0]) == (0, 3, np.inf)
        assert benchmark.median_limits([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == (1, 4, 6)  # all six on one side: 2/64 < 5%


def test_recorded_votes_are_drawn_again(tmp_path: Path) -> None:
    (tmp_path / "my_items.csv").write_text("item,size,price\na,1,0\nb,2,1\nc,4,0\nd,3,5\n")
    votes = ["a,b,a"] * 3 + ["b,a,a"] + ["a,c,tie", "a,c,a", "c,b,a", "b,d,a"]  # "a" is the first of the two
    (tmp_path / "my_answers.csv").write_text("\n".join(["item_a,item_b,winner", *votes]))
    (world,) = [family.draw(np.random.default_rng(1)) for family in recorded_worlds(str(tmp_path)).values()]
    assert isinstance(world, Comparisons)
    assert world.features is not None
    a, b, c = (
        int(np.flatnonzero(world.features[:, 0] == np.sort(world.features[:, 0])[place])[0]) for place in (0, 1, 3)
    )
    assert world.scores[a, b] == 0.75
    assert world.scores[a, c] == 0.75  # one win and one tie
    assert world.scores[b, c] == 0
    rng = np.random.default_rng(2)
    assert {world.answer(Question(a, c), rng).score for _ in range(50)} == {0.5, 1.0}
    assert benchmark.tasks(Options(data=str(tmp_path), runs=1))[0]["world"] == "my"
    with pytest.raises(InvalidInput, match="has no file"):
        recorded_worlds(str(tmp_path / "nothing"))


class TestPage:
    def test_it_is_what_its_rows_say(self) -> None:
        summary = benchmark.summarise(make_benchmark.read_rows())
        assert (DOCS / "benchmark.md").read_text(encoding="utf-8") == make_benchmark.page(summary)

    def test_other_rows_give_another_page(self) -> None:
        """A rival that stops first and keeps delta is named as first, and one that is often wrong is not."""
        rows = [row for row in make_benchmark.read_rows() if row["method"] in ("winner", "savage")]
        sooner = [
            row | {"questions": 1, "stopped": True, "wrong": False} if row["method"] == "savage" else row
            for row in rows
        ]
        assert "It is **not** first in: " in make_benchmark.page(benchmark.summarise(sooner))
        wrong = [row | {"wrong": True} if row["method"] == "savage" else row for row in sooner]
        assert "It is **not** first in: " not in make_benchmark.page(benchmark.summarise(wrong))

    def test_fixed_budgets_are_compared_in_worlds_that_all_of_the_methods_take_part_in(self) -> None:
        """Shares and regrets are means over worlds, not over runs; a world that one method lacks does not count."""
        row = {"seed": 0, "items": 5, "has_winner": True, "explained": True, "stopped": False, "wrong": False}
        row |= {"questions": 100, "milliseconds": 1.0}
        points = make_benchmark.FIXED_BUDGETS
        rows = [
            row
            | {"world": world, "method": method}
            | {f"right_{point}": right for point in make_benchmark.CHECKPOINTS}
            | {f"behind_{point}": 0.1 - 0.1 * right for point in make_benchmark.CHECKPOINTS}
            for world, method, right in [
                *(("5 items", "winner", True) for _ in range(3)),
                *(("10 items", "winner", False) for _ in range(1)),
                *((world, "top-two", True) for world in ("5 items", "10 items")),
                ("20 items", "winner", False),
            ]
        ]
        page = make_benchmark.page(benchmark.summarise(rows))
        (winner,) = (line for line in page.splitlines() if line.startswith("| **winner** | simulated |"))
        assert winner.count("50 ± ") == winner.count("; 0.050") == len(points)
        assert "over the 2 simulated and 0 recorded" in page
