"""Evidence that an item is not the winner: one betting process per item (docs/assumptions.md, Theorem 1).

Assumption (W): some item z* gets, in every question that shows it and given everything that happened before, an
expected score of at least its fair share f, ½ in a comparison. A score is 1 for a win, 0 for a loss, ½ for a tie, and
may be anything between. In a pick of one from k it is at least as likely as any other item (`pick_factors`). Nothing
is assumed about features, transitivity or other items.

    M_z = product over the questions that show z of 1 + b·(f − S),    b ≥ 0 fixed before the answer

E[factor | past] = 1 + b·(f − E S) ≤ 1 for z = z*, so M_z* is a nonnegative supermartingale from 1. By Ville's
inequality it ever reaches 1/δ with probability at most δ: every item whose process reached 1/δ is excluded for good,
without a union over items, leaders or times.

Several experts predict S. Each has a part of M_z and bets it as it predicts, so M_z is a mixture of their products.
Where no question is out when another is planned, the plan may fix one bet for all of them that wastes nothing at the
threshold (`WinnerEvidence.aimed_bets`). Their parts are then divided again, by how well each has bet on its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from surepick._arrays import Booleans, Floats, Integers

MODEL, RECORD, FIXED = 0.6, 0.2, 0.2
"""Shares of the experts: the predictive model, the pair's own record, and a few constant bets."""

CONSTANT_LOSSES = np.array([0.65, 0.85, 0.97])
"""Constant experts: probabilities of losing that they bet on wherever the model expects a loss."""

LEAST_SHARE = 0.01
"""No expert predicts a smaller share: one surprise then costs at most log(f/0.01), 3.9 nats in a comparison."""

MOST_BET = 0.99
"""Largest bet as a share of the most that is allowed, at which a win would end the process."""

MOST_BET_ON_PICK = 0.98
"""Most that an item loses when it is picked, as a share of its wealth."""

MOST_FAIR = 0.999
"""Largest fair share that is bet on: one above it is taken as this, which is less and so still holds."""

OVERSHOOT = 1e-9
"""Nats by which aimed bets go beyond the threshold, so that rounding does not leave an item just short of it."""

REFUTED = 100.0
"""Nats of evidence against an item that no answers left could make the winner: beyond every threshold."""

ROUNDING = 1e-9
"""Sums of scores that differ by less are equal."""

NARROW_LOSS = 0.055
"""Where rankings count by places, an item that is taken to lose is taken to lose by this much beyond one half: one
ranking tells of all items shown, so what decides when a search ends are the rivals that lose narrowly."""

NARROW_MEETINGS = 1000
"""Rankings with two items after which a loss of one to the other is taken to be narrower still, as 1/√n."""

SHARED = 1 / 3
"""Correlation of an item's comparisons with two others in one ranking; exact if all orders are equally likely."""

LOG_SHARES: Floats = np.log([MODEL, RECORD, *(FIXED / len(CONSTANT_LOSSES) for _ in CONSTANT_LOSSES)])

Predicted = tuple[Sequence[float], Sequence[float]]
"""Expected scores of the items shown: by the model, and by the past answers to this very question."""


@dataclass(frozen=True)
class Drawn:
    """What was drawn before of the answers to a question, if each of a fixed number is drawn at most once.

    If the mean of all of them is at least f for an item, the expected score of the next one is at least
    (n·f − Σ)/(n − t), after t of n were drawn and their scores sum to Σ (docs/assumptions.md, "Without replacement").
    """

    total: int
    """n, all answers that there are."""
    before: int
    """t, those drawn, with those that never came."""
    scores: ArrayLike
    """Σ of each item shown, or in rankings of systems of each against each other, items × items. An answer that never
    came is counted as a win of every one: the least that may be left."""

    def fair(self, share: Floats) -> Floats:
        """The fair shares of the next answer, where those of the mean of all answers are `share`."""
        return np.asarray((self.total * share - np.asarray(self.scores)) / (self.total - self.before))

    def after(self, answers: Sequence[tuple[ArrayLike, int]]) -> "Drawn":
        """With these answers drawn as well."""
        scores = sum((times * np.asarray(score) for score, times in answers), np.asarray(self.scores, dtype=np.float64))
        return Drawn(self.total, self.before + sum(times for _, times in answers), scores)

    def refuted(self, share: Floats, answers: Sequence[tuple[ArrayLike, int]]) -> Booleans:
        """Items whose mean would stay below their share if they won every answer that is left after these."""
        after = self.after(answers)
        return np.asarray(self.total * share - np.asarray(after.scores) > self.total - after.before + ROUNDING)


