"""Certificates changed at random and signed again: no crash, and nothing is accepted that says more than was proved.

SUREPICK_MUTATIONS=10000 changes as many (`make fuzz`). A forger who makes up answers or predictions is not found
out by any checker of the arithmetic (docs/anytime.md); all else that is accepted must be the claim of the file.
"""

import copy
import functools
import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from certificates import certificate_of, easy, signed
from surepick import Anytime, CertificateRefused, Exclusion, Problem, Session, Winner, verify_certificate
from surepick.certificate import Checked
from surepick.certificate.evidence import loss, onto
from surepick.certificate.features import _Checker
from surepick.cli import app
from surepick.evidence.betting import WinnerEvidence
from surepick.judges import World
from surepick_experiments.worlds import gaussian, soare

MUTATIONS = int(os.environ.get("SUREPICK_MUTATIONS", "550"))
Path_ = tuple[Any, ...]


def deep(levels: int = 20_000) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


VALUES: list[Any] = [
    *(None, True, False, "", "1", "directional", "plug-in", "charged", "winner", [], {}, [[]], [0.5, [1]]),
    *(-1, 0, 1, 2, 3, 900, 10**6, 2**53, 2**63, 10**30, 10**308, 10**400, -(10**400), 10**5000),
    *(0.5, -0.0, 1e-320, 1e-9, 1e-3, 1e9, 1e154, 1e308, -1e308, math.nan, math.inf, -math.inf),
]


def chained(policy: Anytime | Exclusion | Winner) -> dict[str, Any]:
    """Of a session, with missing answers."""
    world, rng = easy(), np.random.default_rng(0)
    session, judge = Session(world.problem, policy, seed=0), world.judge(0)
    while questions := session.ask(4):
        for question in questions:
            if rng.random() < 0.05:
                session.skip(question.id)
            else:
                session.tell(question.id, judge(question))
    written: dict[str, Any] = json.loads(json.dumps(session.certificate()))
    return written


def unchained(certificate: dict[str, Any]) -> dict[str, Any]:
    return signed({name: value for name, value in certificate.items() if name != "chain"})


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "plug-in": lambda: certificate_of(easy(), Anytime(delta=0.1)),
    "within epsilon": lambda: certificate_of(easy(), Anytime(delta=0.1, epsilon=0.3)),
    "directional": lambda: certificate_of(soare(4, angle=0.5), Anytime(delta=0.2), seed=1),
    "far": lambda: certificate_of(gaussian(2, 40, gap=0.5, seed=1), Anytime(delta=0.2)),
    "charged": lambda: unchained(chained(Anytime(delta=0.1, missing="charged"))),
    "chained": lambda: chained(Anytime(delta=0.1, missing="charged")),
    "vectors": lambda: certificate_of(
        World("vectors", Problem(np.eye(3), np.array([[2.0, 0, 0], [0, 1, 0], [0, 0, 1]])), np.array([1.5, 0.1, 0.0])),
        Anytime(delta=0.2),
    ),
    "exclusion": lambda: certificate_of(easy(), Exclusion(delta=0.1)),
    "exclusion within epsilon": lambda: certificate_of(easy(), Exclusion(delta=0.1, epsilon=0.3)),
    "exclusion charged": lambda: unchained(chained(Exclusion(delta=0.1, missing="charged"))),
    "exclusion chained": lambda: chained(Exclusion(delta=0.1)),
    "winner": lambda: certificate_of(easy(), Winner(delta=0.1)),
    "winner within epsilon": lambda: certificate_of(easy(), Winner(delta=0.1, epsilon=0.8)),
    "winner charged": lambda: unchained(chained(Winner(delta=0.1, missing="charged"))),
    "winner chained": lambda: chained(Winner(delta=0.1, epsilon=0.8)),
}


@functools.cache
def original(kind: str) -> tuple[dict[str, Any], Checked]:
    written = MAKERS[kind]()
    return written, verify_certificate(written)


def paths(node: Any, here: Path_ = ()) -> list[Path_]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [here, *(path for key, child in children for path in paths(child, (*here, key)))]


def at(node: Any, path: Path_) -> Any:
    return functools.reduce(lambda inner, key: inner[key], path, node)


