"""Judges with tastes of their own, judges without any, judges who remember; and what an alarm refutes."""

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from surepick import Answers, Anytime, InvalidInput, Problem, Session, checks
from surepick.checks import MemoryEvidence
from surepick.session.journal import answers_of

LEVEL = 0.05 / len(checks.CHECKS)
"""The share of one check."""

Taste = Callable[[int, int, int], float]
"""Probability that the first of two items wins, by the number of the judge."""


def answered(
    rng: np.random.Generator, features: np.ndarray, taste: Taste, *, judges: int, answers: int, memory: float = 0.0
) -> Answers:
    """Random pairs shown to random judges, of whom number 0 repeats old answers with probability `memory`."""
    first = rng.integers(len(features), size=answers)
    second = (first + 1 + rng.integers(len(features) - 1, size=answers)) % len(features)
    asked = rng.integers(judges, size=answers)
    said, preferred = np.empty(answers, dtype=np.int64), dict[tuple[int, int, int], int]()
    for row, (a, b, judge) in enumerate(zip(first, second, asked, strict=True)):
        again = (int(judge), int(min(a, b)), int(max(a, b)))
        winner = a if rng.random() < taste(judge, a, b) else b
        if judge == 0 and again in preferred and rng.random() < memory:
            winner = preferred[again]
        preferred[again] = winner
        said[row] = winner == a
    names = tuple(f"item {number}" for number in range(len(features)))
    who = tuple(f"judge {number}" for number in asked)
    return Answers(features[first] - features[second], said, np.column_stack([first, second]), names, who)


def with_tastes(seed: int, own: Callable[[np.ndarray], np.ndarray]) -> Answers:
    """Eight judges with about 60 answers each and one θ, except judge 0, whose taste is `own(θ)`."""
    rng = np.random.default_rng([seed, 5])
    theta, features = rng.normal(size=3), rng.normal(size=(8, 3))
    theta *= 3 / np.linalg.norm(theta)

    def taste(judge: int, a: int, b: int) -> float:
        return 1 / (1 + math.exp(-float((features[a] - features[b]) @ (own(theta) if judge == 0 else theta))))

    return answered(rng, features, taste, judges=8, answers=480)


def opposite(theta: np.ndarray) -> np.ndarray:
    return np.where(np.abs(theta) == np.abs(theta).max(), -theta, theta)


def test_a_coin_tosser_is_accused_and_a_minority_taste_is_not() -> None:
    """A judge who likes the opposite of what matters most was accused in every run by coin against common taste."""
    tossed = [checks.random_judges(with_tastes(seed, np.zeros_like), level=LEVEL).about for seed in range(6)]
    assert tossed.count(("judge 0",)) >= 4
    minority = [checks.random_judges(with_tastes(seed, opposite), level=LEVEL).about for seed in range(6)]
    assert minority == [()] * 6


def test_judges_with_another_taste_are_named_and_judges_who_agree_are_not() -> None:
    """Eight runs: the chance that a check at this level alarms in any of the last four is below 3%."""
    differing = [checks.judges_differ(with_tastes(seed, opposite), level=LEVEL) for seed in range(4)]
    assert sum(check.about == ("judge 0",) for check in differing) >= 3
    assert "judge 0" in differing[0].sentence
    assert not any(checks.judges_differ(with_tastes(seed, np.copy), level=LEVEL).alarm for seed in range(4))


def test_features_that_explain_nothing_are_not_blamed_on_the_judges() -> None:
    def misfit(seed: int) -> Answers:
        rng = np.random.default_rng([seed, 6])
        scores, features = 1.5 * rng.normal(size=10), rng.normal(size=(10, 3))
        return answered(
            rng, features, lambda judge, a, b: 1 / (1 + math.exp(scores[b] - scores[a])), judges=8, answers=480
        )

    assert sum(checks.misfit(misfit(seed), level=LEVEL).alarm for seed in range(4)) >= 3
    assert not any(checks.judges_differ(misfit(seed), level=LEVEL).alarm for seed in range(4))


def mean_wealth(stated: float, true: float, steps: int = 8) -> float:
    """The mean evidence over all sequences, stopped early as soon as memory is found."""
    total = 0.0
    for sequence in itertools.product((True, False), repeat=steps):
        evidence, chance = MemoryEvidence(), 1.0
        for agreed in sequence:
            chance *= true if agreed else 1 - true
            if not evidence.found(0.2):
                evidence = evidence.after(stated, agreed)
        total += chance * math.exp(evidence.nats)
    return total


def test_memory_evidence_has_mean_one_at_the_stated_chance_and_less_below_it() -> None:
    assert mean_wealth(0.7, 0.7) == pytest.approx(1.0)
    assert mean_wealth(0.7, 0.6) < 1.0
    assert mean_wealth(0.7, 0.8) > 1.0  # a chance that is stated too low is no evidence


def test_memory_once_found_stays_found_and_a_chance_is_a_probability() -> None:
    evidence = MemoryEvidence()
    for _ in range(20):
        evidence = evidence.after(0.6, agreed=True)
    assert evidence.found(0.01)
    for _ in range(20):
        evidence = evidence.after(0.6, agreed=False)
    assert evidence.nats < 0
    assert evidence.found(0.01)
    assert not MemoryEvidence().found(0.99)
    with pytest.raises(InvalidInput, match="chance_of_agreeing must be at most 1"):
        evidence.after(1.1, agreed=True)


