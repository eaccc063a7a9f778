"""`surepick find --systems` and `surepick ask --systems`: blind judges see the input and two outputs."""

import json
import sys

import pytest
from typer.testing import CliRunner

from fake_model_server import FakeModelServer
from surepick import Session
from surepick.cli import app
from surepick.errors import InvalidInput
from surepick.io.systems import read_systems
from surepick.judges.program import question_for_judge

JUDGE = """
import json, sys
for line in sys.stdin:
    question = json.loads(line)
    with open("seen.jsonl", "a") as file:
        file.write(line)
    texts = [question["show"][place]["text"] for place in ("first", "second")]
    print(json.dumps({"id": question["id"], "answer": "A" if len(texts[0]) > len(texts[1]) else "B"}), flush=True)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Three systems on six inputs, of which `long` is the longest on all but one; an input lacks an output."""
    monkeypatch.chdir(tmp_path)
    lengths = {"short": [1, 1, 1, 1, 1, 40], "middle": [9, 9, 9, 9, 9, 9], "long": [20, 20, 20, 20, 20, 2]}
    rows = [f"{name},in{i},{'x' * n}" for name, many in lengths.items() for i, n in enumerate(many)]
    (tmp_path / "outputs.csv").write_text("\n".join(["system,input,output", *rows, "short,in9,xx", ""]))
    known = [f"in{i},What is {i}?,{'odd' if i % 2 else 'even'},secret {i}" for i in range(6)]
    (tmp_path / "inputs.csv").write_text("\n".join(["input,text,parity,reference", *known, ""]))
    (tmp_path / "judge.py").write_text(JUDGE)
    return tmp_path


