"""What checks read, the table of answers, and what they return."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Booleans, Floats, Integers
from surepick._cached import cached_property
from surepick.answer import code_of, read_answer
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee

NOTHING = -1
"""In `Answers.items`: no item at this place."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Questions in the order asked, and the answers to them.

    >>> items = {"red": [1.0, 0.0], "blue": [0.0, 1.0]}
    >>> table = Answers.of_pairs(items, ["red", "blue"], ["blue", "red"], [1, "tie"], judges=["ann", "bob"])
    >>> table.said.tolist(), table.items.tolist()
    ([1, -1], [[0, 1], [1, 0]])
    """

    vectors: Floats
    """The vector of each question, with the sign of the order shown: 1 has probability 1/(1+exp(−xᵀθ*))."""
    said: Integers
    """1 for yes or the first item shown, 0 for no or the second, TIE or SKIP (`surepick.answer`)."""
    items: Integers
    """Numbers of the items shown first and second; NOTHING where there is none."""
    names: tuple[str, ...]
    """Names of all items, asked about or not."""
    judges: tuple[str | None, ...]
    """Who answered, if known."""
    shuffled: bool = True
    """Whether each pair's order was drawn by a fair coin when it was shown, as a session does."""

    @classmethod
    def of_pairs(
        cls,
        items: Mapping[str, ArrayLike],
        first: Sequence[str],
        second: Sequence[str],
        answers: Sequence[int | float | str | None],
        *,
        judges: Sequence[str | None] | None = None,
        shuffled: bool = False,
    ) -> "Answers":
        """Comparisons of items by name.

        An answer is whatever `surepick.answer.read_answer` takes: 1 or 0, "tie", "skip" or None, and other words.
        """
        names = tuple(items)
        features = validate.matrix("items", np.array(list(items.values()), ndmin=1))
        number = {name: place for place, name in enumerate(names)}
        if not len(first) == len(second) == len(answers):
            raise InvalidInput(
                "first, second and answers must have one entry per question, got "
                f"{len(first)}, {len(second)} and {len(answers)}."
            )
        unknown = next((name for name in (*first, *second) if name not in number), None)
        if unknown is not None:
            raise InvalidInput(f"There is no item named {unknown!r}; the first of {len(names)} is {names[0]!r}.")
        shown = np.array([(number[a], number[b]) for a, b in zip(first, second, strict=True)], dtype=np.int64)
        shown = shown.reshape(-1, 2)
        asked_by = (None,) * len(answers) if judges is None else tuple(judges)
        if len(asked_by) != len(answers):
            raise InvalidInput(
                f"judges must have one entry per answer, got {len(asked_by)} for {len(answers)} answers."
            )
        vectors = features[shown[:, 0]] - features[shown[:, 1]]
        return cls(vectors, _codes(answers, first, second), shown, names, asked_by, shuffled)

    def first(self, count: int) -> "Answers":
        """The table as it was after `count` questions."""
        part = slice(count)
        return replace(
            self, vectors=self.vectors[part], said=self.said[part], items=self.items[part], judges=self.judges[part]
        )

    @cached_property
    def decisive(self) -> Booleans:
        """Which rows have an answer 1 or 0."""
        return np.asarray(self.said >= 0)

    @cached_property
    def first_won(self) -> Booleans:
        """Of decisive answers to pairs: whether the item shown first won."""
        return np.asarray(self.said[self.of_a_pair] == 1)

    @cached_property
    def of_a_pair(self) -> Booleans:
        """Which rows are decisive answers to a pair."""
        return np.asarray(self.decisive & (self.items[:, 1] >= 0))

    @cached_property
    def turned(self) -> Booleans:
        """Which rows `counted` turns so that the smaller number comes first; a single item is never turned."""
        return np.asarray(self.items[:, 0] > np.where(self.items[:, 1] >= 0, self.items[:, 1], len(self.names)))

    @cached_property
    def judge(self) -> Integers:
        """A number for the judge of each row, in the order in which they appear; those without a name are one."""
        number: dict[str | None, int] = {}
        return np.array([number.setdefault(name, len(number)) for name in self.judges], dtype=np.int64)

    @cached_property
    def of_judges(self) -> dict[str, Booleans]:
        """For every judge with a name, in the order of appearance: which of the decisive answers they gave."""
        judge = self.judge[self.decisive]
        number = dict(zip(self.judges, self.judge.tolist(), strict=True))
        return {name: judge == place for name, place in number.items() if name is not None}

    @cached_property
    def counted(self) -> "Counted":
        """Decisive answers on distinct questions, whichever way round a pair was shown."""
        turned = self.turned
        items = np.where(turned[:, None], self.items[:, ::-1], self.items)
        vectors = np.where(turned[:, None], -self.vectors, self.vectors)
        return _counted(items, vectors, np.where(turned, 1 - self.said, self.said), self.decisive)

    @cached_property
    def as_shown(self) -> "Counted":
        """Decisive answers on distinct questions, with the two orders of a pair as two questions."""
        return _counted(self.items, self.vectors, self.said, self.decisive)


