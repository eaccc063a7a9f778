"""What a contextual policy is: a frozen configuration with three pure functions of an explicit state.

`start(dimension) -> state`, `choose(state, arms, rng) -> Choice`, `learn(state, arms, choice, reward) -> state`.
Choosing never changes the state. A learnt state may share the memory of old answers with the state it came from, which
stays valid all the same: histories only ever grow, and one that grows twice is copied (`history`).
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual import kernels
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Choice:
    """An arm, and what must be remembered of how it came to be chosen until its reward arrives."""

    index: int
    propensity: float = 1.0
    """Probability with which the policy chose this arm, given its state and the arms."""
    bucket: int = -1
    """Where a Sup policy stores the reward; decided when choosing, because rewards may come late."""


@dataclass(frozen=True)
class Facts:
    """What a policy promises and what it costs."""

    guarantee: Guarantee
    statement: str
    """What is claimed, and where it is proved."""
    assumptions: tuple[str, ...]
    cost: str
    """Time and memory of a step; d the dimension, K the number of arms, t the steps so far."""


class ContextualPolicy(Protocol[State]):
    """The interface of all contextual policies."""

    @property
    def name(self) -> str:
        """The policy's name on the command line."""
        ...

    @property
    def facts(self) -> Facts:
        """Assumptions, guarantee and cost of this configuration."""
        ...

    def start(self, dimension: int) -> State:
        """The state before any reward, for arms of this dimension."""
        ...

    def choose(self, state: State, arms: Floats, rng: np.random.Generator) -> Choice:
        """Choose one of the arms (rows). Changes nothing."""
        ...

    def learn(self, state: State, arms: Floats, choice: Choice, reward: float) -> State:
        """The state after the reward (0 or 1) of a choice among these arms."""
        ...


AnyPolicy = ContextualPolicy[Any]

LOGISTIC = "rewards are 0 or 1, independent given the chosen arms, with log-odds linear in the features"
SHORT_ARMS = "arms are at most 1 long"
KNOWN_NORM = "norm_bound is at least the length of the true parameter"
FRESH_CONTEXTS = "the arms offered do not depend on earlier choices or rewards"


@dataclass(frozen=True)
class NormBounded:
    """Configuration of policies that know a bound of the norm of θ*."""

    norm_bound: float
    delta: float = 0.05

    def __post_init__(self) -> None:
        validate.positive("norm_bound", self.norm_bound)
        validate.probability("delta", self.delta)


def clean_arms(arms: Any, dimension: int) -> Floats:
    """Return the arms as a finite float matrix of `dimension` columns and at least one row."""
    if (
        isinstance(arms, np.ndarray)
        and arms.dtype == np.float64
        and arms.ndim == 2
        and arms.shape[1] == dimension
        and len(arms)
        and arms.flags.c_contiguous
    ):
        # The common case at the price of one pass; NaN compares false.
        largest = kernels.largest_entry(arms)
        if 1e-100 < largest < 1e100 or largest == 0.0:
            return arms
    matrix = validate.matrix("arms", arms)
    if matrix.shape[1] != dimension:
        raise InvalidInput(
            f"arms must have {dimension} columns as at the start, got {matrix.shape[1]}; "
            "a policy learns one set of features, start another one for others."
        )
    return matrix


def announced_arms(arms: Any, dimension: int, most_arms: int | None) -> Floats:
    """Return the arms as `clean_arms` does if they are no more than were announced."""
    offered = clean_arms(arms, dimension)
    if most_arms is not None and len(offered) > most_arms:
        raise InvalidInput(f"At most {most_arms} arms a step were announced, got {len(offered)}; raise most_arms.")
    return offered


def clean_reward(reward: float) -> float:
    """Return the reward if it is 0 or 1."""
    if reward == 0 or reward == 1:
        return float(reward)
    raise InvalidInput(f"reward must be 0 or 1, got {reward!r}; turn other outcomes into a yes or a no first.")


def chosen_vector(arms: Any, choice: Choice, dimension: int) -> Floats:
    """The row of the chosen arm, after checking that it exists."""
    return row_of(clean_arms(arms, dimension), choice)


def row_of(arms: Floats, choice: Choice) -> Floats:
    """The row of the chosen arm in a checked matrix."""
    if not 0 <= choice.index < len(arms):
        raise InvalidInput(f"choice must be one of the {len(arms)} arms (from 0), got {choice.index}.")
    vector: Floats = arms[choice.index]
    return vector


def refit_due(count: int, fitted: int, growth: float) -> bool:
    """Whether the answers grew by the share `growth` since the last full fit, and by one at least."""
    return count - fitted >= max(1, math.floor(growth * fitted))
