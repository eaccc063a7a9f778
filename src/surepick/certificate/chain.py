"""Links that chain the stages of a log: each is a hash of the one before, a plan, and the answers counted since.

    start  = SHA-256(policy, problem)
    link_t = SHA-256(link_{t-1}, plan t, tallies of the stages that were counted after plan t-1 and by plan t)

All as canonical JSON. What the proof does not read of a plan's memo enters as a hash of its own, so that a certificate
can leave it out. Answers enter once, when they are counted for good: undo and late answers change no link, and the cost
over all stages is linear. What links show is said in `claim.ORDER_ONLY`.
"""

import hashlib
import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from surepick._arrays import Integers
from surepick.certificate.reading import whole
from surepick.errors import CertificateRefused

READ_BY_PROOF = ("restart", "predictions", "shares", "stakes", "leader", "spread")
"""Entries of memos that certificates show, so that no hash can stand for other ones."""

_BYTES = hashlib.sha256().digest_size


class CountedStage(Protocol):
    """A stage with its answers."""

    @property
    def pulls(self) -> Integers:
        """Answers to each measurement."""

    @property
    def wins(self) -> Integers:
        """How many of them are 1."""

    @property
    def partial(self) -> Sequence[Sequence[float]]:
        """Scores of further answers, between 0 and 1 and in ascending order."""

    @property
    def orders(self) -> Sequence[Sequence[Sequence[int]]]:
        """Answers to questions about sets, in ascending order."""


@dataclass
class Chain:
    """The links of a session, computed as its stages are planned or replayed."""

    log: Iterable[Mapping[str, Any]]
    """The session's events, of which the first has the policy and the problem."""
    _links: bytearray = field(default_factory=bytearray)
    """32 bytes each: a log of a thousand stages would have 100 kB of them as text."""
    _counted: "array[int]" = field(default_factory=lambda: array("q"))
    _unlinked: list[int] = field(default_factory=list)
    """Stages that were logged without a link."""
    broken: int | None = None
    """The first stage whose logged link is not that of the log's content."""

    @property
    def links(self) -> list[str]:
        """The link of every stage."""
        return [self._link(place) for place in range(len(self._counted))]

    def _link(self, place: int) -> str:
        return self._links[_BYTES * place : _BYTES * (place + 1)].hex()

    @property
    def counted(self) -> list[int]:
        """Stages whose answers had been counted when each stage was planned."""
        return self._counted.tolist()

    def next(self, event: Mapping[str, Any], stages: Sequence[CountedStage], counted: int) -> str:
        """The link of a stage that is planned now, after the answers to the first `counted` stages were counted."""
        planned = len(self._counted)
        previous = self._link(planned - 1) if planned else start_link(self._head["policy"], self._head["problem"])
        new = stages[self._counted[-1] if planned else 0 : counted]
        tallies = [_counted(stage.pulls.tolist(), stage.wins.tolist(), stage.partial, stage.orders) for stage in new]
        return next_link(previous, event["measurements"], event["pulls"], *_split(event["memo"]), tallies)

    def append(self, event: Mapping[str, Any], stages: Sequence[CountedStage], counted: int) -> None:
        """Note a stage that was planned."""
        place, link = len(self._counted), self.next(event, stages, counted)
        if "link" not in event:
            self._unlinked.append(place)
        elif event["link"] != link and self.broken is None:
            self.broken = place
        self._links += bytes.fromhex(link)
        self._counted.append(counted)

    @property
    def _head(self) -> Mapping[str, Any]:
        return next(iter(self.log))

    @property
    def state(self) -> str:
        """In a word: "broken", "chained", "not chained" or "partly chained" (by an earlier version)."""
        if self.broken is not None:
            return "broken"
        unlinked = len(self._unlinked)
        return "not chained" if unlinked == len(self._counted) else "partly chained" if unlinked else "chained"

    def __str__(self) -> str:
        if self.broken is not None:
            return f"The chain is broken: stage {self.broken} does not have the link of what the log has before it."
        state = self.state.capitalize()
        return f"{state}." if self.state == "not chained" else f"{state}; the last link is {self.links[-1]}."

    def write(self, certificate: Mapping[str, Any]) -> dict[str, Any]:
        """The certificate with the links of its stages; as it is where one of them was logged without."""
        stages = certificate["stages"]
        if not stages or any(place < len(stages) for place in self._unlinked):
            return dict(certificate)
        entries = []
        planned = (event for event in self.log if event["event"] == "stage")
        for event, _, counted in zip(planned, stages, self._counted, strict=False):
            shown, rest = _split(event["memo"])
            entries.append({"link": event["link"], "counted": counted, "shown": sorted(shown), "rest": rest})
        chain = {"policy": self._head["policy"], "stages": entries}
        content = {**certificate, "problem": self._head["problem"], "chain": chain}
        return content | {"digest": digest(content)}


