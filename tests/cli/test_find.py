"""`surepick find`: whoever answers, the verdict is right, nothing is lost, and nothing is dropped in silence."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from surepick import Problem, Session, verify_certificate
from surepick.certificate import ARITHMETIC_ONLY, ORDER_ONLY
from surepick.cli import app, main
from surepick.judges import ReproducibleJudge, World
from surepick.registry import POLICIES
from surepick.session import AskLoop, FunctionJudge

STABLE = [
    "best",
    "status",
    "delta",
    "epsilon",
    "questions",
    "evidence",
    "rivals",
    "seconds",
    "policy",
    "guarantee",
    "certificate",
]

ITEMS = "item,label,size,price\na,<b>A</b> & co,0,0\nb,B,1,0\nc,C,0,1\nd,D,1,1\n"
THETA = "feature,theta\nsize,3\nprice,-2\n"
"""In the units of the table b is the best: its score is 3, that of d is 1, of a 0, of c −2."""

JUDGE = """
import json, random, sys
random.seed(int(sys.argv[1]))
score = {"a": 0, "b": 3, "c": -2, "d": 1}
for line in sys.stdin:
    question = json.loads(line)
    if question["kind"] == "pair":
        yes = score[question["first"]] + random.gauss(0, .3) > score[question["second"]]
    else:
        yes = score[question["first"]] > 0
    print(json.dumps({"id": question["id"], "answer": int(yes), "cost": .5}), flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "items.csv").write_text(ITEMS)
    (tmp_path / "theta.csv").write_text(THETA)
    (tmp_path / "judge.py").write_text(JUDGE)
    return tmp_path


