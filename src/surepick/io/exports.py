"""Files of other tools as rows of votes: annotation tools, and frameworks that test language models (docs/votes.md).

Label Studio and Argilla write a list of tasks. A task becomes one row per answer, with columns item_a,item_b (or
model_a,model_b), winner and judge; the names of the two items are fields of the task. promptfoo and Inspect write one
object with a list of results inside. Any other record is a row as it is.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

SIDES = {"left": "a", "right": "b"}
"""How Label Studio says which of two was selected."""

NUMBERED = re.compile(r"(?:response|reply|answer|text|output|completion|generation)[-_ ]?([12ab])", re.IGNORECASE)
"""Names of options such as response-1 or reply_b, which say only the place of an item."""

QUESTIONS = ("winner", "preference")
"""The question to read where a record of Argilla or Inspect has several; otherwise its first one."""

SELECTION = "select-best"
"""The assertion of promptfoo that compares the outputs of a test."""


def records_of(document: Any) -> list[Any] | None:
    """The records of a whole JSON file: an array, or the object of a framework; None where it is neither."""
    if isinstance(document, list):
        return document
    if not isinstance(document, Mapping):
        return None
    samples, results = document.get("samples"), document.get("results")
    if isinstance(results, Mapping) and isinstance(results.get("results"), list):
        return _promptfoo(results["results"])
    return samples if isinstance(samples, list) else None


def rows_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a record of an export, or the record itself if it is a row already."""
    if "winner" in record:  # first, because files of a million rows have it
        return [_contest(record)] if "contestants" in record else [dict(record)]
    if isinstance(record.get("scores"), Mapping) and "epoch" in record:
        return [_inspect(record)]
    if isinstance(record.get("annotations"), list) and isinstance(record.get("data"), Mapping):
        return [dict(record["data"]) | answer for answer in _label_studio(record["annotations"])]
    if isinstance(record.get("fields"), Mapping) and isinstance(record.get("responses"), Mapping):
        shared = dict(record["fields"]) | dict(record.get("metadata") or {})
        asked = {name: answers for name, answers in record["responses"].items() if isinstance(answers, list)}
        chosen = _question(asked)
        answers = asked[chosen] if chosen else []
        return [shared | _argilla(said.get("value"), said.get("user_id"), said.get("status")) for said in answers]
    asked = {name.removesuffix(".responses"): record[name] for name in record if name.endswith(".responses")}
    chosen = _question(asked)
    if chosen is None:
        return [dict(record)]
    shared = {name.removeprefix("metadata."): value for name, value in record.items() if "." not in name[9:]}
    values = record[f"{chosen}.responses"] or []
    users = record.get(f"{chosen}.responses.users") or [None] * len(values)
    statuses = record.get(f"{chosen}.responses.status") or [None] * len(values)
    return [
        shared | _argilla(value, user, status) for value, user, status in zip(values, users, statuses, strict=False)
    ]


def _question(asked: Mapping[str, Any]) -> str | None:
    return next((name for name in (*QUESTIONS, *asked) if name in asked), None)


def _label_studio(annotations: list[Any]) -> Iterator[dict[str, Any]]:
    """One answer per annotation: what its Pairwise tag selected, or the choice of its Choices tag."""
    for annotation in annotations:
        judge = annotation.get("completed_by")
        judge = judge.get("email", judge.get("id")) if isinstance(judge, Mapping) else judge
        said = None
        for result in annotation.get("result") or []:
            value = result.get("value") or {}
            if result.get("type") == "pairwise":
                said = value.get("selected")
            elif result.get("type") == "choices" and said is None:
                said = (value.get("choices") or [None])[0]
        if annotation.get("was_cancelled"):
            said = "skip"
        yield {"winner": SIDES.get(str(said).lower(), said), "judge": judge}


def _argilla(value: Any, user: Any, status: Any) -> dict[str, Any]:
    """One response: a label, or a ranking of two options; discarded and unfinished ones are skips."""
    if status in ("discarded", "draft"):
        return {"winner": "skip", "judge": user}
    if isinstance(value, list) and value and all(isinstance(option, Mapping) for option in value):
        ranks = sorted(value, key=lambda option: option.get("rank") or 1)
        tied = len(ranks) > 1 and ranks[0].get("rank") == ranks[1].get("rank")
        value = "tie" if tied else ranks[0].get("value")
    elif isinstance(value, list):
        value = value[0] if value else None
    place = NUMBERED.fullmatch(str(value))
    if place is not None:
        value = "a" if place[1].lower() in ("1", "a") else "b"
    return {"winner": value, "judge": user}


def _promptfoo(results: list[Any]) -> list[dict[str, Any]]:
    """One record per test that has the assertion select-best: its outputs compete, and the one that passed has won.

    An output is named by what differs: its provider, its prompt, or both.
    """
    tests: defaultdict[Any, list[tuple[tuple[str, str], bool]]] = defaultdict(list)
    for result in results:
        grading = result.get("gradingResult") or {}
        for component in grading.get("componentResults") or []:
            if (component.get("assertion") or {}).get("type") == SELECTION:
                tests[result.get("testIdx")].append((_output_of(result), bool(component.get("pass"))))
    parts = [{output[place] for compared in tests.values() for output, _ in compared} for place in (0, 1)]
    differs = [place for place in (0, 1) if len(parts[place]) > 1]
    records = []
    for compared in tests.values():
        names = [", ".join(output[place] for place in differs) for output, _ in compared]
        chosen = [name for name, (_, passed) in zip(names, compared, strict=True) if passed]
        winner = chosen[0] if len(chosen) == 1 else None
        records.append({"contestants": names, "winner": winner, "judge": SELECTION})
    return records


def _output_of(result: Mapping[str, Any]) -> tuple[str, str]:
    """Provider and prompt of a result of promptfoo, by their labels if they have one."""
    provider, prompt = result.get("provider") or "", result.get("prompt") or {}
    if isinstance(provider, Mapping):
        provider = provider.get("label") or provider.get("id") or ""
    return str(provider), str(prompt.get("label") or prompt.get("raw") or result.get("promptIdx"))


def _contest(record: Mapping[str, Any]) -> dict[str, Any]:
    """A test case of DeepEval's arena with the name that its metric chose: a comparison, or a pick of several."""
    contestants = record["contestants"]
    names = [contestant["name"] if isinstance(contestant, Mapping) else contestant for contestant in contestants]
    said = {"winner": record["winner"], "judge": record.get("judge")}
    return said | ({"item_a": names[0], "item_b": names[1]} if len(names) == 2 else {"items": names})


def _inspect(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A sample of a log of Inspect: metadata name the two items, and the value of a score says which one won."""
    scores = sample["scores"]
    scorer = _question(scores)
    score = scores[scorer] if scorer else {}
    shared = dict(sample.get("metadata") or {}) | dict(score.get("metadata") or {})
    return shared | {"winner": score.get("value"), "judge": scorer}
