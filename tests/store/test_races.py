"""A short form of `make race-test`: judges send contradicting requests at once, over workers whose clocks differ."""

import pytest

from running_service import PATIENCE
from service_races import race


@pytest.mark.parametrize("skew", [0.0, 10.0])
def test_nothing_gets_stuck_lost_or_deadlocked(database_url: str, skew: float) -> None:
    found = race(database_url, requests=3000, seconds=PATIENCE, judges=20, workers=4, skew=skew, seed=int(skew))
    assert found["wrong"] == []
    assert found["quarantined"] == 0
    assert found["deadlocks"] == 0
    assert found["acknowledged"] > 5
    assert found["counts"]["undo"] > 0
