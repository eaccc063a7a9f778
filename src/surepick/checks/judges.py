"""Judges: does somebody answer at random, or always the same side?"""

import math

import numpy as np
import scipy  # its parts load when first used: scipy.stats takes longer than importing all of surepick
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

from surepick import validate
from surepick._arrays import Booleans, Floats
from surepick.checks.position_and_ties import log_fair_coin
from surepick.checks.prequential import CERTAIN, MOST_ITEMS, of_items
from surepick.checks.repeats import repeats_of
from surepick.checks.table import Answers, Check, Counted, e_value, exceeds
from surepick.glm import probability_of_yes
from surepick.glm.fit import CountProblem
from surepick.guarantee import Guarantee
from surepick.linalg import norms, span_of

FEWEST = 8
"""Judges with fewer decisive answers are not checked."""

OWN_RIDGES = (1.0, 0.1)
"""Priors of a judge's own taste, in the same unit: it is not near zero, or coin tosses would be a taste."""

CLEARLY = math.log(2)
"""Nats by which a coin must beat a judge's own taste."""

REPEATING = 0.1
"""A judge whose repeated answers a coin would equal with at most this probability has a taste."""

PLAINLY = 3.0
"""Nats by which the common taste must predict a judge better than a coin, at a low estimate, to be believed at once."""

RIDGES = (10.0, 1.0, 0.1, 0.01)
"""Priors of θ: normal with these precisions where the longest vector asked has length one; one more is θ = 0."""


def random_judges(answers: Answers, *, level: float = 0.05) -> Check:
    """Does a judge toss a coin where the others share a taste?

    For each judge the Bayes factor of "coin tosses" against "the same θ as all others", with θ drawn from a normal
    prior of one of several widths and Laplace's approximation of the integrals. Apart from that approximation it is
    exact on average over the prior; not proved for every θ, so heuristic (docs/checks.md, 4). A judge with a taste of
    its own is not accused: see `_has_own_taste` and `_repeats_itself`.
    """
    level = validate.probability("level", level)
    rows = _rows_of_judges(answers)
    nats: dict[str, float] = {}
    suspected = list(rows) if len(rows) > 1 else []
    # First by features, then by scores of items, so that features which explain little accuse nobody.
    for coordinates in _coordinates(answers) if suspected else ():
        found = _shared(answers, _against_coins(answers.counted, coordinates, {name: rows[name] for name in suspected}))
        nats |= {name: min(value, nats.get(name, math.inf)) for name, value in found.items()}
        suspected = [name for name in suspected if exceeds(nats[name], level)]
    excused = [name for name in suspected if _repeats_itself(answers, name) or _has_own_taste(answers, rows[name])]
    nats |= dict.fromkeys(excused, 0.0)  # a smaller e-value keeps its level
    accused = tuple(name for name in suspected if name not in excused)
    if accused:
        sentence = (
            f"{_listed(accused)} as if tossing a coin: the others' taste predicts {_them(accused)} worse than chance, "
            f"and no taste of their own shows. Read these answers, and leave {_them(accused)} out of a new search if "
            "they were careless."
        )
    elif len(rows) < 2:
        sentence = f"Not checked: it takes two judges with at least {FEWEST} decisive answers each."
    else:
        sentence = f"None of {len(rows)} judges seems to toss a coin."
    return Check(
        "random judges",
        level,
        bool(accused),
        e_value(max(nats.values(), default=0.0)),
        sentence,
        "All judges share one taste.",
        Guarantee.HEURISTIC,
        (
            "features",
            "population",
        ),  # a coin gives every item its fair share, but it follows another θ than the others: zero
        accused,
    )


def one_sided_judges(answers: Answers, *, level: float = 0.05) -> Check:
    """Does a judge choose one side, whatever is shown there?

    Needs orders drawn by a fair coin; then a judge for whom they do not matter picks the first with probability exactly
    1/2. Evidence against that coin, judge by judge. Proved (docs/checks.md, 2).
    """
    level = validate.probability("level", level)
    rows = _rows_of_judges(answers) if answers.shuffled else {}
    firsts = {name: answers.first_won[mine[answers.of_a_pair[answers.decisive]]] for name, mine in rows.items()}
    nats = _shared(answers, {name: log_fair_coin(int(said.sum()), len(said)) for name, said in firsts.items()})
    accused = tuple(name for name, value in nats.items() if exceeds(value, level))
    if accused:
        sides = ", ".join(f"{firsts[name].mean():.0%} of {len(firsts[name]):,} answers" for name in accused)
        sentence = (
            f"{_listed(accused)} by the side, not by the item (for the first shown: {sides}). Read these answers, and "
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
        ("features", "population"),  # sides drawn by a coin give every item its fair share
        accused,
    )


def _rows_of_judges(answers: Answers) -> dict[str, Booleans]:
    """Which decisive answers are whose, of judges with enough of them."""
    return {name: mine for name, mine in answers.of_judges.items() if mine.sum() >= FEWEST}


def _shared(answers: Answers, nats: dict[str, float]) -> dict[str, float]:
    """Evidence less the price of checking many judges: the k-th to appear has 1/(k(k+1)) of the level, always."""
    # The order of appearance is fixed, so a judge's share does not change as others join; the shares sum to one.
    present = dict.fromkeys(name for name in answers.judges if name is not None)
    place = {name: k for k, name in enumerate(present, 1)}
    return {name: value - math.log(place[name] * (place[name] + 1)) for name, value in nats.items()}


