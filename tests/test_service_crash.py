"""A short form of `make crash-test`: a few kills, so that the way back from each is taken in every test run."""

from pathlib import Path

from service_crash import crash


def test_no_acknowledged_answer_is_lost_when_processes_are_killed(database_url: str, tmp_path: Path) -> None:
    found = crash(database_url, kills=4, judges=10, workers=1, seed=3, folder=tmp_path)
    assert found["wrong"] == []
    assert found["acknowledged"] > 0
