"""Anytime where its assumptions fail or its numerics are strained: it never crashes, and claims only what it can prove.

A claim is honest if the independent checker derives it again from the tallies, whatever world the answers came from.
Where answers are coin tosses in disguise there must be no claim at all.
"""

import csv
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from surepick import Anytime, Problem, Question, Session, Status, Verdict, find_best, verify_certificate
from surepick.judges import RecordedJudge

Judge = Callable[[Question, int], int]


def searched(problem: Problem, judge: Judge, *, questions: int = 100, delta: float = 0.05, seed: int = 1) -> Session:
    """A session of at most so many questions; verdict and p-value are looked at on the way."""
    session = Session(problem, Anytime(delta=delta, budget=questions), seed=seed)
    number = 0
    while asked := session.ask(5):
        for question in asked:
            session.tell(question.id, judge(question, number), judge=f"judge {number % 3}")
            number += 1
        if number % 50 == 0:
            honest(session)
    return session


def honest(session: Session) -> Verdict:
    """What the verdict says is consistent in itself, and proved where it is a claim."""
    verdict = session.verdict()
    assert verdict.best in verdict.surviving
    assert verdict.questions <= session.answered
    assert Verdict.from_json(verdict.to_json()) == verdict
    state, _ = session.progress()
    assert isinstance(session.policy, Anytime)
    assert 0.0 <= session.policy.p_value(state) <= 1.0
    if verdict.status is Status.CERTAIN:
        assert verdict.surviving == (verdict.best,)
        assert verify_certificate(session.certificate()).best == verdict.best
    elif verdict.status.final:
        assert verdict.reason
    return verdict


def features(items: int = 6, dimension: int = 3, seed: int = 0) -> Problem:
    return Problem.from_pairs(np.random.default_rng([seed, 8]).normal(size=(items, dimension)))


def taste(norm: float = 3.0, dimension: int = 3) -> np.ndarray:
    theta = np.random.default_rng([dimension, 2]).normal(size=dimension)
    return norm * theta / float(np.linalg.norm(theta))


