"""The log of a contextual session: JSON lines, one an event, usable for replay and for off-policy evaluation.

First line: {"event": "start", "format", "policy", "configuration", "dimension", "seed", "order"}; then
{"event": "choose", "decision", "context", "arms", "index", "propensity", "bucket"}, and "features" once arms are named,
{"event": "learn", "decision", "reward"} and {"event": "forget", "decision"}. Numbers survive to the last bit.
"""

import dataclasses
import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any, cast

import numpy as np

from surepick._arrays import Floats
from surepick.contextual.policy import AnyPolicy, Choice
from surepick.errors import InvalidInput
from surepick.registry import CLASSES

FORMAT = 1
"""Version of the format; files of another one are refused."""


@dataclasses.dataclass(frozen=True)
class LoggedDecision:
    """One decision as off-policy evaluation wants it."""

    id: int
    context_id: Any
    arms: Floats
    index: int
    propensity: float
    reward: float | None
    """None as long as it is not told."""


class Writer:
    """Appends lines to a file; each is handed to the operating system before the call returns."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            _drop_torn_line(path)
        self._file = path.open("a", encoding="utf-8")

    def append(self, line: dict[str, Any]) -> None:
        """Write one line."""
        self._file.write(json.dumps(line, allow_nan=False, default=str) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def header(policy: AnyPolicy, dimension: int, seed: int, order: str) -> dict[str, Any]:
    """The first line. A policy that is not of this package is logged by name and cannot be resumed from the log."""
    known = dataclasses.is_dataclass(policy) and not isinstance(policy, type)
    return {
        "event": "start",
        "format": FORMAT,
        "policy": type(policy).__name__,
        "configuration": dataclasses.asdict(cast("Any", policy)) if known else {},
        "dimension": dimension,
        "seed": seed,
        "order": order,
    }


def chosen(
    number: int, context_id: Hashable, arms: Floats, choice: Choice, features: tuple[str, ...] | None
) -> dict[str, Any]:
    """The line of a decision."""
    line = {
        "event": "choose",
        "decision": number,
        "context": context_id,
        "arms": arms.tolist(),
        "index": choice.index,
        "propensity": choice.propensity,
        "bucket": choice.bucket,
    }
    return line if features is None else {**line, "features": list(features)}


def resolved(number: int, reward: float | None) -> dict[str, Any]:
    """The line of a reward, or of its being given up."""
    return (
        {"event": "forget", "decision": number}
        if reward is None
        else {"event": "learn", "decision": number, "reward": reward}
    )


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The first line and all events after it; a last line without its end is left out."""
    if not path.exists():
        raise InvalidInput(f"There is no log {path}; ContextualSession(policy, path=...) starts one.")
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{path}, line {number}: not JSON ({error.msg}); restore the log.") from None
    if not events or events[0].get("event") != "start" or events[0].get("format") != FORMAT:
        raise InvalidInput(f"{path} is not the log of a contextual session (format {FORMAT}).")
    return events[0], events[1:]


def policy_of(start: dict[str, Any]) -> AnyPolicy:
    """The policy that the first line of a log describes."""
    name = start["policy"]
    if name not in CLASSES:
        raise InvalidInput(f"The log was written by the policy {name!r}, which is not part of surepick.")
    policy: AnyPolicy = CLASSES[name](**start["configuration"])
    return policy


def read_decisions(path: str | Path) -> list[LoggedDecision]:
    """All decisions of a log with their rewards, for off-policy evaluation."""
    _, events = read(Path(path))
    rewards = {event["decision"]: event["reward"] for event in events if event["event"] == "learn"}
    return [
        LoggedDecision(
            event["decision"],
            event["context"],
            np.array(event["arms"]),
            event["index"],
            event["propensity"],
            rewards.get(event["decision"]),
        )
        for event in events
        if event["event"] == "choose"
    ]


def _drop_torn_line(path: Path) -> None:
    """Cut what a crash left of a line without its end."""
    with path.open("rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)