def _against_coins(counted: Counted, rows: Floats, judges: dict[str, Booleans]) -> dict[str, float]:
    """Nats for each judge: log of coin tosses times the others' evidence, over the evidence of all.

    Fits without a judge take most of the time; they are left out for judges whom the common fit predicts `PLAINLY`.
    """
    all_pulls, all_wins = counted.of()
    parts, theta = _log_marginals(rows, all_pulls, all_wins)
    together = _mean([*parts, _coins(all_pulls)])
    likeliest = int(np.argmax(parts))
    precision = RIDGES[likeliest] * float(np.max(norms(rows), initial=0.0)) ** 2
    common = _CommonFit(rows, all_pulls, theta[likeliest], precision) if rows.any() else None
    result = {}
    for name, mine in judges.items():
        pulls, wins = counted.of(mine)
        rough = math.inf if common is None else _coins(pulls) - common.least_without(pulls, wins)
        if rough <= -PLAINLY:
            result[name] = rough
            continue
        parts, _ = _log_marginals(rows, all_pulls - pulls, all_wins - wins, start=theta)
        result[name] = _mean([*parts, _coins(all_pulls - pulls)]) - together + _coins(pulls)
    return result


class _CommonFit:
    """How well a fit to all answers would predict some of them without having seen them: a low estimate."""

    def __init__(self, rows: Floats, pulls: Floats, theta: Floats, ridge: float) -> None:
        self.rows = rows
        self.p = np.clip(probability_of_yes(rows @ theta), CERTAIN, 1 - CERTAIN)
        information = rows.T @ (rows * (pulls * self.p * (1 - self.p))[:, None])
        self.shape = cho_factor(information + ridge * np.eye(rows.shape[1]))

    def least_without(self, pulls: Floats, wins: Floats) -> float:
        """Their log-likelihood, less twice what the fit owes to them.

        To first order the log-likelihood falls by gᵀH⁻¹g if they are left out, with their gradient g, and the evidence
        by half their leverage besides.
        """
        asked = np.flatnonzero(pulls)
        x, p, n, won = self.rows[asked], self.p[asked], pulls[asked], wins[asked]
        gradient = x.T @ (won - n * p)
        leverage = float(np.sum(cho_solve(self.shape, x.T) * (x * (n * p * (1 - p))[:, None]).T))
        owed = float(gradient @ cho_solve(self.shape, gradient)) + leverage
        return float(won @ np.log(p) + (n - won) @ np.log(1 - p)) - 2 * owed


def _has_own_taste(answers: Answers, mine: Booleans) -> bool:
    """Whether coin tosses do not explain a judge's answers clearly better than a taste drawn from the prior does.

    Where a few answers on many items cannot tell, both explain them about equally, and the judge is excused.
    """
    pulls, wins = answers.counted.of(mine)
    own = [_mean(_log_marginals(rows, pulls, wins, OWN_RIDGES)[0]) for rows in _coordinates(answers)]
    return _mean(own) > _coins(pulls) - CLEARLY


def _repeats_itself(answers: Answers, name: str) -> bool:
    """Whether a judge gives the same answer to the same question again more often than a coin would."""
    number = answers.judges.index(name)
    found = repeats_of(answers).get(int(answers.judge[number]))
    return found is not None and bool(scipy.stats.binom.sf(found.agreed - 1, found.count, 0.5) <= REPEATING)


def _coordinates(answers: Answers) -> list[Floats]:
    """The distinct questions in coordinates of their features, and of the items where those are more."""
    counted, items = answers.counted, len(answers.names)
    systems = [counted.rows]
    if counted.rows.shape[1] + 1 < items <= MOST_ITEMS:
        systems.append(of_items(counted, items))
    return [span_of(rows).coordinates(rows) for rows in systems if rows.any()] or [np.zeros((len(counted.rows), 0))]


def _log_marginals(
    rows: Floats, pulls: Floats, wins: Floats, ridges: tuple[float, ...] = RIDGES, *, start: Floats | None = None
) -> tuple[list[float], Floats]:
    """Log-probability of the answers with θ drawn from each prior (Laplace), and where each posterior peaks."""
    asked = np.flatnonzero(pulls)
    peaks = np.zeros((len(ridges), rows.shape[1])) if start is None else start.copy()
    if not len(asked) or not rows[asked].any():
        return [_coins(pulls)] * len(ridges), peaks
    problem = CountProblem(rows[asked], pulls[asked], wins[asked])
    longest = float(np.max(norms(rows)))
    parts = []
    for place, ridge in enumerate(np.array(ridges) * longest**2):
        found = problem.solve(ridge=float(ridge), start=peaks[place], tolerance=1e-3, max_iterations=50)
        peaks[place] = found.theta
        # Laplace: −loss − ½·ridge·‖θ‖² at the peak, less half the log-determinant of information relative to the prior.
        _, log_det = np.linalg.slogdet(np.eye(rows.shape[1]) + found.information / ridge)
        parts.append(-found.loss - float(ridge) / 2 * float(found.theta @ found.theta) - float(log_det) / 2)
    return parts, peaks


def _mean(logs: list[float]) -> float:
    """Log of the mean of exponentials."""
    return float(logsumexp(logs)) - math.log(len(logs))


def _coins(pulls: Floats) -> float:
    """Log-probability of the answers if all are coin tosses."""
    return -float(pulls.sum()) * math.log(2)


def _listed(names: tuple[str, ...]) -> str:
    """A subject and its verb."""
    if len(names) == 1:
        return f"Judge {names[0]} answers"
    return f"Judges {', '.join(names[:-1])} and {names[-1]} answer"


def _them(names: tuple[str, ...]) -> str:
    return "this judge" if len(names) == 1 else "these judges"
