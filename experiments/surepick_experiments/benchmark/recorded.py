"""Recorded votes as judges: an answer is one of the votes on the same pair, drawn at random with replacement.

Any folder in our format will do: *items.csv with a file of the same name beside it that has "answers" instead of
"items". A pair that nobody voted on is answered by the Bradley–Terry model fitted to all votes.
"""

from functools import cache, partial
from pathlib import Path

import numpy as np

from surepick.errors import InvalidInput
from surepick.io.items import read_items
from surepick.io.votes import numbers_of, read_votes
from surepick_experiments.benchmark.challenge import Challenge
from surepick_experiments.benchmark.methods.counts import Counts, Posterior
from surepick_experiments.benchmark.worlds import Comparisons, Family
from surepick_experiments.worlds.preferences import bradley_terry


@cache
def recorded_worlds(folder: str) -> dict[str, Family]:
    """A world for each set of votes in the folder."""
    found = sorted(Path(folder).rglob("*items.csv"))
    if not found:
        raise InvalidInput(f"{folder} has no file *items.csv; recorded sets have one, with *answers.csv beside it.")
    worlds = {}
    for path in found:
        name = path.stem.removesuffix("items").strip("_") or path.parent.name
        worlds[name] = Family(partial(_shuffled, read_recorded(path)), f"Recorded votes: {name}.")
    return worlds


def read_recorded(path: Path) -> Comparisons:
    """The votes on the items of this file, as probabilities of win and tie for each pair."""
    items = read_items(path)
    problem = items.problem()
    number = numbers_of(problem)
    votes = read_votes(path.with_name(path.name.replace("items", "answers")), items.names).distinguishable(problem)
    count = len(problem.items)
    counts, tied = Counts(Challenge(count)), np.zeros((count, count))
    for vote in votes.votes:
        if vote.answer is None or isinstance(vote.answer, tuple):  # a skip, or a pick of more than two
            continue
        first, second = (number[name] for name in vote.shown)
        tie = vote.answer == "tie"
        score = 0.5 if tie else float(vote.answer)
        counts.won[first, second] += score
        counts.won[second, first] += 1 - score
        counts.lost[first, second] += 1 - score
        counts.lost[second, first] += score
        tied[[first, second], [second, first]] += tie
    model = Posterior.usual(counts)
    model.refit(20)
    asked = counts.pulls
    decisive = asked - tied
    chances = np.where(
        decisive > 0,
        (counts.won - tied / 2) / np.maximum(decisive, 1),
        np.where(asked > 0, 0.5, bradley_terry(model.scores)),
    )
    return Comparisons(chances[None], problem.items, ties=tied / np.maximum(asked, 1))


def _shuffled(made: Comparisons, rng: np.random.Generator) -> Comparisons:
    """The same with the items in random order: the first one is named where nothing is known."""
    order = rng.permutation(made.chances.shape[1])
    assert made.features is not None
    assert not isinstance(made.ties, float)
    return Comparisons(made.chances[:, order][:, :, order], made.features[order], ties=made.ties[np.ix_(order, order)])