def found(*words):
    result = CliRunner().invoke(app, ["find", *words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_program_sees_the_input_and_both_outputs_and_no_names(here):
    outcome = found(
        *("--systems", "outputs.csv", "--inputs", "inputs.csv"),
        *("--judge", f"{sys.executable} judge.py", "--state", "log.jsonl"),
    )
    assert (outcome["best"], outcome["status"], outcome["guarantee"]) == ("long", "certain", "proved")
    assert any("on average over these 6 inputs" in sentence for sentence in outcome["assumptions"])
    seen = [json.loads(line) for line in (here / "seen.jsonl").read_text().splitlines()]
    assert len(seen) >= outcome["questions"]
    asked = Session.resume("log.jsonl").questions
    table = read_systems("outputs.csv", "inputs.csv")
    for line in seen:
        question = asked[line["id"]]
        assert line == question_for_judge(question, table)
        assert line["input"]["text"] == f"What is {line['input']['name'][2:]}?"
        assert line["input"]["reference"].startswith("secret")
        assert line["show"]["first"]["text"] == table.output(question.first, question.input)
        assert not [name for name in table.names if name in json.dumps(line)]


RANKING_JUDGE = """
import json, sys
for line in sys.stdin:
    question = json.loads(line)
    with open("seen.jsonl", "a") as file:
        file.write(line)
    lengths = {name: len(shown["text"]) for name, shown in zip(question["items"], question["show"])}
    order = sorted(lengths, key=lambda name: -lengths[name])
    print(json.dumps({"id": question["id"], "ranking": order[: question["top"]]}), flush=True)
"""


@pytest.mark.parametrize("form", [("--rank", "--show", "3"), ("--pick", "--show", "3"), ("--rank", "--show", "2")])
def test_a_program_ranks_several_outputs_without_their_names(here, form):
    (here / "rank.py").write_text(RANKING_JUDGE if "2" not in form else JUDGE)
    outcome = found(
        *("--systems", "outputs.csv", "--inputs", "inputs.csv", *form),
        *("--judge", f"{sys.executable} rank.py", "--state", "log.jsonl", "--certificate", "certificate.json"),
    )
    assert (outcome["best"], outcome["status"], outcome["guarantee"]) == ("long", "certain", "proved")
    assert any("on average over these 6 inputs" in sentence for sentence in outcome["assumptions"])
    seen = [json.loads(line) for line in (here / "seen.jsonl").read_text().splitlines()]
    asked, table = Session.resume("log.jsonl").questions, read_systems("outputs.csv", "inputs.csv")
    for line in seen:
        assert line == question_for_judge(asked[line["id"]], table)
        assert not [name for name in table.names if name in json.dumps(line)]
    if "2" not in form:
        assert {line["kind"] for line in seen} == {form[0][2:]}
        assert seen[0]["items"] == ["A", "B", "C"]
        assert len({tuple(shown["text"] for shown in line["show"]) for line in seen}) > 2  # in any order
    checked = CliRunner().invoke(app, ["verify-certificate", "certificate.json"], catch_exceptions=False)
    assert checked.exit_code == 0


def test_a_language_model_ranks_all_outputs_below_the_input(here, monkeypatch):
    with FakeModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = ("--systems", "outputs.csv", "--inputs", "inputs.csv", "--llm", "judge-1", "--rank", "--show", "3")
        outcome = found(*words, "--state", "log.jsonl")
        assert outcome["best"] == "long"
        assert any("placed above each other one" in sentence for sentence in outcome["assumptions"])
        prompts = [sent["messages"][-1]["content"] for sent in server.seen]
        assert all(prompt.startswith("<input>\nWhat is ") and "<candidate_C>" in prompt for prompt in prompts)
        assert not any(name in prompt for prompt in prompts for name in ("short", "middle", "long"))
        calls = len(server.seen)
        assert calls == len(set(prompts)) <= outcome["questions"]  # at temperature 0 nothing is paid for twice
        assert found(*words)["best"] == "long"
        assert found(*words, "--state", "log.jsonl")["best"] == "long"
        assert len(server.seen) == calls
    told = [event for event in Session.resume("log.jsonl").log if event["event"] == "answer"]
    assert all("ranking" in event["raw"] for event in told)


def test_a_language_model_ranks_every_input_in_an_order_and_its_reverse_if_asked_to(here, monkeypatch):
    with FakeModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = ("--systems", "outputs.csv", "--inputs", "inputs.csv", "--llm", "judge-1", "--rank", "--show", "3")
        outcome = found(*words, "--repeats", "once", "--state", "log.jsonl", "--certificate", "certificate.json")
        assert (outcome["best"], outcome["status"]) == ("long", "certain")
        assert any("in its reverse" in sentence for sentence in outcome["assumptions"])
        prompts = [sent["messages"][-1]["content"] for sent in server.seen]
        assert len(prompts) == len(set(prompts)) <= 12  # six inputs
    assert CliRunner().invoke(app, ["verify-certificate", "certificate.json"], catch_exceptions=False).exit_code == 0


def test_a_simulated_judge_ranks_systems_and_a_wrong_number_is_refused(here):
    assert found("--systems", "outputs.csv", "--simulate", "--rank", "--show", "3")["status"] == "certain"
    with pytest.raises(InvalidInput, match="at most the number of different items, 3; got 4"):
        found("--systems", "outputs.csv", "--simulate", "--rank")
    with pytest.raises(InvalidInput, match="without --kind, --position or --swap"):
        found("--systems", "outputs.csv", "--llm", "judge-1", "--rank", "--show", "3", "--swap")


def test_a_models_log_advises_the_people_who_answer(here, monkeypatch):
    """The model answers first; then people, whose answers alone count."""
    with FakeModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = ("--systems", "outputs.csv", "--llm", "judge-1")
        found(*words, "--state", "pairs.jsonl")
        found(*words, "--rank", "--show", "3", "--state", "ranks.jsonl")
    people = ("--systems", "outputs.csv", "--judge", f"{sys.executable} judge.py")
    alone = found(*people)
    assert alone["advice"] is None
    for log in ("pairs.jsonl", "ranks.jsonl"):
        advised = found(*people, "--warm-start", log)
        assert advised["best"] == "long"
        assert advised["questions"] <= alone["questions"] + 2
        assert advised["advice"]["agreed"] / advised["advice"]["compared"] > 0.6
    (here / "votes.csv").write_text("item_a,item_b,winner\nlong,short,long\nlong,middle,long\n")
    assert found(*people, "--warm-start", "votes.csv")["best"] == "long"
    answered = CliRunner().invoke(
        app,
        ["ask", "--systems", "outputs.csv", "--warm-start", "pairs.jsonl", "--json"],
        input="a\nb\na\nq\n",
        catch_exceptions=False,
    )
    assert json.loads(answered.stdout)["advice"]["compared"] == 3
    (here / "other.csv").write_text("item\nred\nblue\n")
    CliRunner().invoke(app, ["find", "other.csv", "--simulate", "--state", "other.jsonl"], catch_exceptions=False)
    with pytest.raises(InvalidInput, match="has no comparison of items of this search"):
        found(*people, "--warm-start", "other.jsonl")


def test_missing_outputs_are_reported_and_never_asked_about(here):
    outcome = found("--systems", "outputs.csv", "--judge", f"{sys.executable} judge.py")
    assert "'middle' has no output for the input 'in9', so the input is left out" in "\n".join(outcome["left_out"])
    seen = (here / "seen.jsonl").read_text()
    assert "in9" not in seen
    assert '"text": "in3"' in seen  # without a table of inputs the judge sees their names


def test_a_language_model_sees_the_input_above_two_outputs(here, monkeypatch):
    with FakeModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = ("--systems", "outputs.csv", "--inputs", "inputs.csv", "--llm", "judge-1")
        assert found(*words)["best"] == "long"
        prompts = [sent["messages"][-1]["content"] for sent in server.seen]
        assert all(prompt.startswith("<input>\nWhat is ") for prompt in prompts)
        assert not any(name in prompt for prompt in prompts for name in ("short", "middle", "long"))
        calls = len(server.seen)
        assert calls == len(set(prompts))  # at temperature 0 a repeated question is not paid for again
        assert found(*words)["best"] == "long"
        assert len(server.seen) == calls
    assert (here / "outputs.replies.jsonl").exists()


def test_equal_outputs_are_a_tie_without_a_call(here, monkeypatch):
    rows = [f"{name},in{i},{text}" for i in range(6) for name, text in (("old", "same"), ("new", "same"[: 4 - i % 2]))]
    (here / "outputs.csv").write_text("\n".join(["system,input,output", *rows, ""]))
    with FakeModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        words = ["find", "--systems", "outputs.csv", "--llm", "judge-1", "--json", "--state", "log.jsonl"]
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        outcome = json.loads(result.stdout)
        assert (outcome["best"], outcome["status"]) == ("old", "certain")
        assert outcome["ties"] > 0
        assert f"{outcome['ties']} without a call as the texts are equal (ties)" in result.stderr
        assert all("sam\n" in sent["messages"][-1]["content"] for sent in server.seen)
    ties = [event for event in Session.resume("log.jsonl").log if event["event"] == "tie"]
    assert {event["raw"] for event in ties} == {"[not asked: both texts are the same]"}


def test_items_may_describe_the_systems(here):
    (here / "systems.csv").write_text("item,label\nshort,Short!\nmiddle,Middle!\nlong,Long!\n")
    outcome = found("systems.csv", "--systems", "outputs.csv", "--judge", f"{sys.executable} judge.py")
    assert outcome["label"] == "Long!"


def test_the_verdict_is_said_to_be_on_average(here):
    words = ["find", "--systems", "outputs.csv", "--inputs", "inputs.csv", "--strata", "parity", "--simulate"]
    words += ["--budget", "10"]
    result = CliRunner().invoke(app, [*words, "--report", "report.html"], catch_exceptions=False)
    assert "On average over these 6 inputs, drawn at random." in " ".join(result.output.split())
    report = (here / "report.html").read_text()
    assert "On average over these 6 inputs" in report
    assert "3 systems are compared on 6 inputs." in report
    assert "Every one of the 2 values of" in report


def test_a_search_of_other_inputs_is_not_resumed(here):
    words = ["--systems", "outputs.csv", "--simulate", "--state", "log.jsonl"]
    found(*words)
    (here / "some.csv").write_text("input\nin1\nin2\n")
    with pytest.raises(InvalidInput, match="the log of another search"):
        found(*words, "--inputs", "some.csv")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--simulate"], "Name a table of items"),
        (["outputs.csv", "--inputs", "inputs.csv", "--simulate"], "no column 'item'"),
        (["--strata", "parity", "--simulate"], "with --systems"),
        (["--systems", "outputs.csv", "--answers", "votes.csv"], "votes without inputs"),
        (["--systems", "outputs.csv", "--simulate", "--kind", "items"], "leave out --kind"),
    ],
)
def test_options_that_do_not_go_together_are_refused(here, words, why):
    with pytest.raises(InvalidInput, match=why):
        found(*words)


def test_the_person_at_the_terminal_sees_no_names(here):
    result = CliRunner().invoke(
        app, ["ask", "--systems", "outputs.csv", "--inputs", "inputs.csv"], input="a\nb\nq\n", catch_exceptions=False
    )
    assert result.exit_code == 1
    asked = result.stderr.partition("Question 1")[2]
    assert "What is " in asked
    assert "xxx" in asked
    assert not [name for name in ("short", "middle", "long") if name in asked]
    session = Session.resume("outputs.answers.jsonl")
    assert (session.answered, session.repeats) == (2, "once")


def test_the_person_at_the_terminal_ranks_outputs_by_number(here):
    result = CliRunner().invoke(
        app,
        ["ask", "--systems", "outputs.csv", "--inputs", "inputs.csv", "--rank", "--show", "3"],
        input="31\n21\nq\n",
        catch_exceptions=False,
    )
    assert result.exit_code == 1
    asked = result.stderr.partition("Question 1")[2]
    assert "What is " in asked
    assert "xxx" in asked
    assert not [name for name in ("short", "middle", "long") if name in asked]
    session = Session.resume("outputs.answers.jsonl")
    assert (session.answered, session.repeats) == (2, "once")
