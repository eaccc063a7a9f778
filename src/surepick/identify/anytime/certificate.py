"""The proof of a verdict of Anytime as plain data, for `surepick.certificate.verify_certificate` to check anew.

Vectors are in the coordinates of the features, whatever coordinates the search worked in.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.certificate import FORMAT, digest
from surepick.evidence.plug_in_bounds import Localiser
from surepick.identify.anytime.directional import Process
from surepick.identify.anytime.rival_bounds import Weighed
from surepick.identify.anytime.state import State
from surepick.identify.stages import StageRecord


def write_certificate(claim: Mapping[str, Any], state: State, weighed: Weighed, far: Localiser) -> dict[str, Any]:
    """The claim, the problem, all evaluated stages, and for each rival what its bound was found with."""
    embed = state.problem.span.embed
    process = state.process_of(state.leader)
    rivals = []
    for item, proof, nats in zip(
        weighed.items, weighed.proofs, np.fmax(weighed.plug_in, weighed.directional), strict=True
    ):
        points: dict[str, Any] = {name: _embedded(proof[name], embed) for name in ("theta", "centre") if name in proof}
        if "passes" in proof:
            points["passes"] = [each | {"theta": _embedded(each["theta"], embed)} for each in proof["passes"]]
        rivals.append({"item": int(item), "nats": float(nats), "stages": state.sealed} | proof | points)
    tilted = {int(each["item"]) for each in rivals if each["rule"] == "directional"}
    content = {
        "format": FORMAT,
        **claim,
        "problem": state.problem.to_json(),
        "best": state.leader,
        "process": None if process is None else process.number,
        "far": {"theta": embed(far.centre).tolist(), "shares": far.shares.tolist()},
        "stages": [_stage(each, embed, process, tilted) for each in state.filed[: state.sealed]],
        "rivals": rivals,
    }
    return content | {"digest": digest(content)}


def _embedded(point: list[float], embed: Callable[[Floats], Floats]) -> Any:
    return embed(np.array(point)).tolist()


def _stage(
    filed: StageRecord, embed: Callable[[Floats], Floats], process: Process | None, rivals: set[int]
) -> dict[str, Any]:
    """A stage as a certificate holds it: with the bets that the proof uses, in the coordinates of the features."""
    memo = filed.plan.memo
    bets = []
    for each in memo["bets"]:
        if process is not None and each["process"] == process.number:
            kept = [place for place, rival in enumerate(each["rivals"]) if rival in rivals]
            shifts = [embed(np.array(each["shifts"][place])).tolist() for place in kept]
            bets.append(each | {"rivals": [each["rivals"][place] for place in kept], "shifts": shifts})
    return {
        "measurements": filed.plan.measurements.tolist(),
        "planned": filed.plan.pulls.tolist(),
        "pulls": filed.pulls.tolist(),
        "wins": filed.wins.tolist(),
        "predictions": memo["predictions"],
        "restart": memo["restart"],
        "bets": bets,
    }
