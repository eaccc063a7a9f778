"""Certificates of the claim "winner": exact values by hand, agreement with the policy, and forgeries."""

import copy
import json
import math
from typing import Any

import numpy as np
import pytest

from certificates import certificate_of, easy, signed
from surepick import CertificateRefused, Problem, Session, Winner, verify_certificate
from surepick.identify import Status

# Item b loses three comparisons with a. For b the model predicts the share 0.1 each time, the record 1/2, 1/4, 1/6. A
# lost comparison multiplies by 2(1 − share), and by 1.3, 1.7 and 1.94 for the constant experts:
#   0.6 · 1.8³ + 0.2 · (1 · 1.5 · 5/3) + 0.2/3 · (1.3³ + 1.7³ + 1.94³) = 3.4992 + 0.5 + 0.96075893… = 4.95995893…
THREE_LOSSES = 3.4992 + 0.5 + 0.2 / 3 * (2.197 + 4.913 + 7.301384)


def by_hand(delta: float, epsilon: float = 0.0, questions: int = 3) -> dict[str, Any]:
    stages = [
        {
            "measurements": [0],
            "shown": [[0, 1]],
            "planned": [1],
            "shares": [[0.9, own]],
            "answers": [[[[1, 0], 1]]],
        }
        for own in (1 / 2, 3 / 4, 5 / 6)[:questions]
    ]
    return {
        "format": 3,
        "claim": "winner",
        "policy": "winner",
        "delta": delta,
        "epsilon": epsilon,
        "missing": "ignorable",
        "problem": {"aliases": [["a"], ["b"]], "about": [[0, 1]]},
        "best": 0,
        "stages": stages,
    }


def test_three_questions_by_hand() -> None:
    checked = verify_certificate(signed(by_hand(delta=0.25)))
    assert pytest.approx(4.959958933, abs=1e-9) == THREE_LOSSES
    assert math.exp(checked.nats["b"]) == pytest.approx(THREE_LOSSES, rel=1e-12)
    assert (checked.claim, checked.best, checked.answers, checked.link) == ("winner", "a", 3, None)
    assert "Claim 'winner', which assumes: one item gets" in str(checked)
    # 1/0.2 = 5 is a little more than 4.96.
    with pytest.raises(CertificateRefused, match=r"'b' is not excluded: 1\.601 nats proved, 1\.609 needed"):
        verify_certificate(signed(by_hand(delta=0.2)))


def test_stakes_by_hand() -> None:
    """A stake of 1 multiplies by 1.5 with a loss. In between the experts bet, with the shares as they were before."""
    content = by_hand(delta=0.3)
    for stage in (content["stages"][0], content["stages"][2]):
        stage["stakes"] = [0, 1]
    checked = verify_certificate(signed(content))
    by_experts = 0.6 * 1.8 + 0.2 * 1.5 + 0.2 / 3 * (1.3 + 1.7 + 1.94)
    assert math.exp(checked.nats["b"]) == pytest.approx(1.5 * by_experts * 1.5, rel=1e-12)
    # Where the second stage has stakes, too, the parts are divided by what the experts made of the first two answers.
    content["stages"][1]["stakes"] = [0, 1.2]
    del content["stages"][2]["stakes"]
    own = [0.6 * 1.8, 0.2 * 1.0, *(0.2 / 3 * factor for factor in (1.3, 1.7, 1.94))]
    last = np.dot(own, [1.8, 5 / 3, 1.3, 1.7, 1.94]) / sum(own)
    assert math.exp(verify_certificate(signed(content)).nats["b"]) == pytest.approx(1.5 * 1.6 * last, rel=1e-12)


def test_a_circle_proves_nobody_the_winner() -> None:
    """Where both lose three comparisons that were predicted, both are excluded: whoever is named was excluded too."""
    content = by_hand(delta=0.25)
    for own in (7 / 8, 1 / 2, 1 / 6):
        turned_round = {"shares": [[0.1, own]], "answers": [[[[0, 1], 1]]]}
        content["stages"].append(content["stages"][0] | turned_round)
    assert verify_certificate(signed(content | {"stages": content["stages"][:3]})).best == "a"
    for best in (0, 1):
        with pytest.raises(CertificateRefused, match="is excluded like all others, which refutes the assumption"):
            verify_certificate(signed(content | {"best": best}))


