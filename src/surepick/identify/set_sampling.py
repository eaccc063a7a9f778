"""Which sets of items Winner shows next: the likeliest best item with rivals, by greedy growth of expected evidence.

No guarantee depends on it, only the number of questions (docs/assumptions.md, "Picks and rankings").
"""

from collections import Counter
from collections.abc import Collection
from itertools import combinations

import numpy as np

from surepick._arrays import Floats
from surepick.glm.item_scores import PROBIT
from surepick.glm.loss import probability_of_yes
from surepick.identify.policy import StageRecord
from surepick.identify.winner_sampling import SPARE, TRIES
from surepick.identify.winner_state import WinnerState

HEADS = 5
"""Items that may take the leader's place in a set for a judge who has seen the leader with every rival."""

CANDIDATES = 60
"""Items that are tried for each place of a set: those nearest to the leader."""

LEAST_RATE = 0.002
"""Nats per comparison with the leader, below which rivals are taken for equally slow."""


def choose_sets(
    state: WinnerState, size: int, rng: np.random.Generator, without: Collection[int] | None
) -> dict[int, int] | None:
    """Which sets to show, and how often: the leader, a rival drawn as for comparisons, and others one by one.

    The rival z standard errors behind is drawn with weight exp(−z²/2). Every further item is the one with which the
    evidence is expected to grow most, in questions that it would otherwise take: a nat against a rival counts as many
    as comparisons with the leader would be needed for it. Excluded items may help, too: those left lose against them.

    None where the questions out are expected to exclude every rival. With `without`, even if it is empty, one set is
    chosen, of items of which no two were shown together in those: a judge may remember what they said of two items.
    Empty where there is none.
    """
    if len(state.alive) == 1:
        return _confirming_set(state, without or ())
    leader, beliefs, problem = state.leader, state.beliefs, state.problem
    rivals = state.rivals
    lacking = np.maximum(state.needed + SPARE - _expected_nats(state), 0.0)
    wanting = rivals[lacking[rivals] > 0]
    if not len(wanting):
        return None
    scores, deviations = beliefs.scores(), beliefs.deviations_from(leader)
    z = np.maximum(scores[leader] - scores, 0.0) / deviations
    gaps = (scores - scores[leader]) / np.sqrt(1 + PROBIT * deviations**2)
    weights = np.zeros(len(scores))
    weights[wanting] = 1 / np.maximum(_comparison_growth(gaps[wanting]), LEAST_RATE)
    near = np.argsort(-scores)[:CANDIDATES]
    candidates = np.union1d(near, wanting[np.argsort(z[wanting], kind="stable")[:CANDIDATES]])
    met = problem.shown_together(without or ())

    def chosen_with(head: int) -> list[int]:
        """A set with this item; shorter than it should be where no other item fits."""
        fitting = wanting[~met[head, wanting] & (wanting != head)]
        if not len(fitting):
            return [head]
        odds = np.exp(-(z[fitting] ** 2 - np.min(z[fitting]) ** 2) / 2)
        chosen = [head, int(rng.choice(fitting, p=odds / odds.sum()))]
        while len(chosen) < problem.show:
            unmet = np.flatnonzero(~met[:, chosen].any(axis=1))
            others = np.setdiff1d(np.intersect1d(candidates, unmet), chosen)
            if len(chosen) + len(others) < problem.show:  # so few items that the candidates are used up
                others = np.setdiff1d(unmet, chosen)
            if not len(others):
                break
            sets = np.column_stack([np.tile(chosen, (len(others), 1)), others])
            growth = expected_growth(gaps[sets], min(problem.top, sets.shape[1] - 1))
            value = np.sum(weights[sets] * np.minimum(growth, lacking[sets]), axis=1)
            # Where nothing is known yet all are alike, and chance decides.
            chosen.append(int(others[np.argmax(value + 1e-9 * rng.random(len(others)))]))
        return chosen

    if without is None:
        return Counter(problem.number_of(chosen_with(leader)) for _ in range(size))
    for head in (leader, *near[near != leader][:HEADS].tolist()):
        chosen = chosen_with(head)
        if len(chosen) == problem.show:
            return {problem.number_of(chosen): 1}
    return {}


