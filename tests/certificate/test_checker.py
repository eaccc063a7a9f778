"""Certificates: the checker agrees with the policy, and refuses what was changed."""

import json
from typing import Any

import numpy as np
import pytest

from certificates import certificate_of, easy, signed
from surepick import Anytime, CertificateRefused, Session, verify_certificate
from surepick.certificate import ARITHMETIC_ONLY
from surepick_experiments.worlds import soare


@pytest.fixture(scope="module")
def certificate() -> dict[str, Any]:
    return certificate_of(easy(), Anytime(delta=0.1))


def test_the_checker_proves_the_same(certificate: dict[str, Any]) -> None:
    checked = verify_certificate(certificate)
    world = easy()
    assert checked.best == world.best
    assert set(checked.nats) == set(world.problem.names) - {world.best}
    for rival in certificate["rivals"]:
        if rival["rule"] == "plug-in":
            assert checked.nats[world.problem.names[rival["item"]]] == pytest.approx(rival["nats"], abs=1e-6)


def test_directional_and_far_rules_are_checked_too() -> None:
    world = soare(4, angle=0.5)
    written = certificate_of(world, Anytime(delta=0.2), seed=1)
    rules = {rival["rule"] for rival in written["rivals"]}
    assert "directional" in rules
    assert verify_certificate(written).best == world.best


@pytest.mark.parametrize("place", ["wins", "predictions", "delta", "best", "rivals", "restart"])
def test_a_damaged_certificate_is_refused(certificate: dict[str, Any], place: str) -> None:
    changed = json.loads(json.dumps(certificate))
    if place in ("wins", "predictions", "restart"):
        del changed["stages"][3][place]
    else:
        del changed[place]
    with pytest.raises(CertificateRefused, match=r"damaged|digest"):
        verify_certificate(changed)
    with pytest.raises(CertificateRefused, match="damaged"):
        verify_certificate(signed(changed))


def test_a_forged_certificate_is_refused(certificate: dict[str, Any]) -> None:
    def forged(change: Any) -> dict[str, Any]:
        changed = json.loads(json.dumps(certificate))
        change(changed)
        with pytest.raises(CertificateRefused, match="digest"):
            verify_certificate(changed)
        return signed(changed)

    other = next(each["item"] for each in certificate["rivals"])
    half = len(certificate["stages"]) // 2
    forgeries = {
        "another winner": lambda one: one.update(best=other),
        "a smaller delta": lambda one: one.update(delta=1e-4),
        "half of the answers": lambda one: one.update(stages=one["stages"][:half]),
        "a rival left out": lambda one: one["rivals"].pop(),
        "more ones than answers": lambda one: one["stages"][2]["wins"].__setitem__(0, 99),
        "answers turned round": lambda one: [
            stage.update(wins=[n - k for n, k in zip(stage["pulls"], stage["wins"], strict=True)])
            for stage in one["stages"]
        ],
        "shares above one": lambda one: one["rivals"][0].update(
            rule="plug-in", theta=one["far"]["theta"], shares=[2.0] * len(one["far"]["shares"])
        ),
    }
    for change in forgeries.values():
        with pytest.raises(CertificateRefused):
            verify_certificate(forged(change))


@pytest.mark.parametrize("seed", range(4))
def test_a_search_by_many_judges_at_once_can_be_checked(seed: int) -> None:
    world, rng = easy(), np.random.default_rng(seed)
    session, judge = Session(world.problem, Anytime(delta=0.1), seed=seed), world.judge(seed)
    waiting = session.ask(20)
    while waiting:
        question = waiting.pop(int(rng.integers(len(waiting))))
        session.tell(question.id, judge(question))
        waiting += session.ask(1)
    written = json.loads(json.dumps(session.certificate()))
    assert verify_certificate(written).best == session.verdict().best
    again = Session.replay(session.log)
    assert again.certificate() == session.certificate()


def test_each_rival_is_proved_at_its_own_moment_and_at_no_other() -> None:
    written = certificate_of(soare(4, angle=0.5), Anytime(delta=0.2), seed=1)
    moments = [each["stages"] for each in written["rivals"]]
    assert len(set(moments)) > 1
    for moment in (0, 1, len(written["stages"]) + 1):
        changed = json.loads(json.dumps(written))
        changed["rivals"][int(np.argmax(moments))]["stages"] = moment
        with pytest.raises(CertificateRefused):
            verify_certificate(signed(changed))


def test_no_answer_is_bet_on_twice() -> None:
    """Each of two bets is fair, but their product on the same answers is not: it would prove more than there is."""
    changed = json.loads(json.dumps(certificate_of(soare(4, angle=0.5), Anytime(delta=0.2), seed=1)))
    for bets in (stage["bets"] for stage in changed["stages"] if stage["bets"] is not None):
        bets["rivals"] += bets["rivals"]
        bets["shifts"] += bets["shifts"]
    with pytest.raises(CertificateRefused, match=r"Stage \d+ bets twice against one item\."):
        verify_certificate(signed(changed))


def test_with_epsilon_a_rival_is_passed_for_the_item_named_alone() -> None:
    """That z is no winner by more than epsilon over u says nothing of its margin over the item that is named."""
    exact = certificate_of(soare(4, angle=0.5), Anytime(delta=0.2), seed=3)
    others = [rival for rival in exact["rivals"] if rival["leader"] != exact["best"]]
    assert others  # the leader changed, and what was passed for the earlier one stayed passed
    within = certificate_of(soare(4, angle=0.5), Anytime(delta=0.2, epsilon=0.05), seed=1)
    assert all(rival["leader"] == within["best"] for rival in within["rivals"])
    within["rivals"][0]["leader"] = within["rivals"][1]["item"]
    with pytest.raises(CertificateRefused, match="was not compared with the item that is named"):
        verify_certificate(signed(within))
    exact["rivals"][0]["leader"] = exact["rivals"][0]["item"]
    with pytest.raises(CertificateRefused, match="was not compared with the item that is named"):
        verify_certificate(signed(exact))


def test_predictions_made_afterwards_verify_as_the_pages_warn() -> None:
    """16 ones in 30 coin flips prove nothing; with predictions that know the answers the arithmetic is still right."""
    answers = [1] * 16 + [0] * 14
    stages = [
        {
            "measurements": [0],
            "planned": [1],
            "pulls": [1],
            "wins": [answer],
            "predictions": [[30.0 if answer else -30.0]] * 4,
            "restart": number == 0,
            "bets": None,
        }
        for number, answer in enumerate(answers)
    ]
    content = {
        "format": 3,
        "policy": "anytime",
        "delta": 1e-6,
        "epsilon": 0.0,
        "missing": "ignorable",
        "problem": {"items": [[1.0], [0.0]], "aliases": [["a"], ["b"]], "about": [[0, 1]]},
        "best": 0,
        "far": {"theta": [0.0], "shares": [1.0]},
        "stages": stages,
        "rivals": [
            {"item": 1, "leader": 0, "nats": 15.1, "stages": 30, "rule": "plug-in", "theta": [0.0], "shares": [1.0]}
        ],
    }
    assert str(verify_certificate(signed(content))).startswith("a is the best with probability 0.999999")
    assert "does not prove that the predictions were made before the answers" in ARITHMETIC_ONLY
