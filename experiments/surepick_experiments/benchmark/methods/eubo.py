"""Preferential Bayesian optimisation with BoTorch: a Gaussian process of the features, and EUBO (Lin et al. 2022).

The next pair has the largest expected utility of the better of the two under the posterior of `PairwiseGP`. No stop.
"""

from importlib import import_module
from typing import Any

import numpy as np

from surepick_experiments.benchmark.challenge import Answer, Challenge, Question
from surepick_experiments.benchmark.methods.counts import random_pair

FIRST = 5
"""Random pairs before the first model."""

REFIT = 10
"""Answers after which the kernel's parameters are fitted again; in between only the posterior is."""


class Eubo:
    """All pairs are weighed before every question."""

    def __init__(self, challenge: Challenge, rng: np.random.Generator) -> None:
        self.rng, self.items = rng, challenge.items
        self.torch: Any = import_module("torch")
        self.torch.manual_seed(int(rng.integers(2**31)))
        self.torch.set_num_threads(1)
        low, high = challenge.points.min(axis=0), challenge.points.max(axis=0)
        unit = (challenge.points - low) / np.where(high > low, high - low, 1.0)
        self.points = self.torch.tensor(unit, dtype=self.torch.double)
        self.pairs = np.column_stack(np.triu_indices(challenge.items, 1))
        self.answers: list[tuple[int, int]] = []
        """Winner and loser of each."""
        self.parameters: Any = None
        self.model: Any = None

    def _fitted(self) -> Any:
        """The posterior after all answers so far."""
        if self.model is None:
            pairwise: Any = import_module("botorch.models.pairwise_gp")
            comparisons = self.torch.tensor(self.answers, dtype=self.torch.long)
            self.model = pairwise.PairwiseGP(self.points, comparisons)
            if self.parameters is None or len(self.answers) % REFIT == 0:
                fitting: Any = import_module("botorch.fit")
                likelihood = pairwise.PairwiseLaplaceMarginalLogLikelihood(self.model.likelihood, self.model)
                fitting.fit_gpytorch_mll(likelihood)
                self.parameters = self.model.state_dict()
            else:
                self.model.load_state_dict(self.parameters)
            self.model.eval()
        return self.model

    def ask(self) -> Question:
        """The pair of the largest expected utility of the best option."""
        if len(self.answers) < FIRST:
            return Question(*random_pair(self.items, self.rng))
        preference: Any = import_module("botorch.acquisition.preference")
        model = self._fitted()  # needs gradients
        with self.torch.no_grad():
            utility = preference.AnalyticExpectedUtilityOfBestOption(pref_model=model)
            first, second = self.pairs[int(utility(self.points[self.pairs]).argmax())]
        return Question(int(first), int(second))

    def tell(self, question: Question, answer: Answer) -> None:
        """A tie is decided by a coin: the model has none."""
        score = answer.score if answer.score != 0.5 else float(self.rng.random() < 0.5)
        first, second = question.first, question.second or 0
        self.answers.append((first, second) if score > 0.5 else (second, first))
        self.model = None

    def best(self) -> int:
        """The highest posterior mean."""
        if not self.answers:
            return 0
        model = self._fitted()
        with self.torch.no_grad():
            return int(model.posterior(self.points).mean.argmax())

    def done(self) -> bool:
        """Never."""
        return False