def choose_rankings(
    state: WinnerState, size: int, rng: np.random.Generator, without: Collection[int] | None
) -> dict[int, int] | None:
    """Which sets to rank where a ranking counts by places, and how often.

    The evidence against an item comes from its comparisons with better ones, above all with the best. So a set has the
    leader and as many rivals as it shows, drawn as for comparisons: one that is z standard errors behind with weight
    exp(−z²/2). None and empty as in `choose_sets`; sets in `without` are not asked.
    """
    problem, beliefs = state.problem, state.beliefs
    if len(state.alive) == 1:
        return _confirming_set(state, without or ())
    leader, rivals = state.leader, state.rivals
    wanting = rivals[_expected_nats(state)[rivals] < state.needed + SPARE]
    if not len(wanting):
        return None
    scores = beliefs.scores()
    z = np.maximum(scores[leader] - scores, 0.0) / beliefs.deviations_from(leader)

    def drawn() -> int:
        """The number of a set."""
        # The largest of log-weights plus independent Gumbel noise are a draw without replacement.
        keys = np.where(np.isin(np.arange(len(scores)), wanting), -(z**2) / 2, -np.inf)
        keys = keys + rng.gumbel(size=len(keys))
        keys[leader] = np.inf
        # Beyond the rivals the best ones: items that are left may lose to them as well.
        order = np.lexsort((-scores, -keys))
        return problem.number_of(order[: problem.show].tolist())

    if without is None:
        return Counter(drawn() for _ in range(size))
    found = next((row for row in (drawn() for _ in range(TRIES)) if row not in without), None)
    return {} if found is None else {found: 1}


def _confirming_set(state: WinnerState, without: Collection[int]) -> dict[int, int] | None:
    """The last survivor with items that it has not met or that are ahead of it; None where they are out already."""
    problem, survivor = state.problem, int(state.alive[0])
    out = [problem.shown(row) for stage in state.stages[state.evaluated_stages :] for row in _asked(stage)]
    wanted = [item for item in state.unconfirmed.tolist() if not any(item in shown for shown in out)]
    if not wanted:
        return None
    met = problem.shown_together(without)
    chosen = [survivor]
    for item in (*wanted, *(other for other in np.argsort(-state.beliefs.scores()).tolist() if other not in wanted)):
        if len(chosen) < problem.show and item not in chosen and not met[item, chosen].any():
            chosen.append(item)
    return {problem.number_of(chosen): 1} if len(chosen) == problem.show and set(chosen) & set(wanted) else {}


def _asked(stage: StageRecord) -> list[int]:
    numbers: list[int] = stage.plan.measurements.tolist()
    return numbers


def _expected_nats(state: WinnerState) -> Floats:
    """Evidence against each item that is there or expected from the questions that are out."""
    nats = state.evidence.reached.copy()
    scores = state.beliefs.scores()
    for stage in state.stages[state.evaluated_stages :]:
        for row, times in zip(_asked(stage), stage.plan.pulls.tolist(), strict=True):
            shown = list(state.problem.shown(row))
            if state.problem.by_places:
                nats[shown] += times * place_growth(scores[shown])
            else:
                nats[shown] += times * expected_growth(scores[None, shown], state.problem.top)[0]
    return nats


def place_growth(scores: Floats) -> Floats:
    """Nats that a ranking is expected to bring against each item, which bets against the best of the others."""
    order = np.argsort(-scores)
    best = np.where(np.arange(len(scores)) == order[0], scores[order[1]], scores[order[0]])
    return _comparison_growth(np.minimum(scores - best, 0.0))


def _comparison_growth(gaps: Floats) -> Floats:
    """Nats that a comparison with the leader is expected to bring against items with these gaps to it."""
    p = probability_of_yes(gaps)
    return np.asarray(pick_growth(np.column_stack([p, 1 - p]))[:, 0])


def expected_growth(scores: Floats, top: int) -> Floats:
    """Nats that a ranking of the top places is expected to bring against each item of some sets, if scores are right.

    Args:
        scores: sets × items, in log-odds.
        top: places of the ranking.

    O(sets·2^k·k).
    """
    count, k = scores.shape
    worth = np.exp(scores - scores.max(axis=1, keepdims=True))
    growth = np.zeros_like(worth)
    reached: dict[tuple[int, ...], Floats] = {tuple(range(k)): np.ones(count)}
    for size in range(k, max(k - top, 1), -1):
        for left in combinations(range(k), size):
            chance, places = reached[left], list(left)
            shares = worth[:, places] / worth[:, places].sum(axis=1, keepdims=True)
            growth[:, places] += chance[:, None] * pick_growth(shares)
            for column, picked in enumerate(places):
                after = tuple(place for place in left if place != picked)
                reached[after] = reached.get(after, 0.0) + chance * shares[:, column]
    return np.asarray(growth)


def pick_growth(shares: Floats) -> Floats:
    """Nats that one pick is expected to bring against each item, by the bets of `evidence.betting.pick_factors`."""
    ranked = -np.sort(-shares, axis=1)
    growth = np.zeros_like(shares)
    k = shares.shape[1]
    for z in range(k):
        p = shares[:, [z]]
        ahead = ranked * (ranked > p)
        means = (p + np.cumsum(ahead, axis=1)) / np.arange(2, k + 2)
        m = np.maximum(means.max(axis=1, keepdims=True), p)
        growth[:, z] = (np.where(ranked > m, ranked * np.log(np.maximum(ranked / m, 1e-300)), 0.0)).sum(axis=1)
        growth[:, z] += (p * np.log(p / m))[:, 0]
    return growth