def mutated(written: dict[str, Any], rng: random.Random) -> tuple[dict[str, Any], Path_]:
    """A copy with one change, and where; every part of a certificate is as likely as any other, however long."""
    part = rng.choice([key for key in written if key != "digest"])
    path = (part, *rng.choice(paths(written[part])))
    changed = copy.deepcopy(written)
    holder, key, old = at(changed, path[:-1]), path[-1], at(changed, path)
    kind = rng.random()
    if kind < 0.1:
        del holder[key]
    elif kind < 0.2 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(old))
    elif kind < 0.35 and isinstance(old, list) and len(old) > 1:
        first, second = rng.sample(range(len(old)), 2)
        old[first], old[second] = old[second], old[first]
    elif kind < 0.45 and isinstance(old, list):
        del old[rng.randrange(len(old) + 1) :]
    elif kind < 0.7 and isinstance(old, int | float) and not isinstance(old, bool):
        holder[key] = rng.choice([old * (1 + 1e-7), old * 1.01, old * 0.99, old * 2, old / 2, -old, old + 1, old - 1])
    elif kind > 0.98:
        holder[key] = deep()
    else:
        holder[key] = rng.choice(VALUES)
    return changed, path


def outcome(certificate: Any) -> Checked | None:
    """What is proved; None if it is refused. Any other exception fails the test."""
    try:
        return verify_certificate(certificate)
    except CertificateRefused:
        return None


def threshold(delta: float, policy: str) -> float:
    return math.log(1 / ((1.0 if policy == "exclusion" else 0.7) * delta))  # the least that any rule needs


@functools.cache
def most_that_can_be_proved(kind: str) -> dict[str, float]:
    """By rival: a bound is valid at every point and mix of it, so other ones than the writer's may prove a little more.

    But no more than the evidence against any parameter for which the rival is as good as the best.
    """
    written, before = original(kind)
    if written["policy"] == "exclusion":  # the writer's bounds are next to the least wealth
        return {name: nats + 0.1 for name, nats in before.nats.items()}
    checker = _Checker(written)
    checker.run()
    most = {}
    for claim in written["rivals"]:
        name = checker.names[claim["item"]]
        most[name] = before.nats[name] + (1e-3 if claim["rule"] == "far" else 0.1)
        if claim["rule"] == "plug-in":
            then = checker.evidence[claim["stages"]]
            y = (checker.items[written["best"]] - checker.items[claim["item"]]) @ checker.basis
            theta = onto(np.asarray(claim["theta"]) @ checker.basis, y, checker.epsilon)
            parts = [
                offset + loss(then.x, *counts, theta) for counts, offset in zip(then.since, then.offsets, strict=True)
            ]
            most[name] = float(np.logaddexp.reduce(parts)) + 1e-9
    return most


def answers_of(stage: dict[str, Any]) -> list[list[Any]]:
    """Scores and how often they occurred, in all questions of a stage of the claim "winner"."""
    return [answer for answers in stage["answers"] for answer in answers]


def winner_is_proved(certificate: dict[str, Any]) -> bool:
    """By the policy's own evidence, which the checker shares no code with."""
    count, delta, best = len(certificate["problem"]["aliases"]), certificate["delta"], certificate["best"]
    eta = min(math.tanh(certificate["epsilon"] / 2) / 2, 0.49)
    outright, named = WinnerEvidence.of(count), list[WinnerEvidence]()
    for stage in certificate["stages"]:
        named += [WinnerEvidence.of(count, stage["leader"], eta)] if "leader" in stage else []
        columns = zip(*(stage[name] for name in ("shown", "planned", "shares", "answers")), strict=True)
        for shown, planned, (model, own), given in columns:
            missing = planned - sum(times for _, times in given) if certificate["missing"] == "charged" else 0
            answers = [*given, ((1.0, 1.0), missing)]
            step = shown, ((model, 1 - model), (own, 1 - own)), answers
            outright = outright.update(*step, bets=stage.get("stakes"))
            named = [process.update(*step) for process in named]
    half = 0.5 if certificate["epsilon"] > 0 else 1.0
    if best not in outright.surviving(delta * half * (1 - 1e-8)):
        return False
    left = set(outright.surviving(delta * half * (1 + 1e-8)).tolist()) - {best}
    shares = ((one, 0.6 * 0.4**j) for j, one in enumerate(named) if one.against == best)
    return not left or any(not left & set(one.surviving(delta / 2 * v * (1 + 1e-8)).tolist()) for one, v in shares)