def test_an_answer_that_was_certain_to_be_the_same_is_no_evidence_of_memory() -> None:
    evidence = MemoryEvidence().after(0.6, agreed=True)
    assert evidence.after(1.0, agreed=True).nats == pytest.approx(evidence.nats)
    assert evidence.after(1.0, agreed=False).nats < evidence.nats


def one_person(seed: int, memory: float) -> Answers:
    rng = np.random.default_rng([seed, 7])
    theta, features = rng.normal(size=3), rng.normal(size=(8, 3))
    theta *= 1.5 / np.linalg.norm(theta)
    return answered(
        rng,
        features,
        lambda judge, a, b: 1 / (1 + math.exp(-float((features[a] - features[b]) @ theta))),
        judges=1,
        answers=150,
        memory=memory,
    )


def test_a_judge_who_sticks_to_first_answers_is_noticed_and_new_answers_are_not() -> None:
    """With its own name or with none; the chance that any of four honest runs alarms is about 2%."""
    sticking = [one_person(seed, 0.95) for seed in range(4)]
    found = [checks.repeats(table, level=LEVEL) for table in sticking]
    assert sum(check.alarm for check in found) >= 3
    alarm = next(check for check in found if check.alarm)
    assert alarm.sentence.startswith("Judge 0 gave the same answer in ")
    assert alarm.sentence.endswith("were expected: repeats are remembered, not new evidence.")
    nameless = [
        Answers(table.vectors, table.said, table.items, table.names, (None,) * len(table.said)) for table in sticking
    ]
    unnamed = next(check for check in (checks.repeats(table, level=LEVEL) for table in nameless) if check.alarm)
    assert unnamed.sentence.startswith("The judge without a name gave the same answer")
    assert not any(checks.repeats(one_person(seed, 0.0), level=LEVEL).alarm for seed in range(4))


def test_repeats_of_different_judges_are_no_repeats() -> None:
    items = {"a": [1.0], "b": [0.0]}
    twice = Answers.of_pairs(items, ["a", "b"] * 4, ["b", "a"] * 4, [1, 0] * 4, judges=[f"judge {n}" for n in range(8)])
    assert checks.repeats(twice).sentence == "Not checked: no judge was asked the same question twice."
    alone = Answers.of_pairs(items, ["a", "b"] * 4, ["b", "a"] * 4, [1, 0] * 4)
    assert "7 of 7 times" in checks.repeats(alone).sentence


def test_every_check_says_which_claims_its_alarm_refutes_as_documented() -> None:
    shuffled, as_given = (
        Answers.of_pairs({"a": [1.0], "b": [0.0]}, ["a"] * 3, ["b"] * 3, [1, 0, 1], shuffled=drawn)
        for drawn in (True, False)
    )
    lines = (Path(__file__).parents[2] / "docs" / "checks.md").read_text(encoding="utf-8").splitlines()
    documented = {cells[1].strip(" `"): cells[2] for line in lines if len(cells := line.split("|")) == 5}
    for name, check in checks.CHECKS.items():
        refutes = check(shuffled).refutes
        assert json.loads(json.dumps(check(shuffled).to_json()))["refutes"] == list(refutes)
        said = documented[name].partition(";")[0]
        assert {claim for claim in ("features", "population", "winner") if claim in said} == set(refutes), name
    assert checks.position(as_given).refutes == ("features", "population", "winner")


def test_an_alarm_about_the_order_says_which_claims_hold_all_the_same() -> None:
    shuffled, as_given = (
        checks.position(Answers.of_pairs({"a": [1.0], "b": [0.0]}, *pairs, [1] * 60, shuffled=drawn)).sentence
        for pairs in [(["a", "b"] * 30, ["b", "a"] * 30)]
        for drawn in (True, False)
    )
    assert "the first item won 100% of 60" in shuffled
    assert "the claim winner holds all the same" in shuffled
    assert "the first item won 100% of 60" in as_given
    assert "draw the order at random" in as_given
    assert "holds all the same" not in as_given


def asked_session() -> Session:
    items = {"a": [1.0, 0.2], "b": [0.0, 1.0], "c": [-0.7, -0.4]}
    return Session(Problem.from_pairs(items), Anytime(), seed=3)


def rows(session: Session) -> list[tuple[int, int, int, str | None]]:
    table = answers_of(session.problem, session.log)
    return [
        (int(a), int(b), int(said), judge)
        for (a, b), said, judge in zip(table.items, table.said, table.judges, strict=True)
    ]


def test_late_answers_are_no_rows_and_leave_the_others_alone() -> None:
    session = asked_session()
    one, two, three = session.ask(3)
    session.skip(one.id)
    session.tell(two.id, 1, judge="ann")
    session.tell(three.id, 0, judge="bob")
    session.verdict()
    earlier = rows(session)
    session.tell(one.id, 1, judge="zoe")
    assert one.id in session.late
    assert rows(session) == earlier


def test_rows_come_only_after_the_earlier_ones() -> None:
    """Whatever the order of arrival, a table is a beginning of every later one."""
    session = asked_session()
    questions = session.ask(6)
    seen = [rows(session)]
    for place in (2, 0, 3, 1, 5, 4):
        session.tell(questions[place].id, place % 2, judge=f"judge {place}")
        seen.append(rows(session))
        assert seen[-1][: len(seen[-2])] == seen[-2]
    assert [len(table) for table in seen] == [0, 0, 1, 1, 4, 4, 6]
