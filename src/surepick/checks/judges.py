"""Judges: does somebody answer at random, or always the same side?"""

import math
from collections import defaultdict

import numpy as np
from scipy.special import logsumexp

from surepick import validate
from surepick._arrays import Booleans, Floats
from surepick.checks.position_and_ties import log_fair_coin
from surepick.checks.table import Answers, Check, e_value, exceeds
from surepick.glm.fit import CountProblem
from surepick.guarantee import Guarantee
from surepick.linalg import norms, span_of

FEWEST = 8
"""Judges with fewer decisive answers are not checked."""

RIDGES = (10.0, 1.0, 0.1, 0.01)
"""Priors of θ: normal with these precisions where the longest vector asked has length one; one more is θ = 0."""


def random_judges(answers: Answers, *, level: float = 0.05) -> Check:
    """Does a judge toss a coin where the others share a taste?

    For each judge the Bayes factor of "coin tosses" against "the same θ as all others", with θ drawn from a normal
    prior of one of several widths and Laplace's approximation of the integrals. Apart from that
    approximation it is exact on average over the prior; not proved for every θ, so heuristic (docs/checks.md, 4).
    """
    level = validate.probability("level", level)
    rows = _rows_of_judges(answers)
    nats = _shared(answers, _against_coins(answers, rows))
    accused = tuple(name for name, value in nats.items() if exceeds(value, level))
    if accused:
        sentence = (
            f"{_listed(accused)} as if tossing a coin: the others' taste predicts {_them(accused)} worse than chance. "
            f"Look at these answers, and leave {_them(accused)} out of a new search if they were careless."
        )
    elif len(rows) < 2:
        sentence = f"Not checked: it takes two judges with at least {FEWEST} decisive answers each."
    else:
        sentence = f"None of {len(rows)} judges looks as if tossing a coin."
    return Check(
        "random judges",
        level,
        bool(accused),
        e_value(max(nats.values(), default=0.0)),
        sentence,
        "All judges share one taste.",
        Guarantee.HEURISTIC,
        accused,
    )


def one_sided_judges(answers: Answers, *, level: float = 0.05) -> Check:
    """Does a judge choose one side, whatever is shown there?

    Needs orders drawn by a fair coin; then a judge for whom they do not matter picks the first with probability exactly
    1/2. Evidence against that coin, judge by judge. Proved (docs/checks.md, 2).
    """
    level = validate.probability("level", level)
    rows = _rows_of_judges(answers) if answers.shuffled else {}
    firsts = {name: answers.said[mine & answers.of_a_pair] for name, mine in rows.items()}
    nats = _shared(answers, {name: log_fair_coin(int(said.sum()), len(said)) for name, said in firsts.items()})
    accused = tuple(name for name, value in nats.items() if exceeds(value, level))
    if accused:
        sides = ", ".join(f"{name} {firsts[name].mean():.0%} of {len(firsts[name]):,}" for name in accused)
        sentence = (
            f"{_listed(accused)} by the side, not by the item (the first shown: {sides}). Look at these answers, and "
            f"leave {_them(accused)} out of a new search if they were careless."
        )
    elif rows:
        sentence = f"None of {len(rows)} judges prefers a side beyond chance."
    else:
        sentence = f"Not checked: it takes judges with at least {FEWEST} decisive answers and orders drawn at random."
    return Check(
        "one-sided judges",
        level,
        bool(accused),
        e_value(max(nats.values(), default=0.0)),
        sentence,
        "The order shown was drawn by a fair coin and does not change what a judge answers.",
        Guarantee.PROVED,
        accused,
    )


def _rows_of_judges(answers: Answers) -> dict[str, Booleans]:
    """The rows of each judge with enough decisive answers, in the order in which they reached that number."""
    rows = defaultdict[str, list[int]](list)
    for row in np.flatnonzero(answers.decisive):
        name = answers.judges[row]
        if name is not None:
            rows[name].append(int(row))
    enough = sorted((mine[FEWEST - 1], name) for name, mine in rows.items() if len(mine) >= FEWEST)
    numbers = np.arange(len(answers.said))
    return {name: np.isin(numbers, rows[name]) for _, name in enough}


def _shared(answers: Answers, nats: dict[str, float]) -> dict[str, float]:
    """Evidence less the price of checking many judges: the k-th to appear has 1/(k(k+1)) of the level, always."""
    # The order of appearance is fixed, so a judge's share does not change as others join; the shares sum to one.
    present = dict.fromkeys(name for name in answers.judges if name is not None)
    place = {name: k for k, name in enumerate(present, 1)}
    return {name: value - math.log(place[name] * (place[name] + 1)) for name, value in nats.items()}


def _against_coins(answers: Answers, judges: dict[str, Booleans]) -> dict[str, float]:
    """Nats for each judge: log of coin tosses times the others' evidence, over the evidence of all."""
    if len(judges) < 2:
        return {}
    counted = answers.counted
    span = span_of(counted.rows) if counted.rows.any() else None
    if span is None:
        return dict.fromkeys(judges, 0.0)
    rows = span.coordinates(counted.rows)
    all_pulls, all_wins = counted.of()
    together, theta = _log_marginal(rows, all_pulls, all_wins, np.zeros((len(RIDGES), rows.shape[1])))
    result = {}
    for name, mine in judges.items():
        pulls, wins = counted.of(mine[answers.decisive])
        others, _ = _log_marginal(rows, all_pulls - pulls, all_wins - wins, theta)
        result[name] = others - together - float(pulls.sum()) * math.log(2)
    return result


def _log_marginal(rows: Floats, pulls: Floats, wins: Floats, start: Floats) -> tuple[float, Floats]:
    """Log-probability of the answers with θ drawn from the prior (Laplace), and where each prior's posterior peaks."""
    asked = np.flatnonzero(pulls)
    coins = -float(pulls.sum()) * math.log(2)
    if not len(asked):
        return 0.0, start
    problem = CountProblem(rows[asked], pulls[asked], wins[asked])
    longest = float(np.max(norms(rows)))
    peaks, parts = start.copy(), [coins]
    for place, ridge in enumerate(np.array(RIDGES) * longest**2):
        found = problem.solve(ridge=float(ridge), start=start[place], tolerance=1e-3, max_iterations=50)
        peaks[place] = found.theta
        # Laplace: −loss − ½·ridge·‖θ‖² at the peak, less half the log-determinant of information relative to the prior.
        _, log_det = np.linalg.slogdet(np.eye(rows.shape[1]) + found.information / ridge)
        parts.append(-found.loss - float(ridge) / 2 * float(found.theta @ found.theta) - float(log_det) / 2)
    return float(logsumexp(parts)) - math.log(len(parts)), peaks


def _listed(names: tuple[str, ...]) -> str:
    """A subject and its verb."""
    if len(names) == 1:
        return f"{names[0]} answers"
    return f"{', '.join(names[:-1])} and {names[-1]} answer"


def _them(names: tuple[str, ...]) -> str:
    return "this judge" if len(names) == 1 else "these judges"
