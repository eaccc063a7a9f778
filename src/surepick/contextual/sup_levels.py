"""Buckets of a Sup algorithm: each level learns from its own answers only, and is refreshed when it has grown.

A level's estimate and widths stand still until the determinant of its information has grown by REFRESH per dimension
(on average 10% in every direction), then both are renewed from the answers so far. When to renew depends on the chosen
vectors alone, so a level's answers stay independent given its vectors, and the number of full fits is logarithmic.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import kernels
from surepick.contextual.history import History
from surepick.contextual.policy import Choice
from surepick.errors import InvalidInput
from surepick.glm.kernels import inverse, newton

REFRESH = 0.1

TOLERANCE = 1e-6
"""Newton decrement at which a level's estimate counts as the maximum of the likelihood."""

Multiplier = Callable[[int, int, int, float], float]
"""(dimension, level, certificates issued before, largest norm of a stored vector) -> factor of the widths, or inf."""


class Levels(NamedTuple):
    """All levels at once; first axes run over them."""

    histories: tuple[History, ...]
    information: Floats
    """Σ weight·xxᵀ over the stored vectors."""
    current: Floats
    """Its inverse (with a little ridge until it has one), kept up to date to measure growth."""
    growth: Floats
    """Growth of the log-determinant since the last refresh."""
    thetas: Floats
    inverses: Floats
    multipliers: Floats
    certificates: Floats
    """How many finite multipliers were issued."""


def check_levels(
    horizon: int, delta: float, most_arms: int | None, *, alpha: float | None = None, burn_in: int | None = None
) -> None:
    """Refuse what no Sup policy can be configured with."""
    validate.whole("horizon", horizon, least=2)
    validate.probability("delta", delta)
    if alpha is not None:
        validate.positive("alpha", alpha)
    if most_arms is not None:
        validate.whole("most_arms", most_arms)
    if burn_in is not None and not 1 <= burn_in <= horizon:
        raise InvalidInput(f"burn_in must lie between 1 and the horizon {horizon}, got {burn_in}.")


def empty_levels(number: int, dimension: int) -> Levels:
    """Nothing stored: every arm is infinitely wide."""
    ridge = 1e-6  # for `current` alone: no certified width contains it
    return Levels(
        histories=(History.empty(dimension),) * number,
        information=np.zeros((number, dimension, dimension)),
        current=np.tile(np.eye(dimension) / ridge, (number, 1, 1)),
        growth=np.zeros(number),
        thetas=np.zeros((number, dimension)),
        inverses=np.tile(np.eye(dimension) / ridge, (number, 1, 1)),
        multipliers=np.full(number, math.inf),
        certificates=np.zeros(number),
    )


def routed(now: Levels, arms: Floats, horizon: int) -> Choice:
    """The arm to which the levels lead (`kernels.route`), with the bucket for its reward: its level from 1, or −1."""
    last_width = 1.0 / math.sqrt(horizon)
    index, level, kept = kernels.route(arms, now.thetas, now.inverses, now.multipliers, last_width)
    return Choice(int(index), 1.0, level + 1 if kept else -1)


def burn_in_length(horizon: int, dimension: int, burn_in: int | None = None) -> int:
    """The least number of uniform steps: ⌈√(dT)⌉ unless set, and never more than T."""
    return min(horizon, burn_in or math.ceil(math.sqrt(dimension * horizon)))


def stored(now: Levels, level: int, vector: Floats, answer: float, weight: float, multiplier: Multiplier) -> Levels:
    """The levels after one more answer in one of them; O(levels·d²), and full fits that stay rare."""
    if level >= len(now.histories):
        raise InvalidInput(f"choice.bucket must be at most {len(now.histories)}, got {level + 1}.")
    information, current, growth = now.information.copy(), now.current.copy(), now.growth.copy()
    growth[level] += kernels.add_information(information[level], current[level], vector, weight)
    history = now.histories[level].appended(vector, answer)
    histories = (*now.histories[:level], history, *now.histories[level + 1 :])
    after = Levels(histories, information, current, growth, now.thetas, now.inverses, now.multipliers, now.certificates)
    return refreshed(after, level, multiplier) if growth[level] >= REFRESH * len(vector) else after


def refreshed(now: Levels, level: int, multiplier: Multiplier) -> Levels:
    """Renew the estimate, the inverse and the multiplier of one level from all its answers."""
    history = now.histories[level]
    thetas, inverses, multipliers = now.thetas.copy(), now.inverses.copy(), now.multipliers.copy()
    certificates, growth = now.certificates.copy(), now.growth.copy()
    growth[level] = 0.0
    exact = inverse(now.information[level])
    # Until the information has an inverse, the one with a ridge only ranks the arms by how unexplored they are.
    multipliers[level] = math.inf
    inverses[level] = now.current[level]
    if np.isfinite(exact[0, 0]):
        largest = math.sqrt(float(kernels.squared_norms(history.rows, exact).max()))
        multipliers[level] = multiplier(len(exact), level, int(certificates[level]), largest)
        inverses[level] = exact
    if math.isfinite(multipliers[level]):
        certificates[level] += 1
        # The ridge only keeps separated answers from running off; their estimate promises nothing.
        ridge = 1e-12 * float(np.trace(now.information[level]))
        thetas[level] = newton(history.rows, history.answers, history.ones, thetas[level], ridge, TOLERANCE, 60)[0]
    return now._replace(
        growth=growth, thetas=thetas, inverses=inverses, multipliers=multipliers, certificates=certificates
    )


def repeated(one: Levels, number: int) -> Levels:
    """A single level, copied to `number` of them; their histories share memory until they grow (`History.appended`)."""
    histories, *arrays = one
    return Levels(histories * number, *(np.repeat(array, number, axis=0) for array in arrays))


def number_of_levels(horizon: int) -> int:
    """⌈½·log₂ T⌉: at the last of them a width of 2^{−s} is at most 1/√T, so no choice goes beyond."""
    levels = 1
    while 4**levels < horizon:
        levels += 1
    return levels
