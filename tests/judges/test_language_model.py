"""Language models as judges, against a fake server that this file starts: nothing is paid twice, nothing is made up."""

import asyncio
import gc
import json
import re
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import anyio
import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from fake_model_server import Canned, FakeModelServer, chat, error, texts, token_chances
from surepick.cli import app, main
from surepick.judges import LanguageModel, ModelFailed, language_model, model_calls
from surepick.session import AskLoop

TEXTS = {
    "one": "Yes.",
    "two": "Yes indeed.",
    "three": "Yes, and here is why.",
    "four": "Yes, and here is why: it works.",
}
PRICES = {"price_in": 1000.0, "price_out": 10_000.0}
"""A call of the fake server costs 0.1 + 0.1."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(model_calls, "PAUSE", 0.01)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with FakeModelServer() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def problem() -> sp.Problem:
    return sp.Problem.from_pairs({name: list(row) for name, row in zip(TEXTS, ROWS, strict=True)})


ROWS = [[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]


def searched(judge: LanguageModel, *, max_cost: float | None = None, budget: int | None = 200) -> AskLoop:
    loop = AskLoop(sp.Session(problem(), sp.Winner(), seed=1), judge, max_cost=max_cost, budget=budget)
    loop.run()
    return loop


def answers(loop: AskLoop) -> list[dict]:
    return [event for event in loop.session.log if event["event"] in ("answer", "tie", "skip")]


def test_the_best_text_is_found_with_many_calls_in_flight(server):
    server.seconds = 0.02
    judge = LanguageModel("judge-1", TEXTS, at_once=4, temperature=1.0)
    verdict = sp.find_best(problem(), judge, assume="winner", budget=200)
    assert (verdict.best, verdict.status) == ("four", "certain")
    assert 2 <= server.busiest <= 4
    assert server.seen[0]["path"] == "/v1/chat/completions"
    assert server.seen[0]["key"] is None


def test_the_log_has_the_models_own_words(server):
    server.judge = lambda first, second: chat("Hmm.\n\nAnswer: " + ("A" if len(first) > len(second) else "B"))
    loop = searched(LanguageModel("judge-1", TEXTS))
    assert {event["raw"] for event in answers(loop)} == {"Hmm.\n\nAnswer: A", "Hmm.\n\nAnswer: B"}
    assert all(event["judge"] == "judge-1" for event in answers(loop))
    again = sp.Session.replay(loop.session.to_lines())
    assert again.verdict().best == "four"


def test_criteria_inputs_and_images_are_shown(server, tmp_path):
    (tmp_path / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "items.csv").write_text(f"item,image\none,https://x.example/1.png\ntwo,{tmp_path}/dot.png\n")
    table = sp.read_items(tmp_path / "items.csv")
    judge = LanguageModel("judge-1", table, rubric="Prefer warmth.", inputs=lambda question: "How are you?")
    AskLoop(sp.Session(table.problem()), judge, budget=1).run()
    system, user = server.seen[0]["messages"]
    assert "Prefer warmth." in system["content"]
    assert user["content"][0]["text"] == "<input>\nHow are you?\n</input>"
    assert set(texts(server.seen[0])) == {"https://x.example/1.png", "data:image/png;base64,iVBORw0KGgo="}
    assert "one" not in json.dumps(user)  # names are hidden where there is something to show


@pytest.mark.parametrize(
    ("url", "path"),
    [("/v1", "/v1/chat/completions"), ("", "/v1/chat/completions"), ("/api/chat/completions", "/api/chat/completions")],
)
def test_the_url_is_a_base_or_a_full_path(server, url, path):
    judge = LanguageModel("judge-1", TEXTS, url=server.url.removesuffix("/v1") + url, api_key="k")
    AskLoop(sp.Session(problem()), judge, budget=1).run()
    assert (server.seen[0]["path"], server.seen[0]["key"]) == (path, "Bearer k")


def test_a_busy_server_is_asked_again_as_it_wishes(server):
    slow_down = Canned(429, error("Slow down."), {"Retry-After": "0.3"})
    server.canned.extend(
        [slow_down, Canned(500, "oops"), Canned(200, error("upstream", None)), Canned(503, error("x"))]
    )
    begun = time.monotonic()
    loop = searched(LanguageModel("judge-1", TEXTS), budget=1)
    assert time.monotonic() - begun >= 0.3
    assert (len(server.seen), len(loop.troubles), loop.session.answered) == (5, 0, 1)


@pytest.mark.parametrize("garbage", ["<html>", {"choices": []}, {"choices": None}, [1], "data: {}"])
def test_garbage_in_the_middle_is_asked_again_and_then_told(server, garbage):
    judge = LanguageModel("judge-1", TEXTS, retries=1, at_once=1, temperature=1.0)
    searched(judge, budget=1)
    server.canned.extend([Canned(200, garbage)] * 2)
    loop = searched(judge, budget=1)
    assert "(after 2 attempts)" in loop.troubles[0]
    assert (loop.session.answered, len(server.seen)) == (1, 4)


def test_a_slow_reply_is_given_up_and_asked_again(server):
    server.canned.append(Canned(200, chat("Answer: A"), seconds=4.0))
    loop = searched(LanguageModel("judge-1", TEXTS, timeout=1.0), budget=1)
    assert (len(server.seen), loop.session.answered) == (2, 1)


def test_what_a_reasoning_model_does_not_take_is_left_out(server):
    server.rejects = {"max_tokens", "temperature", "response_format", "logprobs"}
    server.judge = lambda first, second: chat(
        "<think>Answer: A or Answer: B?</think>\nAnswer: " + ("A" if len(first) > len(second) else "B")
    )
    loop = searched(LanguageModel("judge-1", TEXTS, max_tokens=500))
    assert loop.session.verdict().best == "four"
    assert not loop.troubles
    last = server.seen[-1]
    assert last["max_completion_tokens"] == 500
    assert not {"max_tokens", "temperature", "response_format", "logprobs", "top_logprobs"} & set(last)
    assert 'says only "Answer: A"' in last["messages"][0]["content"]
    # The temperature could not be set, so replies vary, and every question is a call of its own.
    assert len(server.seen) == 4 + len(answers(loop))


def test_a_format_is_enforced_where_the_server_does(server):
    searched(LanguageModel("judge-1", TEXTS), budget=1)
    assert server.seen[0]["response_format"]["type"] == "json_schema"
    assert server.seen[0]["temperature"] == 0
    assert "max_tokens" not in server.seen[0]


def test_at_temperature_0_a_repeat_is_taken_from_the_cache(server):
    loop = searched(LanguageModel("judge-1", TEXTS, **PRICES))
    pairs = {tuple(texts(sent)) for sent in server.seen}
    assert len(server.seen) == len(pairs) < len(answers(loop))
    assert loop.spent == pytest.approx(0.2 * len(server.seen))


def test_above_temperature_0_every_question_is_a_call(server):
    loop = searched(LanguageModel("judge-1", TEXTS, temperature=1.0))
    assert len(server.seen) == len(answers(loop))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_rerun_takes_everything_from_the_cache(server, tmp_path, temperature):
    options = {"cache": tmp_path / "replies.jsonl", "temperature": temperature, "swap": True, **PRICES}
    noisy = temperature > 0  # at temperature 0 two items that tie once tie for ever
    server.judge = lambda *both: "AB"[(len(both[0]) < len(both[1])) ^ (noisy and len(server.seen) % 7 == 0)]
    one = searched(LanguageModel("judge-1", TEXTS, **options), budget=60)
    calls = len(server.seen)
    server.seconds = 0.01
    two = searched(LanguageModel("judge-1", TEXTS, **options), budget=60)
    assert len(server.seen) == calls
    assert [(e["event"], e["id"], e.get("answer")) for e in answers(one)] == [
        (e["event"], e["id"], e.get("answer")) for e in answers(two)
    ]
    assert (one.spent > 0, two.spent) == (True, 0)


def test_another_prompt_model_or_server_is_another_question(server, tmp_path):
    server.models.add("judge-2")
    for options in ({}, {"rubric": "Be kind."}, {"max_tokens": 9}, {"temperature": 0.5}):
        searched(LanguageModel("judge-1", TEXTS, cache=tmp_path / "replies.jsonl", **options), budget=1)
    searched(LanguageModel("judge-2", TEXTS, cache=tmp_path / "replies.jsonl"), budget=1)
    assert len(server.seen) == 5


def test_a_resumed_session_takes_no_reply_twice(server, tmp_path):
    """At temperature 1 the third asking of a pair needs a third reply, whichever process asks it."""
    options = {"cache": tmp_path / "replies.jsonl", "temperature": 1.0, "at_once": 1}
    session = sp.Session(problem(), sp.Winner(), seed=1, path=tmp_path / "log.jsonl")
    AskLoop(session, LanguageModel("judge-1", TEXTS, **options), budget=10).run()
    resumed = sp.Session.resume(tmp_path / "log.jsonl")
    judge = LanguageModel("judge-1", TEXTS, **options)
    judge.resume(resumed)
    AskLoop(resumed, judge, budget=20).run()
    assert len(server.seen) == 20
    assert judge.counts["cached"] == 0


def test_log_probabilities_are_drawn_from_without_bias(server):
    """The share of ones among 2,000 answers is within four standard errors of 0.7: a false alarm below 1e-4.

    Negative control: the most likely answer would always be 1.
    """
    server.judge = lambda first, second: chat('{"answer":"A"}', logprobs=token_chances(A=0.6, B=0.2, T=0.2))
    questions = iter([sp.Question(number, 0, 0, np.zeros(1), "one", "two", False) for number in range(2_000)])
    replies = [reply for _, reply in LanguageModel("judge-1", TEXTS, seed=3).replies(lambda: next(questions, None))]
    assert [reply.probability for reply in replies] == pytest.approx([0.7] * 2_000)
    assert abs(np.mean([reply.answer for reply in replies]) - 0.7) < 4 * (0.7 * 0.3 / 2_000) ** 0.5
    assert len(server.seen) == 1  # draws from a known probability cost nothing


def test_both_orders_give_one_answer(server):
    server.canned.extend([Canned(200, chat("Answer: A"))] * 2)  # for the item shown first, twice
    loop = searched(LanguageModel("judge-1", TEXTS, swap=True, temperature=1.0, at_once=1, **PRICES), budget=1)
    assert answers(loop)[0]["event"] == "tie"
    assert answers(loop)[0]["cost"] == pytest.approx(0.4)
    server.judge = lambda first, second: chat('{"answer":"A"}', logprobs=token_chances(A=0.9, B=0.1))
    loop = searched(LanguageModel("judge-1", TEXTS, swap=True, rubric="x"), budget=1)
    assert answers(loop)[0]["probability"] == pytest.approx(0.5)
    server.judge = lambda first, second: "A" if len(first) > len(second) else "B"
    assert searched(LanguageModel("judge-1", TEXTS, swap=True, rubric="y")).session.verdict().best == "four"


def test_the_cost_cap_holds(server):
    loop = searched(LanguageModel("judge-1", TEXTS, temperature=1.0, at_once=8, **PRICES), max_cost=1.5)
    assert loop.ended == "cost cap reached"
    assert 1.2 < loop.spent <= 1.5
    assert len(server.seen) == 7


def test_a_server_that_does_not_count_tokens_is_counted_for(server):
    body = chat("Answer: A")
    del body["usage"]
    server.judge = lambda first, second: body
    assert 0 < searched(LanguageModel("judge-1", TEXTS, **PRICES), budget=1).spent < 10


def test_calls_keep_to_a_rate(server):
    begun = time.monotonic()
    searched(LanguageModel("judge-1", TEXTS, temperature=1.0, calls_per_minute=1200), budget=5)
    assert time.monotonic() - begun >= 4 * 0.05


def test_unreadable_replies_end_the_search_with_an_example(server):
    server.judge = lambda first, second: chat("Well, A has its merits, and so does B.")
    judge = LanguageModel("judge-1", TEXTS, most_unreadable=3, temperature=1.0)
    with pytest.raises(ModelFailed, match=r"3 replies of judge-1 could not be read.*so does B"):
        searched(judge)
    assert "3 unreadable, such as 'Well" in judge.summary
    with pytest.raises(ModelFailed, match=r"The last 3 questions to judge-1 got no answer.*so does B"):
        searched(LanguageModel("judge-1", TEXTS, at_once=1))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (chat(None, refusal="I will not do that."), "refused: 'I will not do that.'"),
        (chat("I'm sorry, I can't help with that."), "refused"),
        (chat("", finish="content_filter"), "refused"),
        (chat("The answer is", finish="length"), "cut off"),
        (chat(None, tool_calls=[{"id": "1"}]), "tool_calls"),
        (chat(None, reasoning_content="A is better"), "reasoning_content"),
        (chat([{"type": "text", "text": "no idea"}]), "no idea"),
        ({"choices": ["A"]}, "could not be read"),
    ],
)
def test_a_reply_that_is_no_answer_is_skipped_and_told(server, body, words):
    server.canned.append(Canned(200, body))
    loop = searched(LanguageModel("judge-1", TEXTS, at_once=1, temperature=1.0), budget=1)
    assert words in loop.troubles[0]
    assert [event["event"] for event in answers(loop)] == ["skip", "answer"]


def test_a_question_that_the_server_finds_too_long_is_skipped(server):
    judge = LanguageModel("judge-1", TEXTS, at_once=1, temperature=1.0)
    judge.server.worked = True
    server.canned.append(Canned(400, error("This model's maximum context length is 10 tokens.")))
    loop = searched(judge, budget=1)
    assert "maximum context length" in loop.troubles[0]
    assert len(server.seen) == 2


def test_a_model_that_never_decides_ends_the_search(server, monkeypatch):
    monkeypatch.setattr(language_model, "MOST_UNDECIDED", 10)
    server.judge = lambda first, second: "TIE"
    with pytest.raises(ModelFailed, match="chose neither"):
        searched(LanguageModel("judge-1", TEXTS))


def test_tasks_of_a_cancelled_call_are_left_to_the_call():
    """The library that connects starts tasks of its own; one that is cancelled before its first step warns later."""
    entered = threading.Event()

    async def child() -> None:
        await anyio.sleep(0.01)

    async def connect() -> None:
        entered.set()
        time.sleep(0.1)  # the loop stands still until the end of the block below has been requested
        await asyncio.sleep(0)
        async with anyio.create_task_group() as group:
            group.start_soon(child)

    async def call() -> None:
        await asyncio.shield(asyncio.create_task(connect()))

    async def nothing() -> None:
        pass

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with model_calls.event_loop(nothing) as submit:
            submit(call())
            entered.wait()
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


def test_a_model_without_a_favourite_does_not_go_round_in_circles(server, monkeypatch):
    """At temperature 0 one that always takes the first text has said all it can after twelve calls."""
    monkeypatch.setattr(language_model, "MOST_REPEATS", 20)
    server.judge = lambda first, second: "A"
    with pytest.raises(ModelFailed, match="no item wins all its comparisons"):
        searched(LanguageModel("judge-1", TEXTS), budget=None)
    assert len(server.seen) <= 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"api_key": "wrong"}, "refused the key .401.: .Incorrect API key provided"),
        ({"model": "judge-9", "api_key": "right"}, "The model `judge-9` does not exist"),
        ({"url": "http://127.0.0.1:9", "api_key": "right"}, "cannot be reached"),
    ],
)
def test_a_wrong_key_model_or_url_stops_at_once(server, options, words):
    server.key = "right"
    judge = LanguageModel(**{"model": "judge-1", "items": TEXTS, "at_once": 8} | options)
    begun = time.monotonic()
    with pytest.raises(ModelFailed, match=words):
        searched(judge)
    assert time.monotonic() - begun < 20  # it would try again for minutes
    assert len(server.seen) <= 1
    assert judge.server.calls == 1


def test_a_key_that_expired_since_the_last_run_costs_one_call(server, tmp_path):
    """The first replies come from the cache, so eight questions are out when the first call is made."""
    options = {"items": TEXTS, "cache": tmp_path / "replies.jsonl", "temperature": 1.0}
    searched(LanguageModel("judge-1", **options), budget=10)
    calls, server.key, server.seconds = len(server.seen), "new", 0.05
    with pytest.raises(ModelFailed, match="refused the key"):
        searched(LanguageModel("judge-1", **options))
    assert len(server.seen) == calls + 1


@pytest.mark.parametrize(
    ("canned", "words"),
    [
        (Canned(400, error("Unknown model judge-1")), "Unknown model"),
        (Canned(429, error("You exceeded your current quota.", "insufficient_quota")), "payment first.*exceeded"),
        (Canned(429, error("Daily limit."), {"Retry-After": "86400"}), "asks to wait 86,400 seconds"),
        (Canned(200, "<html><body>Welcome</body></html>"), "does not reply like.*Welcome"),
        (Canned(301, "", {"Location": "https://x.example"}), "refused the request .301."),
    ],
)
def test_what_no_waiting_cures_stops_at_once(server, canned, words):
    server.canned.extend([canned] * 20)
    with pytest.raises(ModelFailed, match=words):
        searched(LanguageModel("judge-1", TEXTS))
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": ""}, "needs a name"),
        ({"price_in": 1.0}, "both prices or none"),
        ({"at_once": 0}, "at_once must be at least 1, got 0"),
        ({"temperature": 3}, "from 0 to 2, got 3"),
        ({"url": "localhost:8000"}, "begin with http"),
        ({"calls_per_minute": 0}, "calls_per_minute must be positive, got 0"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options, words):
    with pytest.raises(sp.InvalidInput, match=words):
        LanguageModel(**{"model": "judge-1"} | options)


def test_other_files_are_not_taken_for_replies(tmp_path):
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(sp.InvalidInput, match="not a file of replies"):
        LanguageModel("judge-1", cache=tmp_path / "notes.txt")


# The command line.


@pytest.fixture
def items(tmp_path):
    rows = "".join(f'{name},"{text}"\n' for name, text in TEXTS.items())
    (tmp_path / "items.csv").write_text(f"item,text\n{rows}")
    return tmp_path / "items.csv"


def found(items: Path, *words: object, code: int = 0) -> dict:
    words = ("find", items, "--llm", "judge-1", *words, "--json")
    result = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def refused(capsys, monkeypatch, items: Path, *words: object) -> str:
    monkeypatch.setattr(sys, "argv", ["surepick", "find", str(items), "--llm", "judge-1", *map(str, words)])
    with pytest.raises(SystemExit) as exit_code:
        main()
    assert exit_code.value.code == 2
    return capsys.readouterr().err


def test_find_asks_a_language_model(server, items, tmp_path):
    (tmp_path / "rubric.txt").write_text("The longer, the better.\n")
    fields = found(items, "--rubric", tmp_path / "rubric.txt", "--swap", "--price-in", 1, "--price-out", 4)
    assert (fields["best"], fields["status"], fields["policy"]) == ("four", "certain", "winner")
    assert fields["spent"] == pytest.approx(len(server.seen) * (100 + 4 * 10) / 1e6)
    assert "The longer, the better." in server.seen[0]["messages"][0]["content"]
    calls = len(server.seen)
    again = found(items, "--rubric", tmp_path / "rubric.txt", "--swap")
    assert len(server.seen) == calls
    assert again["questions"] == fields["questions"]
    assert (tmp_path / "items.replies.jsonl").exists()


def test_find_stops_at_the_cost_cap(server, items):
    prices = ("--price-in", 1000, "--price-out", 10_000)
    fields = found(items, *prices, "--max-cost", 0.5, "--temperature", 1, code=1)
    assert (fields["status"], len(server.seen)) == ("cost cap reached", 2)


def test_find_says_what_is_wrong_in_one_sentence(server, items, capsys, monkeypatch, tmp_path):
    server.key = "right"
    said = refused(capsys, monkeypatch, items)
    assert [line.split(":")[0] for line in said.splitlines()][-1] == "surepick"
    assert said.count("surepick:") == 1
    assert 'refused the key (401): "Incorrect API key provided: sk-wr***ng.' in said
    assert "--price-in" in refused(capsys, monkeypatch, items, "--max-cost", 1)
    assert "only --assume winner" in refused(capsys, monkeypatch, items, "--assume", "features")
    assert "--kind items" in refused(capsys, monkeypatch, items, "--kind", "items")
    (tmp_path / "empty.txt").write_text("")
    assert "is empty" in refused(capsys, monkeypatch, items, "--rubric", tmp_path / "empty.txt")
    assert "cannot be read" in refused(capsys, monkeypatch, items, "--rubric", tmp_path / "none.txt")
    assert "exactly one" in refused(capsys, monkeypatch, items, "--simulate")
    assert len(server.seen) == 1


def test_a_report_that_cannot_be_drawn_is_refused_before_anything_is_paid(server, items, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "surepick[plots]" in refused(capsys, monkeypatch, items, "--report", items.with_suffix(".html"))
    assert not server.seen


def test_what_was_learnt_before_the_model_failed_is_shown(server, items):
    judged = server.judge
    server.judge = lambda *both: judged(*both) if len(server.seen) <= 3 else chat("Hm.")
    fields = found(items, "--max-unreadable", 2, "--concurrency", 1, code=1)
    assert fields["status"] == "judges failed"
    assert "2 replies of judge-1 could not be read" in fields["troubles"][-1]
    assert fields["questions"] >= 3


def test_a_killed_search_goes_on_without_paying_twice(server, items, tmp_path):
    """Killed in the middle, then run again: the replies that had come are taken from the files."""
    server.seconds = 0.05
    program = "import sys; from surepick.cli import main; sys.exit(main())"
    words = ["--temperature", "1", "--concurrency", "3", "--state", str(tmp_path / "log.jsonl")]
    command = [sys.executable, "-c", program, "find", str(items), "--llm", "judge-1", *words]
    replies = tmp_path / "items.replies.jsonl"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        end = time.monotonic() + 60
        while (not replies.exists() or len(replies.read_text().splitlines()) < 10) and time.monotonic() < end:
            time.sleep(0.02)
        running.kill()
    time.sleep(0.2)
    paid, seen = len(replies.read_text().splitlines()), len(server.seen)
    assert paid >= 10
    assert seen - paid <= 3  # those in flight when it was killed
    server.seconds = 0.0
    assert found(items, *words)["best"] == "four"
    log = sp.Session.resume(tmp_path / "log.jsonl").log
    asked = sum(event["event"] in ("answer", "tie", "skip") for event in log)
    assert len(server.seen) - seen == asked - paid


def test_only_asking_needs_httpx(monkeypatch):
    for path in Path(sp.__file__).parent.rglob("*.py"):
        assert not re.search(r"^(?:import|from) httpx", path.read_text(), re.M), path
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(sp.MissingExtra, match=r"install surepick\[llm\]"):
        next(sp.judges.LanguageModel("judge-1").replies(lambda: None))
