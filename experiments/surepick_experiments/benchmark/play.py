"""One method in one world: a tidy row."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surepick_experiments.benchmark.challenge import CHECKPOINTS, Answer, Challenge, Entry, Method, Question
from surepick_experiments.benchmark.worlds import World
from surepick_experiments.studies.runner import Row


@dataclass(eq=False)
class Played:
    """What a method did."""

    asked: int = 0
    seconds: float = 0.0
    """Processor time of the method itself."""
    stopped: bool = False
    guesses: tuple[int | None, ...] = ()
    """At each checkpoint; after a stop the item claimed."""
    named: int | None = None
    """The last guess: the claim of a method that stopped."""


def play(method: Method, world: World, rng: np.random.Generator, *, most: int, until: int = CHECKPOINTS[-1]) -> Played:
    """Ask until the method is done, or `most` questions; best guesses at the checkpoints up to `until`."""
    result, guesses = Played(), list[int | None]()
    points = [point for point in CHECKPOINTS if point <= until]
    while True:
        began = time.process_time()
        done = method.done()
        while len(guesses) < len(points) and (done or result.asked >= points[len(guesses)]):
            guesses.append(method.best())
        if done or result.asked >= most:
            result.named = method.best()
            result.seconds += time.process_time() - began
            result.stopped, result.guesses = done, tuple(guesses)
            return result
        question = method.ask()
        result.seconds += time.process_time() - began
        answer = world.answer(question, rng)
        began = time.process_time()
        method.tell(question, answer)
        result.seconds += time.process_time() - began
        result.asked += question.times


def told(entry: Entry, world: World, budget: int) -> Challenge:
    """The world's challenge with this budget, and with prior knowledge only if the method needs it."""
    known = {name: world.known[name] for name in entry.needs}
    return replace(world.challenge, budget=budget, known=known)


def row(name: str, entry: Entry, world: World, seed: int, *, most: int, until: int) -> Row:
    """A run of a method as one row: questions to stop, what was claimed, and the guess at each checkpoint."""
    until = min(until, entry.most)
    points = [point for point in CHECKPOINTS if point <= until]
    if entry.fixed_budget:
        # Each budget is a run of its own, and its guess is read at the end.
        runs = [_run(entry, world, seed, point, 0) for point in points]
        played = Played(sum(run.asked for run in runs), sum(run.seconds for run in runs))
        played.guesses = tuple(run.named for run in runs)
    else:
        played = _run(entry, world, seed, most if entry.claim else until, until)
    stopped = played.stopped and entry.claim is not None
    result: Row = {
        "method": name,
        "seed": seed,
        "items": world.challenge.items,
        "has_winner": world.has_winner,
        "explained": world.explained,
        "questions": played.asked,
        "stopped": stopped,
        "wrong": stopped and not is_right(world, played.named, claimed=True),
        "milliseconds": round(1000 * played.seconds / max(played.asked, 1), 4),
    }
    for point, guess in zip(points, played.guesses, strict=True):
        result[f"right_{point}"] = is_right(world, guess)
        result[f"behind_{point}"] = round(0.0 if is_right(world, guess) else _behind(world, guess), 5)
    return result


def is_right(world: World, named: int | None, *, claimed: bool = False) -> bool:
    """Whether this is the best item; None is right where there is no winner, and a claim of any item is wrong there."""
    if named is None:
        return not world.has_winner
    return named in world.best and (world.has_winner or not claimed)


def _behind(world: World, named: int | None) -> float:
    """Simple regret; who denies that there is a winner loses as much as with the worst item."""
    return max(world.behind(item) for item in ([named] if named is not None else range(world.challenge.items)))


def _run(entry: Entry, world: World, seed: int, most: int, until: int) -> Played:
    method = entry.make(told(entry, world, most), np.random.default_rng([seed, 1]))
    return play(method, world, np.random.default_rng([seed, 2]), most=most, until=until)


def transcript(entry: Entry, challenge: Challenge, answers: Iterable[Answer], seed: int) -> list[tuple[Question, Any]]:
    """The questions and guesses of a method that is given these answers: all that it does, without any world."""
    method = entry.make(challenge, np.random.default_rng([seed, 1]))
    said = []
    for answer in answers:
        if method.done():
            break
        question = method.ask()
        method.tell(question, answer)
        said.append((question, method.best()))
    return said
