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

LOG_SHARES: Floats = np.log([MODEL, RECORD, *(FIXED / len(CONSTANT_LOSSES) for _ in CONSTANT_LOSSES)])


def experts(shares: ArrayLike, record: ArrayLike, fair: float = 0.5) -> Floats:
    """Predicted shares of all experts for the items of one question: items × experts, each at most the fair share.

    Args:
        shares: the model's predicted expected score of each item shown.
        record: the expected score of each item by the past answers to this very question.
        fair: the fair share, one over the number of items shown.

    An expert that predicts at least the fair share does not bet: it is given the fair share itself, a factor of 1.
    """
    model, own = np.asarray(shares, dtype=np.float64), np.asarray(record, dtype=np.float64)
    # In a pick of one from k the constant experts scale with the fair share: a loss of 65% is 35/50 of it.
    constant = np.where(model[:, None] < fair, 2 * fair * (1 - CONSTANT_LOSSES), fair)
    predicted = np.column_stack([model, own, constant])
    return np.asarray(np.clip(predicted, min(LEAST_SHARE, fair), fair))


def log_factors(predicted: ArrayLike, score: ArrayLike, fair: float = 0.5) -> Floats:
    """log(1 + b·(f − S)) with the bet b = (f − w)/(f·(1 − f)) of an expert that predicts the share w ≤ f.

    This b maximises the expected log factor if w is right (Kelly). It lies in [0, 1/(1 − f)], so the factor is never
    negative: it is (1 − w)/(1 − f) after a loss and w/f after a win, and affine in the score between them.
    """
    w, s = np.asarray(predicted, dtype=np.float64), np.asarray(score, dtype=np.float64)
    bet = (fair - w) / (fair * (1 - fair))
    return np.asarray(np.log1p(bet * (fair - s)))


@dataclass(frozen=True, eq=False)
class WinnerEvidence:
    """The processes of all items, after the answers counted so far."""

    log_wealth: Floats
    """Items × experts: the log of each expert's product."""
    reached: Floats
    """Largest log of the mixture so far, by item; what was reached once stays reached (Ville)."""

    @classmethod
    def of(cls, items: int) -> "WinnerEvidence":
        """Before the first answer: every process is 1."""
        return cls(np.zeros((items, len(LOG_SHARES))), np.zeros(items))

    def update(self, shown: Integers, predicted: Floats, scores: ArrayLike, fair: float = 0.5) -> "WinnerEvidence":
        """Count one answer.

        Args:
            shown: numbers of the items that the question showed, each once.
            predicted: what `experts` gave before the answer, items shown × experts.
            scores: the score of each item shown, in [0, 1].
            fair: the fair share that the predictions were made for.
        """
        gained = log_factors(predicted, np.asarray(scores, dtype=np.float64)[:, None], fair)
        wealth, reached = self.log_wealth.copy(), self.reached.copy()
        wealth[shown] += gained
        reached[shown] = np.maximum(reached[shown], logsumexp(wealth[shown] + LOG_SHARES, axis=1))
        return replace(self, log_wealth=wealth, reached=reached)

    def unanswered(self, shown: Integers, predicted: Floats, fair: float = 0.5) -> "WinnerEvidence":
        """Count a missing answer as the worst it could have been: a win of every item shown.

        Valid whatever the answer was, since the factor falls as the score rises. Where a missing answer does not
        depend on what it would have been, it is simply not counted.
        """
        return self.update(shown, predicted, np.ones(len(shown)), fair)

    def surviving(self, delta: float) -> Integers:
        """Items that are not excluded at risk delta: a confidence set for the winner, valid at all times."""
        return np.flatnonzero(self.reached < math.log(1 / delta))