def test_two_questions_within_epsilon_by_hand() -> None:
    """At epsilon = log 3 the fair share against the leader is 3/4, so a loss multiplies by 4(1 − share)."""
    content = by_hand(delta=0.4, epsilon=math.log(3), questions=2)
    with pytest.raises(CertificateRefused, match="not excluded"):  # outright: 2.80 of 2/0.4 = 5
        verify_certificate(signed(content))
    content["stages"][0]["leader"] = 0
    checked = verify_certificate(signed(content))
    # Constant experts predict 3/2·(0.35, 0.15, 0.03): factors 1.9, 3.1 and 3.82. Needed: 2/(0.6 · 0.4) = 8.33.
    value = 0.6 * 3.6**2 + 0.2 * (2 * 3) + 0.2 / 3 * (1.9**2 + 3.1**2 + 3.82**2)
    assert value == pytest.approx(10.83016, abs=1e-9)
    assert math.exp(checked.nats["b"]) == pytest.approx(value, rel=1e-12)
    assert "within 1.09861 of the best" in str(checked)
    for forge in (
        lambda one: one.update(delta=0.3),  # 2/(0.6 · 0.3) = 11.1
        lambda one: one["stages"][1].update(leader=one["stages"][0].pop("leader")),  # then the first answer is not its
        lambda one: one["stages"][1].update(leader=0),  # named twice
        lambda one: one.update(stages=[by_leader(one["stages"][0], 1), by_leader(one["stages"][1], 0)]),
    ):
        forged = copy.deepcopy(content)
        forge(forged)
        with pytest.raises(CertificateRefused):
            verify_certificate(signed(forged))


def by_leader(stage: dict[str, Any], leader: int) -> dict[str, Any]:
    return stage | {"leader": leader}


def test_picks_of_three_and_scores_between() -> None:
    """Fair share 1/3: a loss multiplies by (1 − share)·3/2; half a point at the share 0.1 by 1 + 1.05·(1/3 − 1/2)."""
    content = by_hand(delta=0.5)
    content["problem"] = {"aliases": [["a"], ["b"], ["c"]], "about": [[0, 1, 2]]}
    stage = {"measurements": [0], "shown": [[0, 1, 2]], "planned": [4], "shares": [[[0.8, 0.1, 0.1]] * 2]}
    content["stages"] = [stage | {"answers": [[[[1, 0, 0], 3], [[0.5, 0.5, 0], 1]]]}]
    checked = verify_certificate(signed(content))
    thrice, half = [1.15, 1.35, 1.47], [1 - 0.45 / 6, 1 - 1.05 / 6, 1 - 1.41 / 6]
    value = 0.8 * 1.35**3 * 0.825 + 0.2 / 3 * sum(x**3 * y for x, y in zip(thrice, half, strict=True))
    assert math.exp(checked.nats["b"]) == pytest.approx(value, rel=1e-12)
    assert math.exp(checked.nats["c"]) == pytest.approx(0.8 * 1.35**4 + 0.2 / 3 * sum(x**4 for x in thrice), rel=1e-12)
    content["stages"][0]["answers"] = [[[[1, 0, 0], 3], [[1.5, 0, -0.5], 1]]]
    with pytest.raises(CertificateRefused, match="from 0 to 1"):
        verify_certificate(signed(content))


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.8}, {"missing": "charged"}], ids=str)
def test_the_checker_agrees_with_the_policy(options: dict[str, Any]) -> None:
    world, rng = easy(), np.random.default_rng(0)
    session, judge = Session(world.problem, Winner(delta=0.1, **options), seed=3), world.judge(3)
    waiting = session.ask(5)
    while waiting:  # several judges, answers in any order, some of them missing
        question = waiting.pop(int(rng.integers(len(waiting))))
        if rng.random() < 0.05:
            session.skip(question.id)
        else:
            session.tell(question.id, judge(question))
        waiting += session.ask(1)
    verdict = session.verdict()
    checked = verify_certificate(json.loads(json.dumps(session.certificate())))
    assert (checked.best, checked.answers) == (verdict.best, verdict.questions)
    assert checked.epsilon == (0.8 if verdict.status is Status.WITHIN_EPSILON else 0.0)
    if checked.epsilon == 0:
        for rival in verdict.rivals:
            assert checked.nats[rival.name] == pytest.approx(rival.evidence, abs=1e-9)
    assert Session.replay(session.to_lines()).certificate() == session.certificate()
    # Answers that come after the verdict change nothing of what it stands on.
    [session.skip(question.id) for question in session.outstanding]
    assert verify_certificate(session.certificate()) == checked