def experts(shares: Predicted, fair: Floats) -> Floats:
    """Predicted shares of all experts for the items of one question: items × experts, each at most the fair share.

    An expert that predicts at least the fair share does not bet: it is given the fair share itself, a factor of 1.
    """
    model, own = (np.asarray(predicted, dtype=np.float64) for predicted in shares)
    # Constant experts bet wherever the model expects less than the fair share, in proportion to it.
    constant = np.where((model < fair)[:, None], 2 * fair[:, None] * (1 - CONSTANT_LOSSES), fair[:, None])
    return np.asarray(np.clip(np.column_stack([model, own, constant]), LEAST_SHARE, fair[:, None]))


def pick_factors(shares: Predicted) -> Floats:
    """Log factors of every item in a pick of one of k, for each expert and each item that may be picked: k × 5 × k.

    The winner z* is at least as likely to be picked as any other item. So for c_u ≥ 0 with Σ c_u ≤ 1 the factor
    1 + c_u if u is picked, and 1 − Σ c_u if z itself is, has a mean of at most 1 for z*. If the shares p are right,
    the largest expected logarithm has (Kelly, by the conditions of Karush, Kuhn and Tucker)

        1 + c_u = p_u/m  and  1 − Σ c_u = p_z/m,    m the largest mean of p over z and some of the others,

    over those others u that raise the mean, and c_u = 0 for the rest. The constant experts bet on the likeliest other
    item alone, wherever the model expects it to be picked before z.
    """
    k = len(shares[0])
    factors = np.ones((k, len(LOG_SHARES), k))
    for expert, predicted in enumerate(shares):
        p = np.asarray(predicted, dtype=np.float64)
        order = np.argsort(-p, kind="stable")
        for z in range(k):
            others = order[order != z]
            means = (p[z] + np.cumsum(p[others])) / np.arange(2, k + 1)
            several = int(np.argmax(means)) + 1
            if means[several - 1] > p[z]:
                # Where shares are equal, rounding may leave a bet a little below zero.
                bets = np.maximum(p[others[:several]] / means[several - 1] - 1, 0.0)
                bets *= MOST_BET_ON_PICK / max(bets.sum(), MOST_BET_ON_PICK)
                factors[z, expert, others[:several]] += bets
                factors[z, expert, z] -= bets.sum()
            if expert == 0 and p[others[0]] > p[z]:
                factors[z, 2:, others[0]] = 2 * CONSTANT_LOSSES
                factors[z, 2:, z] = 2 * (1 - CONSTANT_LOSSES)
    return np.log(factors)


def above_in(order: Sequence[int], k: int) -> Floats:
    """Who is placed above whom in an order of some of k places, as a k × k matrix: 1, 0, or ½ where it is not said."""
    above = np.full((k, k), 0.5)
    left = list(range(k))
    for picked in order:
        left.remove(picked)
        above[picked, left], above[left, picked] = 1.0, 0.0
    return above


def place_bets(lost: Floats, least: Floats, met: Floats, fair: Floats, stretch: float = 1.0) -> list[tuple[int, float]]:
    """Against which other item every item of a ranking bets, and how much; all matrices are items × items.

    Args:
        lost: how far z is taken to lose to u if z is not the winner, from −1 to 1 (`set_stages.losing_to`).
        least: the probability, less one standard error, that u is placed above z.
        met: how often z and u were ranked together before.
        fair: f, the least probability of the winner z* to be above u.
        stretch: n/(n − t) if t of n answers were drawn without replacement: a loss in all of them that is narrow, and
            that those drawn show like the rest, is by this much wider compared with what the rest must have.

    For a bet c ≥ 0 with c·(1 − f) ≤ 1 the factor 1 + c·(f − X), where X is 1 if z is above u and 0 if it is below, is
    not negative and has a mean of at most 1 for z*. The bet is the larger of Kelly's for a narrow loss, times `lost`,
    and Kelly's for the probability `least`. It is against the one u for which it is the largest, in general the best of
    the others: bets on several would share what happened to z.
    """
    k = len(fair)
    narrow = stretch * NARROW_LOSS * np.sqrt(NARROW_MEETINGS / np.maximum(met, NARROW_MEETINGS)) * lost
    certain = (fair + least - 1) / fair
    share = np.clip(np.maximum(2 * narrow, certain), 0.0, MOST_BET)
    np.fill_diagonal(share, -1.0)
    # Of several that are as good, the one that is the likeliest to be above.
    other = np.argmax(share + ROUNDING * least, axis=1)
    each = np.arange(k)
    bets = share[each, other] / (1 - fair[each, other])
    return list(zip(other.tolist(), bets.tolist(), strict=True))


