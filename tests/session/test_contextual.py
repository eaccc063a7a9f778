"""A session in use: rewards late, out of order, twice or never; exact replay; refusals that change nothing."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import InvalidInput
from surepick.baselines import Greedy, SquareCb
from surepick.baselines.simple import UniformArms
from surepick.contextual import LikelihoodRatioUcb, SupLogistic
from surepick.contextual.history import History
from surepick.registry import NAMES, policy_by_name
from surepick.session import ContextualSession
from surepick.session.contextual import read_decisions


def arms_of(step, rows=4):
    return np.random.default_rng([step, 1]).normal(size=(rows, 3)) / 2


def run(session, steps, *, first=0):
    """Decide and learn at once."""
    for step in range(first, first + steps):
        decision = session.choose(arms_of(step), context_id=f"visit {step}")
        session.learn(decision.id, (step * 7 + decision.index) % 3 == 0)
    return session


def values(state):
    """Everything a state holds, to the last bit, as something that compares."""
    if isinstance(state, History):
        return state.rows.tobytes(), state.answers.tobytes()
    if isinstance(state, np.ndarray):
        return state.tobytes()
    return tuple(values(each) for each in state) if isinstance(state, tuple) else state


def snapshot(session):
    return values(session.state), session.decisions, session.learnt, session.waiting, session.features


@pytest.mark.parametrize("name", NAMES)
def test_replay_gives_the_same_choices_and_goes_on_the_same(name, tmp_path):
    policy = policy_by_name(name, horizon=200, arms=4, norm_bound=3.0)
    path = tmp_path / "log.jsonl"
    with ContextualSession(policy, dimension=3, seed=5, path=path) as live:
        run(live, 60)
    replayed = ContextualSession.replay(path)
    assert snapshot(replayed) == snapshot(live)
    with ContextualSession.resume(path) as resumed:
        run(resumed, 15, first=60)
    straight = run(ContextualSession(policy, dimension=3, seed=5), 75)
    assert snapshot(resumed) == snapshot(straight)
    assert snapshot(ContextualSession.replay(path)) == snapshot(straight)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.data())
def test_rewards_in_any_order_with_repetitions_and_gaps(data):
    """Duplicates change nothing, gaps wait, and the state is that of learning in the order of arrival."""
    session = ContextualSession(Greedy(), dimension=3, seed=1)
    told, order = {}, []
    for step in range(12):
        session.choose(arms_of(step))
        for _ in range(data.draw(st.integers(0, 2))):
            number = data.draw(st.integers(0, step))
            fresh = number not in told
            assert session.learn(number, number % 2) is fresh
            if fresh:
                order.append(number)
            told[number] = number % 2
    assert session.learnt == len(told)
    assert session.waiting == tuple(n for n in range(12) if n not in told)
    assert session.state.history.answers.tolist() == [told[number] for number in order]


def test_order_of_decisions_waits_for_earlier_rewards():
    session = ContextualSession(Greedy(), dimension=3, order="decision")
    for step in range(5):
        session.choose(arms_of(step))
    session.learn(2, 1)
    session.learn(1, 0)
    assert session.learnt == 0
    session.forget(0)
    assert session.learnt == 2
    session.learn(4, 1)
    assert (session.learnt, session.waiting) == (2, (3,))
    session.learn(3, 0)
    assert session.state.history.answers.tolist() == [0, 1, 0, 1]
    assert session.waiting == ()


def test_order_of_decisions_does_not_depend_on_the_order_of_arrival(tmp_path):
    states = []
    for shuffle in range(3):
        path = tmp_path / f"{shuffle}.jsonl"
        policy = SupLogistic(300, alpha=1.0)
        with ContextualSession(policy, dimension=3, order="decision", seed=3, path=path) as session:
            chosen = [session.choose(arms_of(step)) for step in range(40)]
            for number in np.random.default_rng(shuffle).permutation(40):
                session.learn(int(number), chosen[number].index % 2)
        states.append(values(session.state))
        assert values(ContextualSession.replay(path).state) == states[-1]
    assert len(set(states)) == 1


def test_refused_calls_change_nothing(tmp_path):
    path = tmp_path / "log.jsonl"
    session = run(ContextualSession(LikelihoodRatioUcb(), dimension=3, seed=2, path=path), 20)
    open_decision = session.choose(arms_of(20))
    before, log = snapshot(session), path.read_bytes()
    for call, message in [
        (lambda: session.learn(99, 1), "There is no decision 99; ids 0 to 20 were given out."),
        (lambda: session.learn(-1, 1), "There is no decision -1"),
        (lambda: session.learn("first", 1), "decision_id must be a whole number as given by choose, got 'first'"),
        (lambda: session.learn(open_decision.id, 0.5), "reward must be 0 or 1, got 0.5"),
        (lambda: session.learn(3, 1 - read_decisions(path)[3].reward), "a reward cannot be changed"),
        (lambda: session.forget(99), "There is no decision 99"),
        (lambda: session.choose(np.zeros((0, 3))), "arms is empty"),
        (lambda: session.choose(np.zeros((2, 4))), "arms must have 3 columns as at the start, got 4"),
        (lambda: session.choose([[1.0, np.nan, 0.0]]), "got nan at row 0, column 1"),
        (lambda: ContextualSession(Greedy(), dimension=3, path=path), "exists; ContextualSession.resume goes on"),
        (
            lambda: ContextualSession(Greedy(), dimension=3, seed=-1),
            "seed must be a whole number of at least 0, got -1",
        ),
        (lambda: ContextualSession(Greedy(), dimension=3, order="late"), "order must be one of"),
        (lambda: ContextualSession.replay(tmp_path / "none.jsonl"), "There is no log"),
    ]:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            call()
        assert snapshot(session) == before
        assert path.read_bytes() == log
    session.close()
    empty = ContextualSession(Greedy(), dimension=3)
    with pytest.raises(InvalidInput, match="none was given out yet"):
        empty.learn(0, 1)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_data_frames_are_matched_by_column_name(library, tmp_path):
    path = tmp_path / "log.jsonl"
    session = ContextualSession(Greedy(), dimension=3, path=path)
    frame = library.DataFrame(dict(zip(("price", "age", "size"), arms_of(0).T, strict=True)))
    session.choose(frame)
    assert session.features == ("price", "age", "size")
    again = session.choose(frame[["size", "price", "age"]][:2])
    assert np.array_equal(read_decisions(path)[again.id].arms, arms_of(0)[:2])
    with pytest.raises(InvalidInput, match="must have the columns price, age, size, got price, age"):
        session.choose(frame[["price", "age"]])
    with pytest.raises(InvalidInput, match="arms must hold numbers only"):
        session.choose(library.DataFrame({"price": ["dear"], "age": [1.0], "size": [2.0]}))
    assert session.decisions == 2
    session.close()
    assert ContextualSession.replay(path).features == session.features


def test_the_callers_array_may_change_after_choosing():
    session = ContextualSession(Greedy(), dimension=3)
    arms = arms_of(0)
    decision = session.choose(arms)
    expected = arms[decision.index].copy()
    arms[:] = 0.0
    session.learn(decision.id, 1)
    assert np.array_equal(session.state.history.rows[0], expected)


def test_a_torn_last_line_is_dropped_and_a_changed_log_is_noticed(tmp_path):
    path = tmp_path / "log.jsonl"
    run(ContextualSession(SquareCb(), dimension=3, seed=4, path=path), 30).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with ContextualSession.resume(path) as session:
        assert session.waiting == (29,)
        session.learn(29, 1)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("decision") == 5 and line["event"] == "learn":
            line["reward"] = 1 - line["reward"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InvalidInput, match=r"Replay of decision \d+ gives .* the log has"):
        ContextualSession.replay(path)
    assert ContextualSession.replay(path, check=False).learnt == 30
    for damaged in ({"event": "learn", "decision": 77, "reward": 1}, {"event": "choose", "decision": 30}, {}):
        path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, damaged]))
        with pytest.raises(
            InvalidInput, match=r"a line that does not follow from those before it .*; restore the log\."
        ):
            ContextualSession.replay(path, check=False)
    for line, complaint in (("not json", "is not JSON"), ("[]", "is not an event")):
        path.write_text(f"{line}\n")
        with pytest.raises(InvalidInput, match=f"log.jsonl: Line 1 of the log {complaint}.*Restore the log"):
            ContextualSession.replay(path)
    path.write_text("{}\n")
    with pytest.raises(InvalidInput, match="is not the log of a contextual session"):
        ContextualSession.replay(path)


@pytest.mark.parametrize("policy", [UniformArms(), SquareCb(sharpness=0.3)], ids=lambda p: p.name)
def test_logs_serve_off_policy_evaluation(policy, tmp_path):
    """Inverse propensity weighting estimates the value of always choosing the last arm: within five standard errors."""
    path = tmp_path / "log.jsonl"
    rng, theta = np.random.default_rng(1), np.array([0.5, -0.4, 0.3])
    with ContextualSession(policy, dimension=3, seed=1, path=path) as session:
        for step in range(1500):
            arms = arms_of(step)
            decision = session.choose(arms, context_id=step)
            session.learn(decision.id, rng.random() < 1 / (1 + np.exp(-arms[decision.index] @ theta)))
    logged = read_decisions(path)
    last = 3
    terms = np.array([(one.index == last) / one.propensity * one.reward for one in logged])
    truth = np.mean([1 / (1 + np.exp(-one.arms[last] @ theta)) for one in logged])
    assert abs(terms.mean() - truth) <= 5 * terms.std() / np.sqrt(len(terms))
    assert all(one.context_id == one.id for one in logged)