def fixed_by_plans(certificate: dict[str, Any]) -> list[dict[str, Any]]:
    """What a link fixes of each stage, besides the answers before it."""
    names = ("measurements", "shown", "planned", "restart", "predictions", "shares", "stakes", "leader")
    return [{name: stage[name] for name in names if name in stage} for stage in certificate["stages"]]


@pytest.mark.parametrize("kind", MAKERS)
def test_no_mutation_crashes_or_says_more_than_was_proved(kind: str) -> None:
    written, before = original(kind)
    rng = random.Random(f"mutations of {kind}")
    accepted = 0
    for _ in range(-(-MUTATIONS // len(MAKERS))):
        changed, path = mutated(written, rng)
        if changed == written and repr(changed) == repr(written):
            continue
        assert outcome(changed) is None, f"{path}: accepted with another digest"
        try:
            forged = signed(changed)
        except (RecursionError, ValueError):  # no digest can be computed, so there is nothing to accept
            continue
        checked = outcome(forged)
        if checked is None:
            continue
        accepted += 1
        assert_as_stated(checked, changed)
        if checked.link is not None:
            assert fixed_by_plans(changed) == fixed_by_plans(written), path
            assert checked.link == before.link
        if path[0] == "best":
            assert checked.best == before.best
        assert checked.claim == before.claim
        if checked.claim == "winner":
            assert winner_is_proved(changed), path
        elif path[0] in ("delta", "epsilon", "best", "far", "rivals") and checked.epsilon <= before.epsilon:
            # The same answers to the same questions prove no more than they did, except at another time: a proof may
            # use any number of stages, since the bounds hold at all of them together.
            assert checked.delta >= before.delta or (
                min(before.nats.values()) >= threshold(checked.delta, written["policy"]) - 1e-3
            )
            if checked.delta <= before.delta and path[-1] != "stages":
                most = most_that_can_be_proved(kind)
                assert all(nats <= most[name] for name, nats in checked.nats.items()), path
    # A change in an unused digit is no reason to refuse, so the checks above were run. Links leave few such digits.
    assert accepted > 0 or "chain" in written


def assert_as_stated(checked: Checked, changed: dict[str, Any]) -> None:
    """What is said is what stands in the file."""
    names = [aliases[0] for aliases in changed["problem"]["aliases"]]
    assert (checked.best, checked.delta) == (names[changed["best"]], changed["delta"])
    assert set(checked.nats) | {checked.best} == set(names)
    assert len(set(names)) == len(names)
    if checked.claim == "winner":
        assert checked.epsilon in (0.0, float(changed["epsilon"]))
        assert checked.answers == sum(times for stage in changed["stages"] for _, times in answers_of(stage))
        assert all(math.log(1 / checked.delta) - 1e-8 <= nats < math.inf for nats in checked.nats.values())
        for stage in changed["stages"]:
            assert all(type(times) is int and 0 <= times <= sum(stage["planned"]) for _, times in answers_of(stage))
            assert all(0 <= score <= 1 for scores, _ in answers_of(stage) for score in scores)
            assert all(0 <= share <= 1 for shares in stage["shares"] for share in shares)
        return
    assert checked.epsilon == float(changed["epsilon"])
    assert checked.answers == sum(sum(stage["pulls"]) for stage in changed["stages"])
    assert all(threshold(checked.delta, changed["policy"]) - 1e-9 <= nats < math.inf for nats in checked.nats.values())
    for rival in changed["rivals"]:
        assert rival["nats"] <= max(checked.nats[names[rival["item"]]], math.log(1 / (0.3 * checked.delta))) + 1e-3
    for stage in changed["stages"]:
        counts = (stage["measurements"], stage["planned"], stage["pulls"], stage["wins"])
        assert all(type(count) is int for column in counts for count in column)


def put(path: Path_, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(certificate: dict[str, Any]) -> None:
        at(certificate, path[:-1])[path[-1]] = value

    return change


def like_the_best(certificate: dict[str, Any]) -> None:
    items, best = certificate["problem"]["items"], certificate["best"]
    items[certificate["rivals"][0]["item"]] = items[best]


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "an integer of 400 digits": (put(("delta",), 10**400), "damaged|finite"),
    "infinity": (put(("stages", 0, "predictions", 0, 0), math.inf), "finite numbers"),
    "an infinite item": (put(("problem", "items", 0, 0), math.inf), "finite numbers"),
    "a measurement beyond all integers": (put(("stages", 0, "measurements", 0), 10**30), "whole number"),
    "half a measurement": (put(("stages", 0, "measurements", 0), 0.5), "whole number"),
    "planned that is no number": (put(("stages", 0, "planned", 0), math.nan), "whole number"),
    "a rival like the best": (like_the_best, "has the features of"),
    "two items of one name": (put(("problem", "aliases", 0), ["item 1", "item 1"]), "Two items have the name"),
    "more evidence than there is": (put(("rivals", 0, "nats"), 1e6), "nats are claimed"),
    "text for a number": (put(("epsilon",), "0"), "finite number"),
    "truth for a number": (put(("epsilon",), True), "finite number"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_values_that_cannot_be_computed_with_are_refused(name: str) -> None:
    change, says = CHANGES[name]
    changed = copy.deepcopy(original("plug-in")[0])
    change(changed)
    with pytest.raises(CertificateRefused, match=says):
        verify_certificate(signed(changed))


EXCLUSION_CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "more evidence than there is": (put(("rivals", 0, "nats"), 1e6), "nats are claimed"),
    "a negative multiplier": (put(("rivals", 0, "multipliers", 0), -1.0), "is negative"),
    "a stake of all": (put(("stages", 0, "predictions", "stakes", 0, 0, 0), 1.0), "stakes more than there is"),
    "a certain prediction": (put(("stages", 0, "predictions", "chances", 0), 1.0), "stakes more than there is"),
    "no answers": (put(("rivals", 0, "stages"), 0), "no answers"),
    "fewer answers": (put(("rivals", 0, "stages"), 3), "are needed"),
    "players of more than all": (put(("rivals", 0, "shares"), [1.0] * 7), "not a distribution"),
    "a rival left out": (lambda certificate: certificate["rivals"].pop(), "may be the best"),
    "a smaller delta": (put(("delta",), 1e-6), "are needed"),
}


@pytest.mark.parametrize("name", EXCLUSION_CHANGES)
def test_forged_exclusions_are_refused(name: str) -> None:
    change, says = EXCLUSION_CHANGES[name]
    changed = copy.deepcopy(original("exclusion")[0])
    change(changed)
    with pytest.raises(CertificateRefused, match=says):
        verify_certificate(signed(changed))


def test_an_exclusion_by_losses_is_derived_again_and_no_more() -> None:
    losses = copy.deepcopy(original("exclusion")[0])
    for rival in losses["rivals"]:
        rival["rule"] = "losses"  # which proves less than the infimum did
    with pytest.raises(CertificateRefused, match=r"are needed|are claimed"):
        verify_certificate(signed(losses))


@pytest.mark.parametrize(
    "content", [None, [], "x", 3, {}, {1: 2, "a": 3}, {"format": 3, "policy": "anytime"}, {"claim": []}]
)
def test_what_is_no_certificate_is_refused(content: Any) -> None:
    with pytest.raises(CertificateRefused, match="damaged"):
        verify_certificate(content)


def test_a_certificate_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    changed = copy.copy(original("plug-in")[0]) | {"far": deep(200_000)}
    with pytest.raises(CertificateRefused, match="RecursionError"):
        verify_certificate(changed)
    file = tmp_path / "deep.json"
    file.write_text("[" * 200_000 + "]" * 200_000)
    result = CliRunner().invoke(app, ["verify-certificate", str(file)])
    assert "cannot be read as JSON" in str(result.exception)