def _allowed(bets: ArrayLike, fair: Floats) -> Floats:
    """Bets within the limits in which no factor is negative, whatever a log says; none at the least fair share.

    The least share stands for all that are smaller, at which a bet would have a mean above 1.
    """
    return np.where(fair > LEAST_SHARE, np.clip(np.asarray(bets, dtype=np.float64), 0.0, MOST_BET / (1 - fair)), 0.0)


def left_of(shares: Predicted, places: Sequence[int]) -> Predicted:
    """The same predictions for a pick from some of the items: each has its share of what these have together."""
    model, own = (np.asarray(predicted, dtype=np.float64)[list(places)] for predicted in shares)
    return (model / model.sum()).tolist(), (own / own.sum()).tolist()


def log_factors(w: Floats, score: Floats, fair: Floats, spread: float = 1.0) -> Floats:
    """log(1 + b·(f − S)) with the bets of `kelly_bets`."""
    return np.asarray(np.log1p(kelly_bets(w, fair, spread) * (fair - score)))


def kelly_bets(w: Floats, fair: Floats, spread: float = 1.0) -> Floats:
    """b = (f − w)/(f·(1 − f) − (1 − spread)·w·(1 − w)) if the share w ≤ f is predicted.

    With spread 1 this b maximises the expected log factor of wins and losses if w is right (Kelly): the factor is
    (1 − w)/(1 − f) after a loss and w/f after a win, and affine in the score between them. Scores between 0 and 1 vary
    less, by `spread`; the denominator is then their mean square about f, and b about the best bet. It is at most
    `MOST_BET`/(1 − f), so no factor is negative.
    """
    bet = (fair - w) / np.maximum(fair * (1 - fair) - (1 - spread) * w * (1 - w), 1e-9)
    return np.asarray(np.minimum(bet, MOST_BET / (1 - fair)))


