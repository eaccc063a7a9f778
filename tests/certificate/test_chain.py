"""Links of stages: what they fix, what breaks them, and that logs without them are still read."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from certificates import easy, signed
from surepick import Anytime, CertificateRefused, Problem, Session, Winner, verify_certificate
from surepick.certificate import ORDER_ONLY
from surepick.certificate.chain import Chain, hashed
from surepick.cli import app

POLICIES = {"winner": Winner(delta=0.1, epsilon=0.3), "features": Anytime(delta=0.1)}


def searched(policy: Any, path: Path | None = None) -> Session:
    """A search with undone, skipped and late answers, and several questions out at a time."""
    world = easy()
    session, judge = Session(world.problem, policy, seed=2, path=path), world.judge(2)
    while questions := session.ask(4):
        for question in questions:
            session.tell(question.id, judge(question))
            if question.id % 5 == 0:
                session.undo(question.id)
                session.skip(question.id)
        if (last := session.questions[len(session.questions)]).id % 5 == 0 and session.final is None:
            session.verdict()
            session.tell(last.id, 1)  # late, if its stage has been evaluated
    return session


@pytest.fixture(scope="module", params=POLICIES)
def session(request: pytest.FixtureRequest) -> Session:
    return searched(POLICIES[request.param])


def test_the_first_links_by_hand() -> None:
    problem = Problem.from_pairs(["a", "b", "c"])
    session = Session(problem, Winner(delta=0.3), seed=1)
    first = session.ask(1)[0]
    session.tell(first.id, 1)
    session.ask(1)
    head, one, _, _, two, _ = session.log
    wins = int(not first.swapped)
    start = hashed([head["policy"], head["problem"]])
    after = hashed([start, one["measurements"], one["pulls"], one["memo"], None, []])
    assert one["link"] == after
    tallies = [[[1], [wins]]]
    assert two["link"] == hashed([after, two["measurements"], two["pulls"], two["memo"], None, tallies])


def test_a_replay_finds_the_same_links(session: Session) -> None:
    again = Session.replay(session.to_lines())
    assert (again.chain.links, again.chain.state, again.chain.broken) == (session.chain.links, "chained", None)
    assert again.chain.links == [event["link"] for event in session.log if event["event"] == "stage"]
    checked = verify_certificate(session.certificate())
    assert checked.link in session.chain.links
    assert checked.chained.startswith("Chained; the last link is ")


def change_prediction(log: list[dict[str, Any]], stage: int) -> None:
    memo = [event["memo"] for event in log if event["event"] == "stage"][stage]
    key = "shares" if "shares" in memo else "predictions"
    memo[key][0][0] += 1e-6


def change_answer(log: list[dict[str, Any]], stage: int) -> None:
    asked = {event["id"] for event in log if event["event"] == "question" and event["stage"] == stage}
    event = next(event for event in log if event["event"] == "answer" and event["id"] in asked and event["id"] % 5)
    event["answer"] = 1 - event["answer"]


def change_hidden(log: list[dict[str, Any]], stage: int) -> None:
    memo = [event["memo"] for event in log if event["event"] == "stage"][stage]
    memo["unread"] = 1


def change_delta(log: list[dict[str, Any]], stage: int) -> None:
    log[0]["policy"]["delta"] = 0.2


@pytest.mark.parametrize("change", [change_prediction, change_answer, change_hidden, change_delta])
def test_a_changed_log_is_found_out(session: Session, change: Any, tmp_path: Path) -> None:
    log = [json.loads(line) for line in session.to_lines()]
    change(log, 0)
    path = tmp_path / "changed.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in log))
    result = CliRunner().invoke(app, ["verify", str(path)], catch_exceptions=False)
    assert result.exit_code == 1
    assert "WRONG" in result.output
    assert "The chain is broken: stage " in result.output


def test_verify_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    session = searched(Winner(delta=0.1), path)
    shown = CliRunner().invoke(app, ["verify", str(path)], catch_exceptions=False)
    assert shown.exit_code == 0
    assert shown.output.startswith(f"ok: {len(session.log):,} events, {session.answered:,} answers, verdict certain")
    assert f"Chained; the last link is {session.chain.links[-1]}." in shown.output
    assert ORDER_ONLY in shown.output
    fields = json.loads(CliRunner().invoke(app, ["verify", str(path), "--json"], catch_exceptions=False).stdout)
    assert (fields["valid"], fields["chain"], fields["link"]) == (True, "chained", session.chain.links[-1])
    assert "cannot be read as a log" in str(CliRunner().invoke(app, ["verify", str(tmp_path / "none")]).exception)


def test_logs_without_links_are_read_and_said_to_be_not_chained(session: Session, tmp_path: Path) -> None:
    before = [{key: value for key, value in event.items() if key != "link"} for event in session.log]
    old = Session.replay(before)
    assert (old.verdict(), old.chain.state) == (session.verdict(), "not chained")
    certificate = old.certificate()
    assert "chain" not in certificate
    assert verify_certificate(certificate).chained == "Not chained."
    path = tmp_path / "old.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in before))
    assert "Not chained." in CliRunner().invoke(app, ["verify", str(path)], catch_exceptions=False).output


def test_links_of_a_log_that_was_begun_without_go_on_from_all_of_it(tmp_path: Path) -> None:
    session = Session(easy().problem, Winner(delta=0.1), seed=2)
    for _ in range(3):
        session.tell(session.ask(1)[0].id, 1)
    path = tmp_path / "old.jsonl"
    lines = [{key: value for key, value in event.items() if key != "link"} for event in session.log]
    path.write_text("".join(json.dumps(event) + "\n" for event in lines))
    resumed = Session.resume(path)
    resumed.ask(1)
    session.ask(1)
    assert resumed.chain.links == session.chain.links
    assert resumed.chain.state == "partly chained"


def test_a_certificate_of_before_is_one_of_features() -> None:
    certificate = searched(POLICIES["features"]).certificate()
    assert certificate["claim"] == "features"
    for name in ("claim", "chain"):
        del certificate[name]
    checked = verify_certificate(signed(certificate))
    assert (checked.claim, checked.link) == ("features", None)


def test_predictions_made_afterwards_change_every_link() -> None:
    """The hindsight that no arithmetic finds: whoever kept one link of the search sees that it is gone."""
    session = searched(Winner(delta=0.1))
    kept = session.chain.links[3]
    honest = session.certificate()
    assert kept in [entry["link"] for entry in honest["chain"]["stages"]]
    forged = copy.deepcopy(honest)
    for stage in forged["stages"]:
        stage["shares"] = [[0.99 if answers[0][1] else 0.01, 0.5] for answers in stage["answers"]]
    with pytest.raises(CertificateRefused, match="Stage 0 does not have the link of its plan"):
        verify_certificate(signed(forged))
    # The forger computes all links again, or leaves them out. Both are accepted; neither has the link that was kept.
    del forged["chain"]
    assert verify_certificate(signed(forged)).link is None
    log = [event for event in session.log if event["event"] == "stage"]
    events = [
        {**event, "memo": {**event["memo"], "shares": stage["shares"]}}
        for event, stage in zip(log, forged["stages"], strict=False)
    ]
    chain = Chain([session.log[0], *events])
    for number, event in enumerate(events):
        event["link"] = chain.next(event, session._record.stages, session.chain.counted[number])
        chain.append(event, session._record.stages, session.chain.counted[number])
    checked = verify_certificate(chain.write(forged))
    assert checked.link is not None
    assert kept not in chain.links


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (lambda one: one["chain"]["policy"].update(delta=0.05), "another delta"),
        (lambda one: one["chain"]["policy"].update(budget=7), "Stage 0"),
        (lambda one: one["problem"]["aliases"][0].append("a further name"), "Stage 0"),
        (lambda one: one["chain"]["stages"].pop(), "one link per stage"),
        (lambda one: one["chain"]["stages"][-1].update(counted=0), "counts answers again"),
        (lambda one: one["chain"]["stages"][2].update(counted=3), "whole number"),
        (lambda one: one["chain"]["stages"][2].update(rest="0" * 64), "Stage 2"),
        (lambda one: one["chain"]["stages"][2].update(shown=[]), "does not fix what stage 2 predicted"),
    ],
)
def test_a_forged_chain_is_refused(session: Session, forge: Any, says: str) -> None:
    forged = copy.deepcopy(json.loads(json.dumps(session.certificate())))
    forge(forged)
    with pytest.raises(CertificateRefused, match=says):
        verify_certificate(signed(forged))


def test_answers_enter_links_once() -> None:
    """So the cost over all stages is linear: the tallies that are hashed are as many as the stages."""
    session = searched(Winner(delta=0.1))
    counted = session.chain.counted
    assert counted == sorted(counted)
    assert counted[-1] <= len(counted) - 1
