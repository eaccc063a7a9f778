"""Evidence that an item is not the winner: one betting process per item (docs/assumptions.md, Theorem 1).

Assumption (W): some item z* gets, in every question that shows it and given everything that happened before, an
expected score of at least its fair share f: ½ in a comparison, 1/k in a pick of one from k. A score is 1 for a win, 0
for a loss, ½ for a tie, and may be anything between. Nothing is assumed about features, transitivity or other items.

    M_z = product over the questions that show z of 1 + b·(f − S),    b ≥ 0 fixed before the answer

E[factor | past] = 1 + b·(f − E S) ≤ 1 for z = z*, so M_z* is a nonnegative supermartingale from 1, and so is a
fixed mixture of such products (one for each expert). By Ville's inequality M_z* ever reaches 1/δ with probability at
most δ: every item whose process reached 1/δ is excluded for good, without a union over items, leaders or times.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from surepick._arrays import Floats, Integers

MODEL, RECORD, FIXED = 0.6, 0.2, 0.2
"""Shares of the experts: the predictive model, the pair's own record, and a few constant bets."""

CONSTANT_LOSSES = np.array([0.65, 0.85, 0.97])
"""Constant experts: probabilities of losing that they bet on wherever the model expects a loss."""

LEAST_SHARE = 0.01
"""No expert predicts a smaller share: one surprise then costs at most log(f/0.01), 3.9 nats in a comparison."""

MOST_BET = 0.99
"""Largest bet as a share of the most that is allowed, at which a win would end the process."""

LOG_SHARES: Floats = np.log([MODEL, RECORD, *(FIXED / len(CONSTANT_LOSSES) for _ in CONSTANT_LOSSES)])


Predicted = tuple[Sequence[float], Sequence[float]]
"""Expected scores of the items shown: by the model, and by the past answers to this very question."""


def experts(shares: Predicted, fair: Floats) -> Floats:
    """Predicted shares of all experts for the items of one question: items × experts, each at most the fair share.

    An expert that predicts at least the fair share does not bet: it is given the fair share itself, a factor of 1.
    """
    model, own = (np.asarray(predicted, dtype=np.float64) for predicted in shares)
    # Constant experts bet wherever the model expects less than the fair share, in proportion to it.
    constant = np.where((model < fair)[:, None], 2 * fair[:, None] * (1 - CONSTANT_LOSSES), fair[:, None])
    return np.asarray(np.clip(np.column_stack([model, own, constant]), LEAST_SHARE, fair[:, None]))


def log_factors(w: Floats, score: Floats, fair: Floats, spread: float = 1.0) -> Floats:
    """log(1 + b·(f − S)) with b = (f − w)/(f·(1 − f) − (1 − spread)·w·(1 − w)) if the share w ≤ f is predicted.

    With spread 1 this b maximises the expected log factor of wins and losses if w is right (Kelly): the factor is
    (1 − w)/(1 − f) after a loss and w/f after a win, and affine in the score between them. Scores between 0 and 1 vary
    less, by `spread`; the denominator is then their mean square about f, and b about the best bet. It is at most
    `MOST_BET`/(1 − f), so no factor is negative.
    """
    bet = (fair - w) / np.maximum(fair * (1 - fair) - (1 - spread) * w * (1 - w), 1e-9)
    return np.asarray(np.log1p(np.minimum(bet, MOST_BET / (1 - fair)) * (fair - score)))


@dataclass(frozen=True, eq=False)
class WinnerEvidence:
    """The processes of all items, after the answers counted so far.

    With `against`, a frozen leader a, they are those of the epsilon form (docs/assumptions.md, Theorem 2): the fair
    share of another item in its comparisons with a is ½ + eta, where eta is the margin that is tolerated. A winner that
    beats a by more than eta keeps a mean factor of at most 1, so its process stays small.
    """

    log_wealth: Floats
    """Items × experts: the log of each expert's product."""
    reached: Floats
    """Largest log of the mixture so far, by item; what was reached once stays reached (Ville)."""
    against: int = -1
    eta: float = 0.0

    @classmethod
    def of(cls, items: int, against: int = -1, eta: float = 0.0) -> "WinnerEvidence":
        """Before the first answer: every process is 1."""
        return cls(np.zeros((items, len(LOG_SHARES))), np.zeros(items), against, eta)

    def update(
        self,
        shown: Sequence[int],
        shares: Predicted,
        answers: Sequence[tuple[ArrayLike, int]],
        spread: float = 1.0,
    ) -> "WinnerEvidence":
        """Count answers to one question, as one step.

        Args:
            shown: numbers of the items that the question showed, each once.
            shares: what the model and the record predicted before the answers, for each item shown.
            answers: scores of the items shown, each in [0, 1], and how often they occurred. A missing answer that may
                depend on what it would have been is counted as a win of every item shown: the factor falls as the score
                rises, so this is the worst for each process, whatever the answer was.
            spread: the variance of scores as a share of that of wins and losses, as predicted before the answers.
        """
        items = np.asarray(shown)
        fair = np.full(len(items), 1 / len(items))
        fair[(items != self.against) & np.any(items == self.against)] += self.eta
        predicted = experts(shares, fair)
        wealth, reached = self.log_wealth.copy(), self.reached.copy()
        for scores, times in answers:
            if times:
                score = np.asarray(scores, dtype=np.float64)[:, None]
                wealth[items] += times * log_factors(predicted, score, fair[:, None], spread)
        reached[items] = np.maximum(reached[items], logsumexp(wealth[items] + LOG_SHARES, axis=1))
        return replace(self, log_wealth=wealth, reached=reached)

    def surviving(self, delta: float) -> Integers:
        """Items that are not excluded at risk delta: a confidence set for the winner, valid at all times."""
        return np.flatnonzero(self.reached < math.log(1 / delta))