def check_chain(certificate: Mapping[str, Any]) -> str | None:
    """Compute the links of a certificate again, and return the last one; None if it has none."""
    if "chain" not in certificate:
        return None
    chain, stages = certificate["chain"], certificate["stages"]
    policy = chain["policy"]
    for name in ("delta", "epsilon", "missing"):
        if policy[name] != certificate[name]:
            raise CertificateRefused(f"By its chain, the search was begun with another {name}.")
    if len(chain["stages"]) != len(stages) or not stages:
        raise CertificateRefused("The chain does not have one link per stage.")
    link, before = start_link(policy, certificate["problem"]), 0
    for place, (entry, stage) in enumerate(zip(chain["stages"], stages, strict=True)):
        counted = whole(entry["counted"], "Counted stages", place + 1)
        shown = {name: stage[name] for name in entry["shown"] if name in READ_BY_PROOF}
        # Predictions of Anytime may follow later from answers before the plan; all else is fixed with it.
        fixed = {name for name in READ_BY_PROOF if name in stage} - {"predictions"}
        if counted < before or not fixed <= set(shown):
            raise CertificateRefused(f"The chain counts answers again, or does not fix what stage {place} predicted.")
        tallies = [_tally(counted_now) for counted_now in stages[before:counted]]
        link, before = next_link(link, stage["measurements"], stage["planned"], shown, entry["rest"], tallies), counted
        if entry["link"] != link:
            raise CertificateRefused(f"Stage {place} does not have the link of its plan and of the answers before it.")
    return link


def start_link(policy: Any, problem: Any) -> str:
    """What the first link follows: items, possible questions and the policy's options are fixed by it."""
    return hashed([policy, problem])


def next_link(
    previous: str, measurements: Any, planned: Any, shown: Mapping[str, Any], rest: str | None, tallies: Any
) -> str:
    """The link of one more stage, whose memo is what certificates show and a hash of the rest."""
    return hashed([previous, measurements, planned, shown, rest, tallies])


def hashed(value: Any) -> str:
    """SHA-256 of canonical JSON: sorted keys, no spaces, and the shortest decimals that are the same numbers."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of a certificate without its own field `digest`."""
    text = json.dumps({key: value for key, value in content.items() if key != "digest"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _split(memo: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """What certificates show of a memo, and a hash of what they do not, if there is anything."""
    shown = {name: value for name, value in memo.items() if name in READ_BY_PROOF}
    rest = {name: value for name, value in memo.items() if name not in READ_BY_PROOF}
    return shown, hashed(rest) if rest else None


def _tally(stage: Mapping[str, Any]) -> list[Any]:
    """The answers of a stage in a certificate, as `_counted` has those of a log."""
    if "orders" in stage:
        orders = [[order for order, times in told for _ in range(times)] for told in stage["orders"]]
        nothing = [0] * len(orders)
        return _counted(nothing, nothing, (), orders)
    if "pulls" in stage:
        return _counted(stage["pulls"], stage["wins"], stage.get("partial", ()))
    counts = [{tuple(scores): times for scores, times in answers} for answers in stage["answers"]]
    wins = [each.pop((1, 0), 0) for each in counts]
    pulls = [won + each.pop((0, 1), 0) for won, each in zip(wins, counts, strict=True)]
    partial = [[scores[0] for scores, times in sorted(each.items()) for _ in range(times)] for each in counts]
    return _counted(pulls, wins, partial)


def _counted(
    pulls: Any, wins: Any, partial: Sequence[Sequence[float]], orders: Sequence[Sequence[Sequence[int]]] = ()
) -> list[Any]:
    """Answers and wins of each question; with scores between 0 and 1, or with orders, where there are any."""
    if any(map(len, orders)):
        return [pulls, wins, [], [[list(order) for order in told] for told in orders]]
    return [pulls, wins, [list(scores) for scores in partial]] if any(map(len, partial)) else [pulls, wins]