@dataclass(frozen=True, eq=False)
class WinnerEvidence:
    """The processes of all items, after the answers counted so far.

    With `against`, a frozen leader a, they are those of the epsilon form (docs/assumptions.md, Theorem 2): the fair
    share of another item in its comparisons with a is ½ + eta, where eta is the margin that is tolerated. A winner that
    beats a by more than eta keeps a mean factor of at most 1, so its process stays small.
    """

    log_wealth: Floats
    """Items × experts: the log of each expert's part of M_z, over its share."""
    own: Floats
    """Items × experts: the log of what each would have made of its share by its own bets alone."""
    reached: Floats
    """Largest log M_z so far; what was reached once stays reached (Ville)."""
    against: int = -1
    eta: float = 0.0

    @classmethod
    def of(cls, items: int, against: int = -1, eta: float = 0.0) -> "WinnerEvidence":
        """Before the first answer: every process is 1."""
        nothing = np.zeros((items, len(LOG_SHARES)))
        return cls(nothing, nothing, np.zeros(items), against, eta)

    def aimed_bets(
        self, shown: Sequence[int], shares: Predicted, threshold: float, drawn: Drawn | None = None
    ) -> list[float]:
        """Bets on the next answer to a question, with which a whole number of losses leads exactly to the threshold.

        The experts' bet b gains log(1 + b·f) when the item loses. So it takes n = missing/log(1 + b·f) losses in a row,
        rounded up, and the last of them overshoots. The bet that gains missing/n with n rounded to a whole number, at
        least 1, wastes nothing: it keeps more if the item wins, or ends one loss sooner. If the probability of losing
        is known, this saves 3 to 11% of the questions (docs/assumptions.md, "Bets that aim at the threshold").

        `threshold` is the log M_z at which an item is excluded. An item that is beyond it bets as the experts do.
        """
        items, fair = np.asarray(shown), self._fair(shown, drawn)
        bets = np.sum(np.exp(self._parts(items)) * kelly_bets(experts(shares, fair), fair[:, None]), axis=1)
        missing = threshold - self._mixture(self.log_wealth[items]) + OVERSHOOT
        aims = (bets > 0) & (missing > OVERSHOOT)
        steps = np.maximum(np.floor(missing[aims] / np.log1p(bets[aims] * fair[aims]) + 0.5), 1.0)
        aimed = np.expm1(missing[aims] / steps) / fair[aims]
        bets[aims] = np.minimum(aimed, MOST_BET / (1 - fair[aims]))
        return [float(bet) for bet in bets]

    def update(
        self,
        shown: Sequence[int],
        shares: Predicted,
        answers: Sequence[tuple[ArrayLike, int]],
        spread: float = 1.0,
        drawn: Drawn | None = None,
        bets: Sequence[float] | None = None,
    ) -> "WinnerEvidence":
        """Count answers to one question, as one step.

        Args:
            shown: numbers of the items that the question showed, each once.
            shares: what the model and the record predicted before the answers, for each item shown.
            answers: scores of the items shown, each in [0, 1], and how often they occurred. A missing answer that may
                depend on what it would have been is counted as a win of every item shown: the factor falls as the score
                rises, so this is the worst for each process, whatever the answer was.
            spread: the variance of scores as a share of that of wins and losses, as predicted before the answers.
            drawn: what was drawn before, if the answers are drawn without replacement.
            bets: what each item shown bets on a single answer, if that was fixed before it (`aimed_bets`); otherwise
                the experts' mixture.
        """
        items, fair = np.asarray(shown), self._fair(shown, drawn)
        predicted = experts(shares, fair)
        wealth, gained = self.log_wealth[items], np.zeros((len(items), len(LOG_SHARES)))
        if bets is not None:
            # Divided again whether or not there is an answer: so later bets do not depend on whether one came.
            wealth = self._mixture(wealth)[:, None] + self._parts(items) - LOG_SHARES
        for scores, times in answers:
            if times:
                score = np.asarray(scores, dtype=np.float64)
                factors = log_factors(predicted, score[:, None], fair[:, None], spread)
                gained += times * factors
                if bets is not None:
                    factors = np.log1p(_allowed(bets, fair) * (fair - score))[:, None]
                wealth += times * factors
        if drawn is not None:
            wealth[drawn.refuted(self._fair(shown), answers)] = REFUTED
        return self._with(items, wealth, gained)

    def _parts(self, items: Integers) -> Floats:
        """The log of the part of M_z that each expert deserves by its own bets: items × experts."""
        return np.asarray(self.own[items] + LOG_SHARES - self._mixture(self.own[items])[:, None])

    def _mixture(self, log_wealth: Floats) -> Floats:
        """log M_z of items with this log wealth of their experts."""
        return np.asarray(np.logaddexp.reduce(log_wealth + LOG_SHARES, axis=1))

    def _fair(self, shown: Sequence[int], drawn: Drawn | None = None) -> Floats:
        """The fair share of each item of a question."""
        items = np.asarray(shown)
        fair = np.full(len(items), 1 / len(items))
        fair[(items != self.against) & np.any(items == self.against)] += self.eta
        # At the least share nobody bets, so it may stand for all that are smaller.
        return fair if drawn is None else np.clip(drawn.fair(fair), LEAST_SHARE, MOST_FAIR)

    def after_order(self, shown: Sequence[int], shares: Predicted, order: Sequence[int]) -> "WinnerEvidence":
        """Count one answer to a question about a set: a pick, or a ranking, which is picks one after the other.

        Args:
            shown: numbers of the items that the question showed, each once.
            shares: predicted before the answer for a pick from all of them. Those that are left after earlier picks are
                predicted in the same proportions, as in the model of Plackett and Luce.
            order: places among `shown`, the best first.

        Each pick is one step: the bets on it may depend on the picks before it.
        """
        process, left = self, list(range(len(shown)))
        for picked in order:
            items = np.asarray(shown)[left]
            factors = self._pick_factors(items, left_of(shares, left), left.index(picked))
            process = process._with(items, process.log_wealth[items] + factors, factors)
            left.remove(picked)
        return process

    def after_rankings(
        self,
        shown: Sequence[int],
        bets: Sequence[tuple[int, float]],
        answers: Sequence[tuple[Floats, int]],
        drawn: Drawn | None = None,
    ) -> "WinnerEvidence":
        """Count rankings of one set by who is placed above whom, as one step.

        Args:
            shown: numbers of the items that the question showed, each once.
            bets: for each of them against which place, and how much, fixed before the answers (`place_bets`). All
                experts bet the same.
            answers: who was above whom (`above_in`), and how often. Ones stand for an answer that is missing for what
                it would have been: every item may have been above all others.
            drawn: what was drawn before, if the answers are drawn without replacement.
        """
        items, each = np.asarray(shown), np.arange(len(shown))
        other = np.array([place for place, _ in bets])
        fair = self.place_shares(shown, drawn)[each, other]
        allowed = _allowed([bet for _, bet in bets], fair)
        gained = np.zeros((len(items), 1))
        for above, times in answers:
            gained[:, 0] += times * np.log1p(allowed * (fair - above[each, other]))
        wealth = self.log_wealth[items] + gained
        if drawn is not None:
            behind = drawn.refuted(self.place_shares(shown), answers) & (each[:, None] != each)
            wealth[behind.any(axis=1)] = REFUTED
        return self._with(items, wealth, gained)

    def place_shares(self, shown: Sequence[int], drawn: Drawn | None = None) -> Floats:
        """The fair share of every item of a ranking against every other: ½, or ½ + eta against the frozen leader."""
        items = np.asarray(shown)
        fair = np.full((len(items), len(items)), 0.5)
        fair[:, items == self.against] += self.eta
        return fair if drawn is None else np.clip(drawn.fair(fair), LEAST_SHARE, MOST_FAIR)

    def charge_order(self, shown: Sequence[int], shares: Predicted, left: Sequence[int]) -> "WinnerEvidence":
        """Count for each item that is left the worst way in which the rest of an order may have gone.

        An item gains with every pick that is not its own, and loses only when it is picked: most where all others are
        still there, or where only the leader of the epsilon form is gone.
        """
        items = np.asarray(shown)[list(left)]
        least = np.zeros((len(items), len(LOG_SHARES)))
        for kept in (list(left), [place for place in left if shown[place] != self.against]):
            for place in kept if len(kept) > 1 else ():  # who is left alone is not picked from anything
                own = list(left).index(place)
                factors = self._pick_factors(np.asarray(shown)[kept], left_of(shares, kept), kept.index(place))
                least[own] = np.minimum(least[own], factors[kept.index(place)])
        return self._with(items, self.log_wealth[items] + least, least)

    def _pick_factors(self, items: Integers, shares: Predicted, picked: int) -> Floats:
        """Log factors of one pick, items × experts.

        In the epsilon form, an item that is shown with the leader a bets on the two of them alone: its fair share is
        ½ + eta if one of the two is picked, and otherwise its factor is 1.
        """
        factors = pick_factors(shares)[:, :, picked]
        if self.against in items:
            leader = int(np.flatnonzero(items == self.against)[0])
            fair = np.array([0.5 + self.eta])
            for place in np.flatnonzero(items != self.against).tolist():
                model, own = left_of(shares, (place, leader))
                w = experts((model[:1], own[:1]), fair)
                score = np.array([float(picked == place)])
                factors[place] = log_factors(w, score, fair) if picked in (place, leader) else 0.0
        return factors

    def _with(self, items: Integers, wealth: Floats, gained: Floats) -> "WinnerEvidence":
        """With this log wealth of some items, what their experts gained by their own bets, and what was reached."""
        log_wealth, own, reached = self.log_wealth.copy(), self.own.copy(), self.reached.copy()
        log_wealth[items] = wealth
        own[items] += gained
        reached[items] = np.maximum(reached[items], self._mixture(wealth))
        return replace(self, log_wealth=log_wealth, own=own, reached=reached)

    def surviving(self, delta: float) -> Integers:
        """Items that are not excluded at risk delta: a confidence set for the winner, valid at all times."""
        return np.flatnonzero(self.reached < math.log(1 / delta))
