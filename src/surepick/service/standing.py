"""Where a study stands, in words: what the dashboard and the result page say above everything else."""

from collections.abc import Mapping, Sequence
from typing import Any

from surepick.identify import Status
from surepick.report import sentences

OVER = ("closed", "archived")
"""States in which no answers are accepted."""


def nothing_left(study: Mapping[str, Any]) -> bool:
    """Whether the judges who came have had every question that could decide, and nobody holds one now."""
    open_now = study["verdict"] is not None and study["verdict"]["status"] == Status.OPEN
    return bool(open_now and study["state"] == "running" and study["exhausted"] and not study["waiting"])


def condition(study: Mapping[str, Any]) -> str:
    """The study's state as it is shown: one that runs and has its verdict is decided, or ended without a best item."""
    status = Status.OPEN if study["verdict"] is None else Status(study["verdict"]["status"])
    if study["state"] != "running" or not status.final:
        return str(study["state"])
    return "decided" if status.decided else "ended"


def answering(insight: Mapping[str, Any] | None) -> int:
    """How many judges have answered something."""
    return sum(1 for judge in (insight or {}).get("judges", {}).values() if judge["answers"])


def headline(
    study: Mapping[str, Any], claims: Sequence[Mapping[str, Any]], labels: Mapping[str, str], count: int
) -> str:
    """What the study has come to by now, in one line.

    `study` is its summary, `claims` are as stored, `labels` how the items named are called, and `count` is the number
    of items.
    """
    found = study["verdict"]
    if found is None or _nothing_yet(study):
        return "No answers yet" if _nothing_yet(study) else "Too early to say"
    other = next((claim for claim in claims if claim["reached"] and not claim["ends_search"]), None)
    return sentences.headline(
        Status(found["status"]),
        labels.get(found["best"], found["best"]),
        found["epsilon"],
        _left(found, labels),
        count,
        over=_over(study),
        refuted=bool(found.get("refuted_by")),
        other=None if other is None else (other["assumption"], labels.get(other["best"], other["best"])),
    )


def explained(study: Mapping[str, Any], labels: Mapping[str, str], count: int) -> list[str]:
    """Sentences below the headline: how sure it is, the best guess, and why nobody is asked any more."""
    found = study["verdict"]
    if study["notice"]:
        return [study["notice"]]
    if found is None or _nothing_yet(study):
        return []
    if Status(found["status"]).decided:
        return [f"Not proved. {found['reason']}" if found.get("refuted_by") else study["sure"]]
    delta, over = found["delta"], _over(study)
    ends = next((claim["assumption"] for claim in study["claims"] if claim["ends_search"]), "")
    others = [claim for claim in study["claims"] if not claim["ends_search"]]
    reached = [claim for claim in others if claim["reached"]]
    named = bool(reached) or not over  # the headline names a short list alone only where it is all there is
    said = (
        sentences.all_answered(study["exhausted"], answering(study["insight"])) if study["nothing_left"] else "",
        *(f"{claim['best']} is the best: {sentences.how_often(delta, claim['assumption'])}" for claim in reached),
        sentences.short_list(_left(found, labels), count, delta, found["guarantee"], ends, named=named),
        found["reason"],
        *(f"{sentences.if_so(one['assumption'])}: {one['result']}." for one in others if over and not one["reached"]),
    )
    return [sentence for sentence in said if sentence]


def _nothing_yet(study: Mapping[str, Any]) -> bool:
    """Whether there is no answer, and the study waits for one."""
    return not study["answers"] and (study["verdict"] is None or study["verdict"]["status"] == Status.OPEN)


def _left(found: Mapping[str, Any], labels: Mapping[str, str]) -> list[str]:
    """The items that are not excluded, the likeliest first."""
    surviving = set(found["surviving"])
    names = [name for name in (found["best"], *(rival["item"] for rival in found["rivals"])) if name in surviving]
    return [labels.get(name, name) for name in names]


def _over(study: Mapping[str, Any]) -> bool:
    """Whether nobody is asked any more."""
    return study["state"] in OVER or study["nothing_left"]
