"""What dashboard and result page say once the judges have answered all that could decide."""

from collections.abc import Iterator
from typing import Any

import pytest

from in_process_service import TOKEN, InProcessService
from surepick.service.dashboard_worker import update_forecasts, update_insights

SHOES = ("Clog", "Sandal", "Court shoe", "Trail runner", "Road runner", "Boot")
"""Liked in this order."""

TEAM = ("Ann", "Ben", "Cleo")


@pytest.fixture
def service(database_url: str) -> Iterator[InProcessService]:
    made = InProcessService(database_url, rate=1e6)  # judges here answer faster than people do
    yield made
    made.close()


def begin(service: InProcessService, items: list[dict[str, Any]], **fields: Any) -> str:
    return service.begin(policy=None, repeats="once", items=items, **fields)


def shoes() -> list[dict[str, Any]]:
    return [{"name": name.lower(), "label": name} for name in SHOES]


def sizes() -> list[dict[str, Any]]:
    """Items whose one feature tells which is liked more."""
    return [{"name": f"size {place}", "label": f"Size {place}", "features": [place]} for place in range(12)]


def answer_as_all(service: InProcessService, study: str, liking: dict[str, float]) -> None:
    """Three judges who never err answer everything that helps, in turns."""
    judges = [service.judge(study, name) for name in TEAM]
    while True:
        for judge in judges:
            judge.lease()
            service.planner.round()
        held = [(judge, asked) for judge in judges if (asked := judge.lease()["questions"])]
        if not held:
            return
        for judge, asked in held:
            judge.answer(asked[0]["id"], max("ab", key=lambda side: liking[asked[0][side]["name"]]))
        service.planner.round()


def refreshed(service: InProcessService, study: str) -> Any:
    """The study after its insight and forecast were computed, as they are when nobody looks."""
    service.now += 2
    while update_insights(service.parts.database):
        service.now += 2
    update_forecasts(service.parts.database)
    return service.get(f"/studies/{study}")


def test_three_judges_prove_a_short_list_and_see_that_nothing_is_left(service: InProcessService) -> None:
    study = begin(service, shoes())
    answer_as_all(service, study, {name.lower(): -place for place, name in enumerate(SHOES)})
    found = refreshed(service, study)
    assert found["nothing_left"]
    assert found["insight"]["answers"] == found["answers"]  # without anybody having looked
    left = [label for label in SHOES if label.lower() in found["verdict"]["surviving"]]
    assert 1 < len(left) < len(SHOES)  # 2 to the power of 3 is less than 20
    assert found["headline"] == f"The best is {', '.join(left[:-1])} or {left[-1]}; the best guess is Clog"
    everybody, proved, guess = found["explained"]
    assert everybody == "All 3 judges have answered every question that could decide it; it takes further judges."
    assert proved.startswith("Wrong in at most 1 of 20 such searches, if one item wins each of its comparisons")
    assert "the leader is the best of them with probability about" in guess
    cookie = service.client.post("/login", json={"token": TOKEN}).headers["set-cookie"].split(";")[0]
    sheet = service.client.get(f"/study/{study}/result", headers={"Cookie": cookie}).text
    for sentence in (found["headline"], *found["explained"], found["judges_needed"]["sentence"]):
        assert sentence in sheet
    # Somebody who comes later is asked, and the study goes on.
    late = service.judge(study, "Dora")
    late.lease()
    service.planner.round()
    assert late.lease()["questions"]
    assert not service.get(f"/studies/{study}")["nothing_left"]
    assert service.get(f"/studies/{study}")["headline"] == "Not decided yet; Clog leads"


def test_a_claim_that_is_reached_before_the_other_is_in_the_headline(service: InProcessService) -> None:
    study = begin(service, sizes())
    answer_as_all(service, study, {f"size {place}": place for place in range(12)})
    found = refreshed(service, study)
    assert found["verdict"]["status"] == "open"
    start, rest = "If the features explain every answer: Size 11, proved. Without that: Size 11", " or Size 9."
    assert found["headline"].startswith(start)
    assert found["headline"].endswith(rest)
    assert (
        "Size 11 is the best: wrong in at most 1 of 20 such searches, if the features explain every answer"
        in " ".join(found["explained"])
    )


def test_a_claim_that_the_answers_contradict_is_not_in_the_headline(service: InProcessService) -> None:
    # The middle is liked best, which no logistic model of the size can say.
    study = begin(service, sizes())
    answer_as_all(service, study, {f"size {place}": -abs(place - 5.2) for place in range(12)})
    found = refreshed(service, study)
    by_claim = {claim["assume"]: claim for claim in found["insight"]["claims"]}
    assert by_claim["features"]["refuted_by"]
    assert not by_claim["features"]["reached"]
    assert "If the features" not in found["headline"]
    assert "Size 5" in found["headline"]


def test_a_study_says_at_its_beginning_what_a_small_team_can_prove(service: InProcessService) -> None:
    study = begin(service, shoes())
    said = refreshed(service, study)["judges_needed"]
    assert "Even then fewer than 5 cannot prove one winner." in said["sentence"]
    assert "A smaller team proves a short list: 3 who agree leave about" in said["sentence"]
    assert "with delta 0.2" in said["fewer"]
    study = begin(service, sizes(), assume="features")
    assert refreshed(service, study)["judges_needed"]["sentence"].startswith("If all agree, about 1 judge is needed")