def test_an_open_search_has_no_certificate() -> None:
    session = Session(easy().problem, Winner())
    session.ask(1)
    with pytest.raises(Exception, match="no proved verdict"):
        session.certificate()


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    return certificate_of(easy(), Winner(delta=0.1))


def turned(stage: dict[str, Any]) -> None:
    stage["answers"] = [[[scores[::-1], times] for scores, times in answers] for answers in stage["answers"]]


FORGERIES: dict[str, tuple[Any, str]] = {
    "another winner": (lambda one: one.update(best=(one["best"] + 1) % 6), "not excluded"),
    "a smaller delta": (lambda one: one.update(delta=1e-4), "not excluded"),
    "answers turned round": (lambda one: [turned(stage) for stage in one["stages"]], "not excluded"),
    "half of the answers": (lambda one: one.update(stages=one["stages"][: len(one["stages"]) // 2]), "not excluded"),
    "stakes of nothing": (lambda one: [stage.update(stakes=[0, 0]) for stage in one["stages"]], "not excluded"),
    "predictions of nothing, and no stakes": (
        lambda one: [(stage.update(shares=[[0.5, 0.5]]), stage.pop("stakes")) for stage in one["stages"]],
        "not excluded",
    ),
    "a stake of all and more": (lambda one: one["stages"][0].update(stakes=[0, 2]), "A bet of 2 at the fair share"),
    "a stake on an item": (lambda one: one["stages"][0].update(stakes=[-0.1, 0]), "A bet of -0.1 at the fair share"),
    "a stake that is no number": (lambda one: one["stages"][0].update(stakes=[math.nan, 0]), "must be a finite number"),
    "stakes of three items": (lambda one: one["stages"][0].update(stakes=[0, 0, 0]), "but one comparison, asked once"),
    "stakes on two answers": (lambda one: one["stages"][0].update(planned=[2]), "but one comparison, asked once"),
    "more answers than questions": (lambda one: one["stages"][0]["answers"][0][0].__setitem__(1, 9), "more answers"),
    "a share below 0, a bet above 1/(1 − f)": (lambda one: one["stages"][0].update(shares=[[-1, 0.5]]), "from 0 to 1"),
    "a share above 1": (lambda one: one["stages"][0].update(shares=[[0.5, 1.5]]), "from 0 to 1"),
    "a score above 1": (lambda one: one["stages"][0].update(answers=[[[[2, -1], 1]]]), "from 0 to 1"),
    "another pair": (lambda one: one["stages"][0].update(shown=[[4, 3]]), "of a question of the problem"),
    "one item against itself": (lambda one: one["stages"][0].update(shown=[[4, 4]]), "of a question of the problem"),
    "a question listed twice": (
        lambda one: one["stages"][0].update({key: value * 2 for key, value in one["stages"][0].items()}),
        "lists a question twice",
    ),
    "an item more": (lambda one: one["problem"]["aliases"].append(["another"]), "'another' is not excluded"),
    "two items of one name": (lambda one: one["problem"]["aliases"][0].append("1"), "Two items have the name"),
    "a leader without an epsilon": (lambda one: one["stages"][0].update(leader=0), "without an epsilon"),
    "another claim": (lambda one: one.update(claim="features"), "the claim 'features' and the policy 'winner'"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_certificates_are_refused(written: dict[str, Any], name: str) -> None:
    forge, says = FORGERIES[name]
    assert verify_certificate(written).best == easy().best
    forged = copy.deepcopy(written)
    forge(forged)
    with pytest.raises(CertificateRefused, match=r"digest|can be checked"):
        verify_certificate(forged)
    with pytest.raises(CertificateRefused, match=says):
        verify_certificate(signed(forged))


def test_a_pair_of_equal_items_is_certified_within_epsilon_only() -> None:
    problem, rng = Problem.from_pairs(["a", "b"]), np.random.default_rng(1)
    session = Session(problem, Winner(delta=0.2, epsilon=1.0), seed=1)
    while questions := session.ask(1):
        session.tell(questions[0].id, int(rng.integers(2)))
    certificate = session.certificate()
    assert verify_certificate(certificate).epsilon == 1.0
    del certificate["chain"]
    with pytest.raises(CertificateRefused, match="without an epsilon"):
        verify_certificate(signed(certificate | {"epsilon": 0.0}))