def probability(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


class TestCoinsInDisguise:
    """Answers that have nothing to do with the items: no claim."""

    @pytest.mark.parametrize("name", ["always one", "always zero", "coin", "contradictory"])
    def test_nothing_is_claimed(self, name: str) -> None:
        rng = np.random.default_rng(3)
        flips: dict[int, int] = {}

        def contradict(question: Question) -> int:
            flips[question.measurement] = 1 - flips.get(question.measurement, 0)
            return flips[question.measurement] ^ question.swapped

        judges: dict[str, Judge] = {
            "always one": lambda question, number: 1,
            "always zero": lambda question, number: 0,
            "coin": lambda question, number: int(rng.random() < 0.5),
            "contradictory": lambda question, number: contradict(question),
        }
        session = searched(features(), judges[name], questions=120)
        verdict = honest(session)
        assert verdict.status is Status.BUDGET_SPENT
        alarms = {check.name for check in session.checks() if check.alarm}
        assert ("position" in alarms) == name.startswith("always")


class TestBrokenAssumptions:
    @pytest.mark.parametrize("name", ["position", "drift", "random judge", "no features"])
    def test_a_claim_still_follows_from_the_tallies(self, name: str) -> None:
        rng, theta, problem = np.random.default_rng(4), taste(6.0), features()
        scores = dict(zip(problem.names, 2 * rng.normal(size=len(problem.names)), strict=True))

        def logit(question: Question, number: int) -> float:
            plain = float(question.vector @ theta)
            if name == "position":
                return plain + 1.5
            if name == "drift":
                return plain if number < 40 else -plain
            if name == "random judge":
                return 0.0 if number % 3 == 0 else plain
            return scores[question.first or ""] - scores[question.second or ""]

        honest(searched(problem, lambda question, number: int(rng.random() < probability(logit(question, number)))))


class TestStrainedNumerics:
    @pytest.mark.parametrize(
        ("name", "columns"),
        [
            ("huge", lambda x: x * 1e8),
            ("tiny", lambda x: x * 1e-8),
            ("units far apart", lambda x: x * np.array([1e-5, 1.0, 1e6])),
            ("collinear", lambda x: np.column_stack([x, x[:, 0] + x[:, 1], x[:, 2]])),
            ("nearly collinear", lambda x: np.column_stack([x, x[:, 0] + 1e-7 * x[:, 1]])),
            ("far from the origin", lambda x: x + 1e6),
        ],
    )
    def test_features_of_any_kind(self, name: str, columns: Callable[[np.ndarray], np.ndarray]) -> None:
        plain = np.random.default_rng(5).normal(size=(6, 3))
        scores, rng = plain @ taste(3.0), np.random.default_rng(6)
        problem = Problem.from_pairs(columns(plain), names=[str(number) for number in range(6)])

        def answer(question: Question, number: int) -> int:
            return int(
                rng.random() < probability(scores[int(question.first or "")] - scores[int(question.second or "")])
            )

        honest(searched(problem, answer))

    def test_judges_who_never_err_separate_the_answers(self) -> None:
        """The likelihood has no maximum; whether or not a proof is found, the guess is right and the rest holds."""
        problem, theta = features(), taste()
        verdict = honest(searched(problem, lambda question, number: int(question.vector @ theta > 0), questions=100))
        assert verdict.best == problem.names[int(np.argmax(problem.items @ theta))]
        assert len(verdict.surviving) < len(problem.names)

    def test_two_items(self) -> None:
        session = searched(
            Problem.from_pairs(["left", "right"]), lambda question, number: int(question.first == "left")
        )
        assert honest(session).best == "left"
        assert session.verdict().status is Status.CERTAIN

    def test_a_thousand_items(self) -> None:
        problem, theta = features(1000, 5), taste(3.0, 5)
        assert len(problem.items) == 1000
        rng = np.random.default_rng(7)

        def answer(question: Question, number: int) -> int:
            return int(rng.random() < probability(float(question.vector @ theta)))

        assert not honest(searched(problem, answer, questions=25)).status.decided


class TestRecordedVotes:
    """A small file in the format of recorded votes: ties, an unknown item, a vote for nobody, pairs that run out."""

    def written(self, folder: Path) -> tuple[Path, Path]:
        rng = np.random.default_rng(9)
        names, scores = [f"m{number}" for number in range(7)], rng.normal(size=7)
        items, votes = folder / "items.csv", folder / "answers.csv"
        with items.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["item", "label", "length", "rate"])
            writer.writerows(
                [name, name.upper(), score + rng.normal() / 2, rng.normal()]
                for name, score in zip(names, scores, strict=True)
            )
        with votes.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["item_a", "item_b", "winner", "judge"])
            for _ in range(12):
                for a, b in pairwise(rng.permutation(7)):
                    won = "a" if rng.random() < probability(scores[a] - scores[b]) else "b"
                    writer.writerow([names[a], names[b], "tie" if rng.random() < 0.3 else won, rng.integers(5)])
            writer.writerow(["m0", "stranger", "a", 1])
            writer.writerow(["m0", "m1", "both", 1])
        return items, votes

    def test_replayed_votes_end_honestly(self, tmp_path: Path) -> None:
        judge = RecordedJudge.of(*self.written(tmp_path), drop_bad_rows=True)
        assert len(judge.unused) == 2
        votes = judge.remaining
        verdict = find_best(judge.problem, judge, budget=150)
        assert verdict.status in (Status.BUDGET_SPENT, Status.CERTAIN)
        assert verdict.questions <= votes - judge.remaining
        assert verdict.best in judge.problem.names


@pytest.mark.parametrize("epsilon", [0.0, 2.0])
@pytest.mark.parametrize("items", [np.eye(4), [[1, 0], [0.4, 0.5], [0.2, 0.9], [0, 1]]], ids=["bare", "features"])
def test_a_judge_who_never_errs_gets_a_verdict_with_a_certificate(items, epsilon):
    problem = Problem.from_pairs(items, names=list("abcd"))
    session = Session(problem, Anytime(delta=0.2, epsilon=epsilon, budget=100), seed=1)
    while questions := session.ask(1):
        session.tell(questions[0].id, int(questions[0].first < questions[0].second))
    assert session.verdict().status.decided
    assert session.verdict().best == "a"
    assert verify_certificate(session.certificate()).best == "a"