@dataclass(frozen=True, eq=False)
class Counted:
    """Answers in their order as numbers of distinct questions."""

    rows: Floats
    """Vectors of the distinct questions."""
    items: Integers
    """Their items."""
    place: Integers
    """The number of the question of each answer."""
    ones: Integers
    """Each answer, 1 or 0."""

    def __len__(self) -> int:
        return len(self.place)

    def of(self, which: slice | Booleans = slice(None)) -> tuple[Floats, Floats]:
        """Pulls and wins of every question among the selected answers."""
        where, count = self.place[which], len(self.rows)
        wins = np.bincount(where, weights=self.ones[which].astype(float), minlength=count)
        return np.bincount(where, minlength=count).astype(np.float64), wins.astype(np.float64)


def _counted(items: Integers, vectors: Floats, said: Integers, decisive: Booleans) -> Counted:
    keys = np.column_stack([items.astype(float), vectors + 0.0])[decisive]  # + 0.0 makes −0.0 equal to 0.0
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    return Counted(distinct[:, 2:], distinct[:, :2].astype(np.int64), place.ravel(), said[decisive])


def _codes(answers: Sequence[int | float | str | None], first: Sequence[str], second: Sequence[str]) -> Integers:
    """The answers as integers; a message names the row that cannot be read."""
    codes = []
    for row, (answer, *shown) in enumerate(zip(answers, first, second, strict=True)):
        try:
            codes.append(code_of(read_answer(answer, shown)))
        except InvalidInput as error:
            raise InvalidInput(f"Row {row} of the answers: {error}") from None
    return np.array(codes, dtype=np.int64)


LARGEST_LOG = 700.0
"""Evidence beyond e^700 is reported as e^700, which still fits into a float and into JSON."""


@dataclass(frozen=True)
class Check:
    """The result of checking one assumption.

    If the assumption is true, the e-value ever reaches 1/level with probability at most `level`, however often it is
    computed and whenever one stops (where the guarantee is `heuristic`: approximately, as measured in docs/checks.md).
    """

    name: str
    level: float
    """Chance of a false alarm."""
    alarm: bool
    e_value: float
    """How many times better than the assumption its rival explains the answers; 1 says nothing."""
    sentence: str
    """What was found and what it means, in plain words."""
    assumption: str
    """What is doubted if it alarms."""
    guarantee: Guarantee
    """What stands behind the level."""
    refutes: tuple[str, ...]
    """The claims, of "winner", "features" and "population", whose assumption an alarm contradicts (docs/checks.md)."""
    about: tuple[str, ...] = ()
    """The judges or items an alarm is about."""

    @property
    def p_value(self) -> float:
        """The anytime-valid p-value 1/e."""
        return 1.0 / max(self.e_value, 1.0)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        lists = {"refutes": list(self.refutes), "about": list(self.about)}
        return asdict(self) | lists | {"guarantee": str(self.guarantee), "p_value": self.p_value}


Table = TypeVar("Table")
Found = TypeVar("Found")


def once_per_table(compute: Callable[[Table], Found]) -> Callable[[Table], Found]:
    """The function, computed once for each table that several checks read; nothing is kept longer than its table."""
    known: WeakKeyDictionary[Table, Found] = WeakKeyDictionary()

    @wraps(compute)
    def found(table: Table) -> Found:
        if table not in known:
            known[table] = compute(table)
        return known[table]

    return found


def exceeds(log_e: float, level: float) -> bool:
    """Whether log e, in nats, is an alarm at this level: e ≥ 1/level."""
    return log_e >= math.log(1 / validate.probability("level", level))


def e_value(log_e: float) -> float:
    """e from log e, capped so that it is finite."""
    return math.exp(min(log_e, LARGEST_LOG))