def found(*words: object, code: int = 0) -> dict:
    result = CliRunner().invoke(app, ["find", *map(str, words), "--with-certificate", "--json"], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def refused(capsys, monkeypatch, *words: object) -> str:
    monkeypatch.setattr(sys, "argv", ["surepick", "find", *map(str, words)])
    with pytest.raises(SystemExit) as exit_code:
        main()
    assert exit_code.value.code == 2
    return capsys.readouterr().err


def simulated(folder: Path, *words: object, **options: int) -> dict:
    return found(folder / "items.csv", "--simulate", "--theta", folder / "theta.csv", *words, **options)


@pytest.mark.parametrize("kind", ["pairs", "items", "both"])
def test_a_simulated_taste_is_found(folder, kind):
    fields = simulated(folder, "--kind", kind, "--seed", 3)
    assert list(fields)[: len(STABLE)] == STABLE
    assert (fields["best"], fields["truth"], fields["status"]) == ("b", "b", "certain")
    assert fields["guarantee"] == "proved"
    assert {rival["item"] for rival in fields["rivals"]} == {"a", "c", "d"}
    assert verify_certificate(fields["certificate"]).best == "b"


def test_a_search_that_assumes_only_a_winner_has_a_certificate(folder):
    file = folder / "certificate.json"
    fields = simulated(folder, "--assume", "winner", "--seed", 3, "--certificate", file)
    assert fields["certificate"] == json.loads(file.read_text())
    checked = CliRunner().invoke(app, ["verify-certificate", str(file)], catch_exceptions=False)
    assert "Claim 'winner', which assumes: one item gets" in checked.output
    assert ORDER_ONLY in checked.output
    again = CliRunner().invoke(app, ["verify-certificate", str(file), "--json"], catch_exceptions=False)
    shown = json.loads(again.stdout)
    assert (shown["claim"], shown["best"]) == ("winner", fields["best"])
    assert shown["link"] in file.read_text()


def test_the_table_names_the_best_and_what_others_need(folder):
    words = [
        "find",
        str(folder / "items.csv"),
        "--simulate",
        "--theta",
        str(folder / "theta.csv"),
        "--compare",
        "--ranks",
    ]
    shown = CliRunner().invoke(app, words, catch_exceptions=False).output
    for word in ("B is the best of 4 items", "(proved)", "never saw", "RAGE-GLM as printed", "needs fewer", "ranks"):
        assert word in " ".join(shown.split())


def test_json_has_the_certificate_on_request_only(folder):
    words = ["find", str(folder / "items.csv"), "--simulate", "--theta", str(folder / "theta.csv"), "--json"]
    fields = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert fields["certificate"] is None
    assert verify_certificate(simulated(folder)["certificate"]).best == fields["best"]


def test_undecided_is_said_and_told_by_the_exit_code(folder):
    fields = simulated(folder, "--budget", 3, code=1)
    assert fields["status"] == "budget spent"
    assert fields["certificate"] is None
    assert set(fields["surviving"]) == {"a", "b", "c", "d"}


def test_what_is_said_without_a_decision_is_said_once(folder):
    words = ["find", str(folder / "items.csv"), "--simulate", "--budget", "3"]
    said = " ".join(CliRunner().invoke(app, words, catch_exceptions=False).stdout.split())
    assert said.startswith("Not decided; the best guess of 4 items is ")
    assert said.count("not excluded") == 1
    assert said.count("is spent") == 1
    votes = folder / "votes.csv"
    votes.write_text("item_a,item_b,winner\na,b,b\nb,c,a\nc,d,b\n")
    words = ["find", str(folder / "items.csv"), "--answers", str(votes)]
    said = " ".join(CliRunner().invoke(app, words, catch_exceptions=False).stdout.split())
    assert said.startswith("Not decided (votes ran out); the best guess of 4 items is ")


def test_a_long_search_without_a_terminal_says_how_far_it_is(tmp_path):
    """Equal items are never decided: whoever waits for a log sees that, and how to end it."""
    (tmp_path / "items.csv").write_text("item\na\nb\nc\n")
    (tmp_path / "truth.csv").write_text("feature,theta\na,0\nb,0\nc,0\n")
    words = ["find", str(tmp_path / "items.csv"), "--simulate", "--theta", str(tmp_path / "truth.csv")]
    shown = CliRunner().invoke(app, [*words, "--budget", "2500", "--json"])
    lines = [line for line in shown.stderr.splitlines() if " leads, " in line]
    assert [line.split(" answers in ")[0] for line in lines] == ["1,000", "2,000"]
    assert all(
        line.endswith("of 3 items are not excluded. Ctrl-C ends the search with this best guess.") for line in lines
    )
    short = CliRunner().invoke(app, [*words, "--budget", "900", "--json"])
    assert " leads, " not in short.stderr


def test_a_judge_who_prefers_the_place_is_seen_through(folder):
    prefers_the_first = JUDGE.replace('> score[question["second"]]', '+ 4 > score[question["second"]]')
    (folder / "judge.py").write_text(prefers_the_first.replace("gauss(0, .3)", "gauss(0, 2)"))
    log = folder / "log.jsonl"
    judge = f"{sys.executable} {folder / 'judge.py'} 7"
    fields = found(folder / "items.csv", "--judge", judge, "--position", "--state", log)
    assert (fields["best"], fields["status"]) == ("b", "certain")
    assert not any(check["alarm"] for check in fields["checks"])
    session = Session.resume(log)
    assert session.problem.position
    shown = Counter((question.first, question.second) for question in session.questions.values())
    assert {pair[::-1] for pair in shown} & set(shown)  # the same pair either way round
    assert simulated(folder, "--position")["best"] == "b"


def test_a_position_needs_pairs_whose_order_is_chosen(folder, capsys, monkeypatch):
    items = folder / "items.csv"
    assert "kind pairs, got both" in refused(capsys, monkeypatch, items, "--simulate", "--position", "--kind", "both")
    assert "recorded votes" in refused(capsys, monkeypatch, items, "--position", "--answers", folder / "votes.csv")


def test_a_program_answers_one_question_a_line(folder):
    fields = found(folder / "items.csv", "--judge", f"{sys.executable} {folder / 'judge.py'} 7")
    assert fields["best"] == "b"
    assert fields["spent"] == fields["questions"] / 2


def test_several_judges_at_once_and_yes_no_questions(folder):
    log = folder / "log.jsonl"
    judge = f"{sys.executable} {folder / 'judge.py'} 7"
    fields = found(folder / "items.csv", "--judge", judge, "--judges", 3, "--kind", "both", "--state", log)
    assert fields["best"] == "b"
    judges = Counter(event.get("judge") for event in Session.resume(log).log if event["event"] == "answer")
    assert set(judges) == {"1", "2", "3"}


def test_the_cost_stays_under_the_cap(folder):
    judge = f"{sys.executable} {folder / 'judge.py'} 7"
    fields = found(
        folder / "items.csv", "--judge", judge, "--judges", 2, "--cost-per-question", 0.5, "--max-cost", 2.2, code=1
    )
    assert fields["status"] == "cost cap reached"
    assert fields["spent"] == 2.0


def test_the_cost_counts_what_was_answered_before_a_resume(folder):
    judge, log = f"{sys.executable} {folder / 'judge.py'} 7", folder / "log.jsonl"  # every answer says that it cost 0.5
    paid = ("--judge", judge, "--state", log, "--cost-per-question", 0.2)
    before = found(folder / "items.csv", *paid, "--max-cost", 1.6, code=1)
    assert (before["questions"], before["spent"]) == (3, 1.5)
    again = found(folder / "items.csv", *paid, "--max-cost", 2.6, code=1)
    assert (again["questions"], again["spent"]) == (5, 2.5)


def test_a_price_counts_answers_that_were_logged_without_one():
    session = Session(Problem.from_pairs({"a": [0.0], "b": [1.0]}))
    session.tell(session.ask()[0].id, 1)
    session.tie(session.ask()[0].id)
    session.tell(session.ask()[0].id, 0, cost=3.0)
    assert (
        AskLoop(session, FunctionJudge(ReproducibleJudge(World("", session.problem, np.ones(1)), 0)), price=0.5).spent
        == 4.0
    )


@pytest.mark.parametrize(
    ("body", "seconds", "sentence"),
    [
        ("import sys; sys.exit('no key')", 60, "ended with code 1: no key"),
        ("print('hello', flush=True); input()", 60, "'hello', which is not JSON"),
        ("""print('{"answer": "maybe"}', flush=True); input()""", 60, 'answered {"answer": "maybe"}'),
        ("import time; time.sleep(600)", 0.3, "no answer to question 1 within 0.3 seconds"),
    ],
)
def test_judges_that_fail_are_retried_and_named(folder, body, seconds, sentence):
    (folder / "bad.py").write_text(body)
    judge = f"{sys.executable} {folder / 'bad.py'}"
    fields = found(folder / "items.csv", "--judge", judge, "--retries", 0, "--timeout", seconds, code=1)
    assert fields["status"] == "judges failed"
    assert fields["questions"] == 0
    assert len(fields["troubles"]) == fields["skips"] == 3
    assert sentence in fields["troubles"][0]


def test_a_judge_that_fails_now_and_then_is_started_anew(folder):
    (folder / "judge.py").write_text(
        JUDGE.replace("    print(", "    if random.random() < .2: sys.exit(3)\n    print(")
    )
    script = folder / "seeded.py"  # every process fails at another place
    script.write_text("import os, sys\nsys.argv = ['', str(os.getpid())]\n" + (folder / "judge.py").read_text())
    fields = found(folder / "items.csv", "--judge", f"{sys.executable} {script}", "--retries", 8)
    assert fields["best"] == "b"
    assert not fields["troubles"]


def test_a_search_goes_on_where_it_was_stopped(folder):
    log = folder / "deep" / "log.jsonl"
    whole = simulated(folder, "--seed", 4, "--state", folder / "whole.jsonl")
    lines = (folder / "whole.jsonl").read_text().splitlines()
    log.parent.mkdir()
    log.write_text("\n".join(lines[: len(lines) // 2]) + "\n" + lines[len(lines) // 2][:20])  # as a crash leaves it
    resumed = simulated(folder, "--seed", 4, "--state", log)
    assert log.read_text().splitlines() == lines
    assert {**resumed, "seconds": 0, "command": ""} == {**whole, "seconds": 0, "command": ""}
    assert simulated(folder, "--seed", 4, "--state", log)["questions"] == whole["questions"]  # finished stays finished


def test_interrupted_by_the_user_it_keeps_what_was_answered(folder):
    log = folder / "log.jsonl"
    (folder / "slow.py").write_text(JUDGE.replace("    print(", "    import time; time.sleep(.5)\n    print("))
    command = f"{sys.executable} {folder / 'slow.py'} 7"
    words = [sys.executable, "-c", "from surepick.cli import main; main()", "find", str(folder / "items.csv")]
    process = subprocess.Popen([*words, "--judge", command, "--state", str(log)], stdout=subprocess.PIPE, text=True)
    while not log.exists() or log.read_text().count('"event": "answer"') < 3:
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    shown, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "interrupted" in shown
    assert "run the same command to continue" in " ".join(shown.split())
    kept = Session.resume(log).answered
    fields = found(folder / "items.csv", "--judge", command.replace("slow.py", "judge.py"), "--state", log)
    assert fields["best"] == "b"
    assert fields["questions"] >= kept >= 3


def test_another_search_does_not_go_on_with_a_log(folder, capsys, monkeypatch):
    log = folder / "log.jsonl"
    simulated(folder, "--state", log)
    base = (folder / "items.csv", "--simulate", "--state", log)
    assert "its seed differ" in refused(capsys, monkeypatch, *base, "--seed", 1)
    assert "its policy, delta" in refused(capsys, monkeypatch, *base, "--delta", 0.1)
    assert "its items or questions" in refused(capsys, monkeypatch, *base, "--kind", "items")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "exactly one of --judge"),
        (["--simulate", "--judge", "x"], "exactly one of --judge"),
        (["--judge", "no-such-program-anywhere"], "cannot be started"),
        (["--judge", "'unclosed"], "is not a valid command line"),
        (["--simulate", "--delta", "2"], "delta"),
        (["--simulate", "--policy", "best"], "no policy 'best'"),
        (["--simulate", "--pca", "7"], "--pca must be from 1 to 2"),
        (["--answers", "nowhere.csv"], "no file"),
    ],
)
def test_unusable_requests_are_refused_in_a_sentence(folder, capsys, monkeypatch, words, sentence):
    assert sentence in refused(capsys, monkeypatch, folder / "items.csv", *words)


VOTES = """item_a,item_b,winner,judge
a,b,b,1
a,b,maybe,1
b,c,a,1
b,x,a,1
c,c,a,1
a,b,tie,2
c,d,skip,2
a,b
d,b,b,2
"""


@pytest.mark.parametrize("order", ["policy", "file"])
def test_recorded_votes_run_out_and_rows_are_named(folder, order):
    (folder / "votes.csv").write_text(VOTES)
    fields = found(folder / "items.csv", "--answers", folder / "votes.csv", "--order", order, "--drop-bad-rows", code=1)
    assert fields["status"] == "votes ran out"
    assert (fields["questions"], fields["ties"], fields["skips"], fields["remaining"]) == (4, 1, 1, 0)
    lines = sorted(int(sentence.split("line ")[1].split(":")[0]) for sentence in fields["left_out"])
    assert lines == [3, 5, 6, 9]


def many_votes(rng: np.random.Generator, count: int) -> str:
    score = {"a": 0.0, "b": 3.0, "c": -2.0, "d": 1.0}
    lines = ["item_a,item_b,winner"]
    for _ in range(count):
        first, second = rng.choice(list(score), 2, replace=False)
        wins = rng.random() < 1 / (1 + np.exp(score[second] - score[first]))
        lines.append(f"{first},{second},{'a' if wins else 'b'}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("order", ["policy", "file"])
def test_enough_recorded_votes_decide_and_prove(folder, rng, order):
    (folder / "votes.csv").write_text(many_votes(rng, 400))
    log = folder / "log.jsonl"
    words = (folder / "items.csv", "--answers", folder / "votes.csv", "--order", order)
    fields = found(*words, "--state", log)
    assert (fields["best"], fields["status"]) == ("b", "certain")
    assert fields["questions"] + fields["remaining"] == 400
    assert verify_certificate(fields["certificate"]).best == "b"
    lines = log.read_text().splitlines()
    log.write_text("\n".join(lines[: len(lines) // 3]) + "\n")
    assert found(*words, "--state", log)["questions"] == fields["questions"]
    assert log.read_text().splitlines() == lines


def test_votes_in_the_order_of_the_file_are_stages_of_one(folder, rng):
    """The next recorded question may depend on a vote, so no stage may hold both."""
    (folder / "votes.csv").write_text(many_votes(rng, 150))
    log = folder / "log.jsonl"
    words = (folder / "items.csv", "--answers", folder / "votes.csv", "--delta", "1e-9", "--state", log)
    fields = found(*words, "--order", "file", code=1)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    stages = [event for event in events if event["event"] == "stage"]
    assert len(stages) == 150
    assert all(event["pulls"] == [1] for event in stages)
    assert any("order in which they were asked" in sentence for sentence in fields["assumptions"])


@pytest.mark.parametrize(
    ("words", "votes", "condition"),
    [
        (("--policy", "anytime", "--budget", 20), 20, "order in which they were asked"),
        (("--assume", "winner", "--budget", 20), 20, "order in which they were asked"),
        (("--policy", "anytime", "--budget", 20, "--order", "policy"), 20, "fixed before the votes"),
        (("--policy", "anytime", "--delta", 1e-300), 2_001, "fixed before the votes"),
        (("--policy", "uniform", "--budget", 400), 300, "fixed before the votes"),
    ],
)
def test_a_verdict_names_the_condition_of_the_order_used(folder, rng, words, votes, condition):
    (folder / "votes.csv").write_text(many_votes(rng, votes))
    fields = found(folder / "items.csv", "--answers", folder / "votes.csv", *words, code=1)
    assert any(condition in sentence for sentence in fields["assumptions"])


@pytest.mark.parametrize("words", [("--assume", "winner"), ("--no-features",)])
def test_items_without_votes_are_left_out_with_a_sentence(folder, rng, words):
    votes = [line for line in many_votes(rng, 700).splitlines() if "a," not in line[:4] or line.startswith("item")]
    assert not any("a" in line.split(",")[:2] for line in votes[1:])
    (folder / "votes.csv").write_text("\n".join(votes) + "\n")
    fields = found(folder / "items.csv", "--answers", folder / "votes.csv", *words)
    assert (fields["best"], fields["status"]) == ("b", "certain")
    assert "a" not in [rival["item"] for rival in fields["rivals"]]
    assert any("no vote on 'a'" in sentence for sentence in fields["left_out"])


def test_the_outcome_counts_the_votes(folder):
    (folder / "votes.csv").write_text(VOTES)
    words = ["find", str(folder / "items.csv"), "--answers", str(folder / "votes.csv"), "--drop-bad-rows"]
    result = CliRunner().invoke(app, words)
    assert "5 votes, 4 counted, 1 of them a tie: 1 skip; " in " ".join(result.output.split())


def test_votes_that_count_are_not_a_warm_start(folder, rng, capsys, monkeypatch):
    (folder / "votes.csv").write_text(many_votes(rng, 50))
    (folder / "copy.csv").write_bytes((folder / "votes.csv").read_bytes())
    (folder / "link.csv").symlink_to(folder / "votes.csv")
    for name in ("votes.csv", "copy.csv", "link.csv"):
        words = (folder / "items.csv", "--answers", folder / "votes.csv", "--warm-start", folder / name)
        assert "hold the same votes" in refused(capsys, monkeypatch, *words)


def test_earlier_people_predict_where_the_claim_needs_no_population(folder, rng, capsys, monkeypatch):
    lines = many_votes(rng, 240).splitlines()
    names = [lines[0] + ",judge", *(f"{line},p{number % 6}" for number, line in enumerate(lines[1:]))]
    (folder / "people.csv").write_text("\n".join(names) + "\n")
    known = ("--population", folder / "people.csv")
    log = folder / "log.jsonl"
    fields = simulated(folder, "--assume", "winner", *known, "--state", log)
    assert fields["best"] == "b"
    assert verify_certificate(fields["certificate"]).answers == fields["questions"]
    assert simulated(folder, "--assume", "winner", *known, "--state", log)["questions"] == fields["questions"]
    words = (folder / "items.csv", "--simulate", *known, "--assume", "features")
    assert "the policy exclusion does not use it" in refused(capsys, monkeypatch, *words)
    words = (folder / "items.csv", "--answers", folder / "people.csv", *known)
    assert "--population and --answers hold the same votes" in refused(capsys, monkeypatch, *words)


def test_checks_see_the_votes_as_people_saw_them(folder, rng):
    lines = ["item_a,item_b,winner,judge"]
    pairs = [rng.choice(["a", "b", "c", "d"], 2, replace=False) for _ in range(300)]
    left_sided = [
        f"{one},{other},{'a' if rng.random() < 0.8 else 'b'},{row % 5}" for row, (one, other) in enumerate(pairs)
    ]
    (folder / "votes.csv").write_text("\n".join([*lines, *left_sided]) + "\n")
    checks = found(folder / "items.csv", "--answers", folder / "votes.csv", code=1)["checks"]
    assert "position" in [check["name"] for check in checks if check["alarm"]]


def test_votes_in_the_policys_order_take_fewer(folder, rng):
    asked = {"policy": 0, "file": 0}
    for _ in range(6):
        (folder / "votes.csv").write_text(many_votes(rng, 400))
        for order in asked:
            claim = ("--assume", "features")
            fields = found(folder / "items.csv", "--answers", folder / "votes.csv", "--order", order, *claim)
            asked[order] += fields["questions"]
    assert asked["policy"] < asked["file"]


def test_other_policies_take_votes_or_say_that_they_cannot(folder, rng, capsys, monkeypatch):
    (folder / "votes.csv").write_text(many_votes(rng, 300))
    base = (folder / "items.csv", "--answers", folder / "votes.csv", "--policy", "uniform")
    assert found(*base, "--budget", 400, code=1)["status"] in ("budget spent", "votes ran out")
    assert "needs the policy anytime" in refused(capsys, monkeypatch, *base, "--order", "file")


def test_old_votes_help_to_predict_and_prove_nothing(folder, rng, capsys, monkeypatch):
    (folder / "old.csv").write_text(many_votes(rng, 300))
    (folder / "wrong.csv").write_text(
        many_votes(rng, 40).replace(",a\n", ",x\n").replace(",b\n", ",a\n").replace(",x\n", ",b\n")
    )
    old, wrong = ("--warm-start", folder / "old.csv"), ("--warm-start", folder / "wrong.csv")
    log = folder / "log.jsonl"
    plain, warm = (
        [simulated(folder, "--assume", "features", *more, "--seed", seed) for seed in range(3)] for more in ((), old)
    )
    assert all(fields["best"] == "b" for fields in (*plain, *warm, simulated(folder, *wrong)))
    assert sum(fields["questions"] for fields in warm) < sum(fields["questions"] for fields in plain)
    assert verify_certificate(warm[0]["certificate"]).answers == warm[0]["questions"]
    assert simulated(folder, *old, "--budget", 1, code=1)["evidence"] < 2  # 300 old votes are no evidence
    simulated(folder, *old, "--state", log)
    assert simulated(folder, *old, "--state", log)["best"] == "b"
    again = (folder / "items.csv", "--simulate", "--theta", folder / "theta.csv")
    assert "old votes differ" in refused(capsys, monkeypatch, *again, "--state", log)
    assert "needs the policy winner, anytime or exclusion" in refused(
        capsys, monkeypatch, *again, *old, "--policy", "uniform"
    )


def test_yes_and_no_votes(folder, rng):
    score = {"a": -1.0, "b": 3.0, "c": -2.0, "d": 0.0}
    lines = ["item,answer"]
    for _ in range(600):
        item = rng.choice(list(score))
        lines.append(f"{item},{'yes' if rng.random() < 1 / (1 + np.exp(-score[item])) else 'no'}")
    (folder / "votes.csv").write_text("\n".join([*lines, "b,perhaps", "b,skip"]) + "\n")
    fields = found(folder / "items.csv", "--answers", folder / "votes.csv", "--drop-bad-rows")
    assert fields["best"] == "b"
    assert len(fields["left_out"]) == 1


def test_the_report_is_one_escaped_file_with_pictures(folder):
    page = folder / "out" / "report.html"
    simulated(folder, "--report", page, "--compare")
    text = page.read_text()
    assert text.count("<svg") == 3
    assert "<b>A</b>" not in text
    assert "Wrong in at most 1 of 20 such searches, if one item wins each of its comparisons" in text
    for word in (
        "How it went",
        "Where all items stand",
        "What was asked about",
        "Assumptions and checks",
        "Data preparation",
        "How to repeat this",
    ):
        assert word in text
    assert "http" not in text.replace("http://www.w3.org", "").replace("https://matplotlib.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")


class TestAssume:
    def test_the_assumption_chooses_the_policy(self, folder):
        assert simulated(folder, "--assume", "winner")["policy"] == "winner"
        assert simulated(folder, "--assume", "features")["policy"] == "exclusion"

    def test_what_the_assumption_does_not_allow_is_refused(self, folder, capsys, monkeypatch):
        given = (folder / "items.csv", "--simulate", "--theta", folder / "theta.csv", "--assume", "winner")
        assert "cannot go with --policy rage-glm" in refused(capsys, monkeypatch, *given, "--policy", "rage-glm")
        for words in (("--kind", "items"), ("--position",)):
            assert "compare two items" in refused(capsys, monkeypatch, *given, *words)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_listed_can_be_run(folder, policy):
    needs = {
        "anytime": (),
        "exclusion": (),
        "winner": (),
        "posterior": (),
        "rage-linear": (),
        "rage-glm-2": ("--norm-bound", 2),
    }.get(policy, ("--kappa", 0.05))
    if policy == "rage-glm-printed":
        needs = (*needs, "--elimination", "gap")
    unfinished = policy in ("rage-glm-printed", "rage-glm-2", "gl-gape")  # they take tens of thousands, or more
    words = ("--policy", policy, "--delta", 0.3, "--budget", 8000, *needs)
    fields = simulated(folder, *words, code=1 if unfinished else 0)
    assert fields["policy"] == policy.removesuffix("-halving")
    assert fields["best"] == "b"
    assert fields["questions"] > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--kappa", "0.1"], "winner does not use kappa: it is an option of rage-glm,"),
        (["--policy", "rage-linear", "--norm-bound", "2"], "rage-linear does not use norm_bound: it is an option of"),
        (
            ["--policy", "rage-glm", "--elimination", "gap"],
            "rage-glm does not use elimination: it is an option of rage-glm-printed. rage-glm takes delta,",
        ),
        (["--policy", "passive-printed"], "passive-printed needs kappa"),
    ],
)
def test_options_of_other_policies_are_refused(folder, capsys, monkeypatch, words, sentence):
    assert sentence in refused(capsys, monkeypatch, folder / "items.csv", "--simulate", *words)


def test_what_a_certificate_does_not_prove_is_said_wherever_it_is_offered(folder):
    file, page = folder / "proof" / "certificate.json", folder / "report.html"
    words = [
        "find",
        str(folder / "items.csv"),
        "--simulate",
        "--theta",
        str(folder / "theta.csv"),
        "--certificate",
        str(file),
    ]
    shown = CliRunner().invoke(app, [*words, "--report", str(page)], catch_exceptions=False)
    assert ARITHMETIC_ONLY in shown.stderr
    assert ARITHMETIC_ONLY in page.read_text()
    checked = CliRunner().invoke(app, ["verify-certificate", str(file)], catch_exceptions=False)
    assert checked.output.startswith("Valid: b is the best")
    assert ARITHMETIC_ONLY in checked.output
    again = CliRunner().invoke(app, ["verify-certificate", str(file), "--json"], catch_exceptions=False)
    assert json.loads(again.stdout)["limits"] == ARITHMETIC_ONLY
    file.unlink()
    undecided = CliRunner().invoke(app, [*words, "--budget", "3"], catch_exceptions=False)
    assert "was not written: only a search that proved its claim has a certificate" in undecided.stderr
    assert not file.exists()


def test_a_simulated_truth_is_drawn_before_the_features_are_reduced(tmp_path, rng):
    rows = rng.normal(size=(12, 6))
    header = "item," + ",".join(f"x{i}" for i in range(6))
    lines = [f"i{number}," + ",".join(map(str, row)) for number, row in enumerate(rows)]
    (tmp_path / "wide.csv").write_text("\n".join([header, *lines]) + "\n")
    words = (tmp_path / "wide.csv", "--simulate", "--budget", 1)
    truths = [found(*words, *more, code=1) for more in ((), ("--pca", 1), ("--pca", 5))]
    assert len({fields["truth"] for fields in truths}) == 1
    assert truths[0]["prepare"]["variance_kept"] is None
    assert truths[1]["prepare"]["variance_kept"] < truths[2]["prepare"]["variance_kept"] < 1
