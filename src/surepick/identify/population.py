"""Populations: how tastes are distributed over people, as scores of all items; given, usual, or learned."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick._arrays import Floats
from surepick.errors import InvalidInput
from surepick.glm.score_posterior import ScorePrior
from surepick.identify.population_learning import learn_scores
from surepick.identify.problem import Problem

SPREADS = (2.0, 4.0, 8.0)
"""Standard deviations of one person's scores over the items, in log-odds, thought equally likely.

A person who is asked a random pair twice gives the same answer both times in 76%, 87% or 93% of cases.
"""

ANY_SPREADS = (0.5, *SPREADS, 16.0)
"""Spreads of people who may be unlike the usual ones."""

OWN_SHARES = ((0.1, 0.6), (0.4, 0.3), (1.0, 0.1))
"""How much of that the features do not explain (1: all of it), as a share of the spread, and how likely that is."""

USUAL = (
    "usual people: scores of spread 2, 4 or 8 in log-odds, of which the features explain nearly all, most or nothing"
)

UNLIKE = 0.1
"""Share of people who are taken to be of the usual population whatever the earlier ones were like."""

FEWEST = 4
"""People without whom nothing is learned."""


@dataclass(frozen=True, eq=False)
class Population:
    """A distribution of tastes over the items of one problem: a mixture of Gaussians for their scores.

    >>> colours = Problem.from_pairs({"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [0.5, 0.6]})
    >>> Population.usual(colours).sample(4, np.random.default_rng(0)).shape
    (4, 3)
    """

    names: tuple[str, ...]
    """Names of the items."""
    prior: ScorePrior
    source: str
    """What it describes, as part of a sentence."""

    @classmethod
    def usual(cls, problem: Problem) -> "Population":
        """What is assumed of a person of whom nothing is known: the hierarchical prior at several scales.

        Score of item i = x_iᵀθ + u_i with independent Gaussian θ and u_i. The spread of the scores is one of `SPREADS`,
        and the share of u in it one of `OWN_SHARES`; without features u is all.
        """
        return cls(problem.names, _hierarchical(problem, SPREADS), USUAL)

    @classmethod
    def learn(cls, problem: Problem, people: Mapping[str, Iterable[tuple[str, str, int]]]) -> "Population":
        """From earlier people who compared the same items: for each of them (first item, second item, 1 or 0).

        Mean and covariance of the scores are fitted by penalised maximum likelihood (`population_learning`). One in ten
        is still taken to be of the usual population: a new person may be unlike the earlier ones.
        """
        number = {name: place for place, names in enumerate(problem.aliases) for name in names}
        records = []
        for name, answers in people.items():
            counted: dict[tuple[int, int], list[int]] = {}
            for first, second, won in answers:
                unknown = next((item for item in (first, second) if item not in number), None)
                if unknown is not None or won not in (0, 1):
                    wrong = f"the answer {won!r}" if unknown is None else f"the item {unknown!r}"
                    raise InvalidInput(
                        f"The answers of {name!r} have {wrong}; give (item, item, 1 or 0) of known items."
                    )
                counted.setdefault((number[first], number[second]), [0, 0])[1 - won] += 1
            person = [(a, b, won, lost) for (a, b), (won, lost) in counted.items() if a != b]
            if person:
                records.append(person)
        if len(records) < FEWEST:
            raise InvalidInput(
                f"Learning a population takes at least {FEWEST} people with answers, got {len(records)}."
            )
        usual = cls.usual(problem).prior
        learned = learn_scores(usual, records)
        prior = ScorePrior(
            np.concatenate([learned.mean[None], usual.mean]),
            np.concatenate([learned.covariance[None], usual.covariance]),
            np.concatenate([[math.log(1 - UNLIKE)], usual.log_weights + math.log(UNLIKE)]),
        )
        source = (
            f"learned from {len(records)} people; an answer of people left out has the log-probability "
            f"{learned.held_out:.3f}, by the usual population {learned.held_out_usual:.3f}"
        )
        return cls(problem.names, prior, source)

    def sample(self, people: int, rng: np.random.Generator) -> Floats:
        """Scores of all items for this many people, one row per person."""
        return self.prior.sample(people, rng)

    def require_items(self, problem: Problem) -> None:
        """Refuse a problem with other items."""
        if problem.names != self.names:
            other = next((name for name in problem.names if name not in self.names), None)
            what = "the same items in another order or number" if other is None else f"an item {other!r} that it lacks"
            raise InvalidInput(
                f"This population is about {len(self.names)} other items, the problem has {what}; learn one from "
                "studies of the same items."
            )

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "names": list(self.names),
            "mean": self.prior.mean.tolist(),
            "covariance": self.prior.covariance.tolist(),
            "weights": np.exp(self.prior.log_weights).tolist(),
            "source": self.source,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Population":
        """Read what `to_json` gave."""
        try:
            names = tuple(str(name) for name in fields["names"])
            mean = np.array(fields["mean"], dtype=np.float64)
            covariance = np.array(fields["covariance"], dtype=np.float64)
            weights = np.array(fields["weights"], dtype=np.float64)
            source = str(fields["source"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"This is not a population written by surepick ({error}).") from None
        count, items = len(weights), len(names)
        if mean.shape != (count, items) or covariance.shape != (count, items, items) or not np.all(weights > 0):
            raise InvalidInput(
                f"A population of {items} items needs means of shape {count} × {items}, covariances of shape {count} × "
                f"{items} × {items} and positive weights; got {mean.shape} and {covariance.shape}."
            )
        prior = ScorePrior(mean, covariance, np.log(weights / weights.sum()))
        try:
            prior.roots  # noqa: B018 - a matrix that is no covariance has no root, which is found out here
        except np.linalg.LinAlgError:
            raise InvalidInput("A covariance of this population is not positive definite; learn it again.") from None
        return cls(names, prior, source)


def given_population(given: object) -> Population | None:
    """The option `population` of a policy, which a log has as plain values."""
    population = Population.from_json(given) if isinstance(given, Mapping) else given
    if not isinstance(population, Population | None):
        raise InvalidInput(f"population must be a Population, got {population!r}; see Population.learn.")
    return population


def any_people(problem: Problem) -> ScorePrior:
    """Usual people, and others who answer nearly at random or nearly without doubt: what unlike people may be."""
    return _hierarchical(problem, ANY_SPREADS)


def _hierarchical(problem: Problem, spreads: tuple[float, ...]) -> ScorePrior:
    """Scores of these spreads, thought equally likely, and of `OWN_SHARES` of them that the features do not explain."""
    count, guide = len(problem.items), problem.guide
    kernel = np.eye(count) if guide is None else feature_kernel(guide)
    shares = OWN_SHARES if guide is not None else ((1.0, 1.0),)
    covariance = [
        spread**2 * ((1 - own**2) * kernel + own**2 * np.eye(count)) for own, _ in shares for spread in spreads
    ]
    weights = np.repeat([weight for _, weight in shares], len(spreads)) / len(spreads)
    return ScorePrior(np.zeros((len(weights), count)), np.array(covariance), np.log(weights))


def feature_kernel(features: Floats) -> Floats:
    """Covariance of x_iᵀθ for a random θ, scaled to a mean variance of one whatever the units of the features."""
    centred = features - features.mean(axis=0)
    return np.asarray(centred @ centred.T / max(float(np.mean(np.einsum("ij,ij->i", centred, centred))), 1e-300))
