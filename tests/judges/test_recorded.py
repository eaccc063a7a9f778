"""Searches on recorded votes."""

import random
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pytest

from surepick import Anytime, Passive, Session, Winner
from surepick.io.items import read_items
from surepick.judges import RecordedJudge, only_recorded
from surepick.judges.recorded_orders import RecordedOrders, only_recorded_orders

QUALITY = {"x": 0.0, "y": 0.2, "z": 0.4}


def votes(folder: Path, number: int) -> RecordedJudge:
    chance = random.Random(3)
    lines = []
    for _ in range(number):
        first, second = chance.sample(sorted(QUALITY), 2)
        ahead = QUALITY[first] - QUALITY[second]
        lines.append(f"{first},{second},{'a' if chance.random() < 0.5 + ahead / 4 else 'b'}")
    (folder / "items.csv").write_text("item,size,weight\nx,1,0\ny,2,1\nz,4,-1\n")
    (folder / "votes.csv").write_text("\n".join(["item_a,item_b,winner", *lines]))
    return RecordedJudge.of(folder / "items.csv", folder / "votes.csv", by_features=True)


@pytest.mark.parametrize("asked", [5, 40])
@pytest.mark.parametrize(
    ("policy", "order"),
    [(Winner(), "file"), (Winner(), "policy"), (Anytime(), "file"), (Anytime(), "policy"), (Passive(kappa=0.2), None)],
)
def test_forecasts_go_beyond_the_votes(
    tmp_path: Path, policy: Any, order: Literal["policy", "file"] | None, asked: int
) -> None:
    """Before all votes are used and afterwards, for every claim: a simulated judge answers as often as it is asked."""
    judge = votes(tmp_path, 40)
    session = Session(judge.problem, only_recorded(policy, judge, order), seed=1)
    while session.answered < asked and (questions := session.ask(1)):
        answer = judge(questions[0])
        session.skip(questions[0].id) if answer is None else session.tell(questions[0].id, answer)
    verdict = session.verdict()
    assert verdict.forecast is not None
    assert verdict.forecast.expected > 0
    for claim in verdict.claims:
        assert claim.forecast is not None, claim.assume
        assert claim.forecast.expected > 0


def test_forecasts_go_beyond_recorded_rankings(tmp_path: Path) -> None:
    chance = random.Random(4)
    rows = [chance.sample(sorted(QUALITY), 3) for _ in range(6)]
    (tmp_path / "items.csv").write_text("item,size\nx,1\ny,2\nz,4\n")
    lines = [f"{'|'.join(sorted(row))},{'>'.join(row)}" for row in rows]
    (tmp_path / "votes.csv").write_text("\n".join(["items,ranking", *lines]))
    judge = RecordedOrders.of(read_items(tmp_path / "items.csv"), tmp_path / "votes.csv")
    session = Session(judge.problem, only_recorded_orders(Winner(), judge, None), seed=1)
    for question, reply in islice(judge.replies(lambda: next(iter(session.ask(1)), None)), 3):
        session.tell(question.id, reply.answer)
    for claim in session.verdict().claims:
        assert claim.forecast is not None, claim.assume
        assert claim.forecast.expected > 0
