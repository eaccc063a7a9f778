"""The question to be decided: which vectors can be measured, and among which items the best is wanted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Booleans, Floats, Integers
from surepick._cached import cached_property
from surepick.display import Displayed, View
from surepick.errors import InvalidInput, NotIdentifiable
from surepick.identify.sets import set_number, set_of
from surepick.linalg import Span, norms, span_of

Items = ArrayLike | Mapping[str, ArrayLike] | Sequence[str] | Any
"""A matrix, a mapping of names to features, a data frame, or a list of names."""

ALL_PAIRS = 20_000
"""Up to this many pairs of items, all of them are rows of the matrix `measurements`; beyond, `SAMPLED_PAIRS` are."""

SAMPLED_PAIRS = 5_000

DISPLAYED = ("item", "label", "image", "text", "colour")
"""Columns of a table of items that are for people, not features."""

MOST_FEATURES = 6
"""Features of an item that are shown in a notebook."""

NOTHING = -1
"""In `Problem.about`: no item at this place."""

MOST_SHOWN = 12
"""Most items of a question; nobody ranks more at once, and few rank that many well."""

MOST_SETS = 2**52
"""Numbers of questions stay below 2^53, so that JSON readers in every language keep them."""

Kind = Literal["compare", "pick", "rank", "yes/no", "vector"]
"""What a question asks: which of two, the best of several, their order, yes or no, or about a bare vector."""

IDENTITY = "identity"
"""In the JSON of very many items: each has a coordinate of its own."""


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Displayed):
    """Measurement vectors X (the rows), items Z, and what each measurement is about.

    An answer to a measurement x is 1 with probability 1/(1+exp(−xᵀθ*)); the best item is the z of largest zᵀθ*. Items
    of equal features are one item with several names, since no answer can tell them apart.

    >>> problem = Problem.from_pairs({"red": [1.0, 0.0], "green": [0.0, 1.0], "blue": [1.0, 1.0]})
    >>> len(problem.items), len(problem.measurements)
    (3, 3)
    """

    items: Floats
    names: tuple[str, ...]
    """One name for each item."""
    aliases: tuple[tuple[str, ...], ...]
    """All names of each item: more than one where several were given with the same features."""
    about: Integers
    """For each question the two items compared, (i, −1) for a yes/no question about i, or (−1, −1)."""
    listed: int
    """How many of these questions are rows of `measurements`: all, unless every pair of very many items can be asked.

    The numbers of the other pairs go on from there. Policies that choose from a matrix never ask them; a policy that
    compares whatever two items it likes (Winner) does. They cost 16 bytes a pair: 8 MB for 1,000 items.
    """
    derived: bool
    """Whether the measurements are those of `about`: the difference of two items, or one item itself."""
    position: bool
    """Whether the last coordinate is 1 in every comparison and 0 in every item: what being shown first is worth."""
    inputs: tuple[str, ...] = ()
    """Names of the inputs of `from_systems`: every question shows outputs for one of them, drawn at random."""
    input_weights: Floats | None = None
    """The probability with which each input is drawn; None where all are equally likely."""
    once: bool = False
    """Whether a pair is compared at most once on each input in each order: drawn without replacement."""
    show: int = 2
    """Items that a question shows: more than two in problems of `from_sets`."""
    top: int = 1
    """Of the items shown, how many places are asked for: 1 for a pick, show − 1 for a whole ranking."""

    def __init__(self, measurements: ArrayLike, items: Items, *, names: Sequence[str] | None = None) -> None:
        features, given = _features(items, names)
        rows = validate.matrix("measurements", measurements, columns=features.shape[1])
        if not rows.any():
            raise InvalidInput("All measurement vectors are zero, so no answer says anything; check the features.")
        # Equal items would stay tied for ever, so they become one item with several names.
        distinct, aliases, _ = _merge_duplicates(features, given)
        self._fill(rows, distinct, aliases, np.full((len(rows), 2), NOTHING, dtype=np.int64), derived=False)

    @classmethod
    def from_pairs(
        cls,
        items: Items,
        *,
        names: Sequence[str] | None = None,
        pairs: int | Sequence[tuple[int, int]] | ArrayLike | None = None,
        seed: int = 0,
        position: bool = False,
    ) -> "Problem":
        """Every question shows two items; x is the difference of their features and 1 means that the first wins.

        `items` is a matrix, a mapping of names to features, a data frame with a column `item`, or a list of names,
        which then have one coordinate each. `pairs` lists row numbers (i, j), or is how many pairs to draw at random;
        without it all pairs can be asked. Where these are more than 20,000 (more than 200 items), `measurements` has
        5,000 drawn ones, from which all policies but Winner choose, and the others are numbered after them.

        With `position` the model has a coordinate for what the place is worth to the item shown first: every pair can
        be asked either way round, as two questions, and the order shown is the question's own. Of more than 20,000
        pairs only the drawn ones can be asked then.
        """
        features, given = _features(items, names)
        about = _listed(pairs, len(features), seed)
        every_pair = pairs is None and not position and 2 * len(about) < len(features) * (len(features) - 1)
        if position:
            features = np.column_stack([features, np.zeros(len(features))])
            about = np.vstack([about, about[:, ::-1]])
        return cls._about(features, given, about, position=position, every_pair=every_pair)

    @classmethod
    def from_systems(
        cls,
        systems: Items,
        inputs: Sequence[str],
        *,
        names: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        once: bool = False,
        show: int = 2,
        answer: Literal["pick", "rank"] = "rank",
        top: int | None = None,
    ) -> "Problem":
        """Every question shows the outputs of two systems for one input, drawn at random by the session.

        `systems` are names, or items with features as in `from_pairs`; every system needs an output for each of the
        `inputs`. These are drawn with equal probability, or in proportion to positive `weights`. The probability that a
        system wins a comparison is then a mean over the inputs, and so is every claim (docs/systems.md).

        With `once` a pair is compared at most once on each input in each order, which takes fewer questions, and a set
        is ranked at most twice on each input, in an order drawn at random and in its reverse. It is for one judge,
        whose first answer stands, such as a language model at temperature 0, and for inputs without weights.

        With `show` above 2 a question shows the outputs of several systems for one input and asks for the best of them
        or for their order, as in `from_sets`.

        >>> Problem.from_systems(["old prompt", "new prompt"], ["mail 1", "mail 2", "mail 3"]).inputs
        ('mail 1', 'mail 2', 'mail 3')
        """
        problem = cls.from_pairs(systems, names=names)
        merged = next((aliases for aliases in problem.aliases if len(aliases) > 1), None)
        if merged is not None:
            raise InvalidInput(
                f"The systems {merged[0]!r} and {merged[1]!r} have the same features, but outputs of their own; give "
                "features that differ, or none."
            )
        given = tuple(str(name) for name in inputs)
        if not given or len(set(given)) < len(given):
            double = next((name for name in given if given.count(name) > 1), None)
            raise InvalidInput(
                "A problem of systems needs at least one input."
                if double is None
                else f"inputs must differ, got {double!r} more than once; rename one of them."
            )
        if once and weights is not None:
            raise InvalidInput("Inputs that are drawn once have equal weights; leave out weights, or once.")
        if once and show > 2 and (answer == "pick" or top == 1):
            raise InvalidInput("Only comparisons and rankings can be drawn once; leave out once, or ask for rankings.")
        problem._with_inputs(given, None if weights is None else _shares(weights, len(given)), once=once)
        return problem._with_questions_about(show, answer, top)

    @classmethod
    def from_sets(
        cls,
        items: Items,
        *,
        show: int = 4,
        answer: Literal["pick", "rank"] = "rank",
        top: int | None = None,
        names: Sequence[str] | None = None,
    ) -> "Problem":
        """Every question shows `show` items and asks for the best of them ("pick") or for their order ("rank").

        With `top` only that many places of the order are asked for. Any set of items can be shown; with show=2 these
        are the comparisons of `from_pairs`. The policy Winner asks such questions.

        >>> problem = Problem.from_sets(["red", "green", "blue", "teal"], show=3)
        >>> problem.kind(problem.number_of((3, 0, 2))), problem.shown(problem.number_of((3, 0, 2)))
        ('rank', (0, 2, 3))
        """
        return cls.from_pairs(items, names=names)._with_questions_about(show, answer, top)

    def _with_questions_about(self, show: int, answer: Literal["pick", "rank"], top: int | None) -> "Problem":
        """Fill in what questions show and ask for, for a problem that was just made."""
        validate.one_of("answer", answer, ("pick", "rank"))
        shown = validate.whole("show", show, least=2)
        if shown > min(MOST_SHOWN, len(self.items)):
            raise InvalidInput(
                f"show must be at most {MOST_SHOWN} and at most the number of different items, "
                f"{len(self.items)}; got {shown}."
            )
        if comb(len(self.items), shown) * max(1, len(self.inputs)) > MOST_SETS:
            raise InvalidInput(
                f"There are too many sets of {shown} of {len(self.items):,} items to be numbered; show fewer."
            )
        places = 1 if answer == "pick" else shown - 1 if top is None else validate.whole("top", top, least=1)
        if answer == "pick" and top not in (None, 1):
            raise InvalidInput(f"A pick has one place; got top={top!r}, which is an option of answer='rank'.")
        return self._with_sets(shown, min(places, shown - 1))

    def _with_sets(self, show: int, top: int) -> "Problem":
        """Fill in what questions show, for a problem that was just made."""
        object.__setattr__(self, "show", show)
        object.__setattr__(self, "top", top)
        return self

    @property
    def by_places(self) -> bool:
        """Whether a ranking counts by who is placed above whom, and not as picks one after the other.

        So it is where questions show an input. The later picks of a ranking are made on inputs for which the earlier
        ones were picked first, and a system that is best on average need not be best there (docs/assumptions.md).
        """
        return bool(self.inputs) and self.top > 1

    def number_of(self, items: Iterable[int]) -> int:
        """The number of the question that shows this set of items; those of sets go on after those of pairs."""
        return len(self.about) + set_number(items)

    def shown(self, measurement: int) -> tuple[int, ...]:
        """The items that a question shows: in the order of a pair, or ascending for a larger set."""
        if measurement >= len(self.about):
            return set_of(measurement - len(self.about), self.show)
        return tuple(int(item) for item in self.about[measurement] if item != NOTHING)

    def shown_together(self, measurements: Iterable[int]) -> Booleans:
        """Which pairs of items some of these questions showed together, as a symmetric items × items matrix."""
        together = np.zeros((len(self.items), len(self.items)), dtype=np.bool_)
        for measurement in measurements:
            shown = list(self.shown(measurement))
            together[np.ix_(shown, shown)] = True
        np.fill_diagonal(together, False)
        return together

    def kind(self, measurement: int) -> Kind:
        """What a question asks."""
        if measurement >= len(self.about):
            return "pick" if self.top == 1 else "rank"
        kinds: tuple[Kind, ...] = ("vector", "yes/no", "compare")
        return kinds[len(self.shown(measurement))]

    def _with_inputs(self, inputs: tuple[str, ...], weights: Floats | None, *, once: bool) -> "Problem":
        """Fill in the inputs of a problem that was just made."""
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "input_weights", weights)
        object.__setattr__(self, "once", once)
        return self

    @property
    def cells(self) -> int:
        """How many answers there are to draw from: every input in an order and its reverse; 0 if there is no end."""
        return 2 * len(self.inputs) if self.once else 0

    @classmethod
    def from_items(cls, items: Items, *, names: Sequence[str] | None = None, intercept: bool = True) -> "Problem":
        """Every question is a yes/no about one item; x is the item's features and a constant one (`intercept`)."""
        features, given = _features(items, names)
        return cls._about(_with_intercept(features, intercept), given, _singles(len(features)))

    @classmethod
    def from_pairs_and_items(
        cls,
        items: Items,
        *,
        names: Sequence[str] | None = None,
        pairs: int | Sequence[tuple[int, int]] | ArrayLike | None = None,
        seed: int = 0,
    ) -> "Problem":
        """Comparisons and yes/no questions in one model: see `from_pairs` and `from_items`."""
        features, given = _features(items, names)
        about = np.vstack([_listed(pairs, len(features), seed), _singles(len(features))])
        return cls._about(_with_intercept(features, True), given, about)

    @classmethod
    def _about(
        cls,
        features: Floats,
        names: tuple[str, ...],
        about: Integers,
        *,
        position: bool = False,
        every_pair: bool = False,
    ) -> "Problem":
        distinct, aliases, place = _merge_duplicates(features, names)
        merged = np.where(about >= 0, place[about], NOTHING)
        merged = merged[merged[:, 0] != merged[:, 1]]  # a pair of equals asks nothing
        if len(distinct) < len(features):
            # Merged items may bring (a, b) a second time, also as (b, a): the same question, unless position counts.
            backwards = merged[:, 0] > np.where(merged[:, 1] >= 0, merged[:, 1], len(distinct))
            turned = merged if position else np.where(backwards[:, None], merged[:, ::-1], merged)
            merged = np.unique(turned, axis=0)
        problem = cls.__new__(cls)
        problem._fill(None, distinct, aliases, merged, derived=True, position=position, every_pair=every_pair)
        return problem

    def _fill(
        self,
        rows: Floats | None,
        items: Floats,
        aliases: tuple[tuple[str, ...], ...],
        about: Integers,
        *,
        derived: bool,
        position: bool = False,
        every_pair: bool = False,
    ) -> None:
        """Set all fields; `rows` are the measurements where they are not derived from `about`."""
        if rows is not None:
            self.__dict__["measurements"] = rows
        for name, value in (
            ("items", items),
            ("names", tuple(names[0] for names in aliases)),
            ("aliases", aliases),
            ("about", np.vstack([about, _other_pairs(len(items), about)]) if every_pair else about),
            ("listed", len(about)),
            ("derived", derived),
            ("position", position),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def measurements(self) -> Floats:
        """The vectors of the listed questions as rows. Derived ones are computed when first used."""
        return _differences(self.items, self.about[: self.listed], self.position)

    def vectors(self, rows: ArrayLike) -> Floats:
        """The vectors of these questions, or of one of them by number, whether they are listed or not.

        A question about a set has none: zeros stand for it, about which no answer says anything.
        """
        where = np.asarray(rows)
        if self.show > 2:
            pair = where < len(self.about)
            pairs = self.about[np.where(pair, where, 0)]
            return np.asarray((self.items[pairs[..., 0]] - self.items[pairs[..., 1]]) * pair[..., None])
        if not self.every_pair:
            return np.asarray(self.measurements[where])
        pairs = self.about[where]
        return np.asarray(self.items[pairs[..., 0]] - self.items[pairs[..., 1]])

    @property
    def every_pair(self) -> bool:
        """Whether all pairs of items can be asked, and only some of them are rows of `measurements`."""
        return self.listed < len(self.about)

    @cached_property
    def span(self) -> Span:
        """The space the measurements span."""
        return span_of(self.measurements) if len(self.measurements) else Span(self.items.shape[1], 0, np.zeros((0, 0)))

    @cached_property
    def rows(self) -> Floats:
        """The measurements in coordinates of their span: what policies compute with."""
        return self.span.coordinates(self.measurements)

    @cached_property
    def points(self) -> Floats:
        """The items, seen from their mean, in coordinates of the span of the measurements.

        Only differences of items matter, and those lie in the span wherever the problem is identifiable.
        """
        return self.span.coordinates(self.items - self.items.mean(axis=0))

    @cached_property
    def guide(self) -> Floats | None:
        """`points`, if they relate the items to one another; None where every item has a coordinate of its own."""
        # Told without the rank, which takes seconds for a thousand coordinates.
        if _has_own_coordinates(self.items) or self.span.rank == len(self.items) - 1:
            return None
        return self.points

    @cached_property
    def comparison(self) -> Integers:
        """The question that compares items i and j, in both orders, as an items × items matrix; −1 where none does."""
        result = np.full((len(self.items), len(self.items)), NOTHING, dtype=np.int64)
        rows = np.flatnonzero((self.about >= 0).all(axis=1))
        first, second = self.about[rows].T
        result[first, second] = rows
        result[second, first] = rows
        return result

    @cached_property
    def obstacle(self) -> str | None:
        """Why no number of answers can decide, as a sentence; None where they can."""
        if len(self.items) == 1 or self._connected:
            return None
        if len(self.about) == 0:
            return "There is nothing to ask, so the items cannot be told apart; pass measurements that differ on them."
        # If every z − z_0 lies in the span of X, so does every z − z'.
        y = self.items - self.items[0]
        # Items that are nearly equal have differences of rounding size, whose direction means nothing.
        noise = 1e-12 * float(np.max(np.abs(self.items)))
        outside = ~self.span.contains(y) & (norms(y - self.span.embed(self.span.coordinates(y))) > noise)
        if not outside.any():
            return None
        other = int(np.argmax(outside))
        return (
            f"{self.names[0]!r} and {self.names[other]!r} cannot be told apart by any number of answers: their "
            f"difference lies outside the span of the {len(self.measurements)} measurement vectors (rank "
            f"{self.span.rank} of {self.span.dimension}); add questions that see it, or leave one of them out."
        )

    @property
    def _connected(self) -> bool:
        """Whether comparisons connect all items: then every difference of two is a sum of measurements."""
        if self.every_pair:
            return True
        if not self.derived or self.position or not len(self.about) or (self.about < 0).any():
            return False
        reached, before = np.arange(len(self.items)) == 0, 0
        while reached.sum() > before:  # at most as often as the longest path, each time O(pairs)
            before = reached.sum()
            reached[self.about[reached[self.about].any(axis=1)]] = True
        return bool(reached.all())

    def require_identifiable(self) -> None:
        """Raise the obstacle, if there is one."""
        if self.obstacle is not None:
            raise NotIdentifiable(self.obstacle)

    def view(self) -> View:
        """The items and their first features."""
        shown = range(min(self.items.shape[1], MOST_FEATURES))
        return View(
            f"{len(self.names):,} items, {len(self.about):,} questions, {self.items.shape[1]:,} coordinates",
            {"item": self.names, **{f"x{place + 1}": self.items[:, place].tolist() for place in shown}},
            () if self.obstacle is None else (self.obstacle,),
        )

    def index(self, name: str) -> int:
        """The number of the item of this name (any of its aliases)."""
        for number, aliases in enumerate(self.aliases):
            if name in aliases:
                return number
        raise InvalidInput(f"There is no item named {name!r}; the first of {len(self.names)} is {self.names[0]!r}.")

    def to_json(self) -> dict[str, Any]:
        """As plain lists; derived measurements are not repeated, nor are all pairs or items of one coordinate each."""
        own = self.every_pair and np.array_equal(self.items, np.eye(len(self.items)))
        result: dict[str, Any] = {
            "items": IDENTITY if own else self.items.tolist(),
            "aliases": [list(names) for names in self.aliases],
        }
        if self.derived:
            result["about"] = self.about[: self.listed].tolist()
        else:
            result["measurements"] = self.measurements.tolist()
        flags = {"position": self.position, "every_pair": self.every_pair, "once": self.once}
        result |= {name: True for name, value in flags.items() if value}
        result |= {"inputs": list(self.inputs)} if self.inputs else {}
        result |= {"show": self.show, "top": self.top} if self.show > 2 else {}
        return result | ({} if self.input_weights is None else {"weights": self.input_weights.tolist()})

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Problem":
        """Read what `to_json` gave."""
        try:
            aliases = tuple(tuple(str(name) for name in names) for names in fields["aliases"])
            items = np.eye(len(aliases)) if fields["items"] == IDENTITY else np.array(fields["items"], dtype=np.float64)
            derived, position = "about" in fields, bool(fields.get("position", False))
            if derived:
                about, rows = np.array(fields["about"], dtype=np.int64).reshape(-1, 2), None
                if len(about) and about.max() >= len(items):
                    raise InvalidInput(
                        f"A question of this problem is about item {about.max()}, and the last is {len(items) - 1}."
                    )
            else:
                rows = np.array(fields["measurements"], dtype=np.float64)
                about = np.full((len(rows), 2), NOTHING, dtype=np.int64)
            inputs = tuple(str(name) for name in fields.get("inputs", ()))
            weights = _shares(fields["weights"], len(inputs)) if "weights" in fields else None
            show, top = int(fields.get("show", 2)), int(fields.get("top", 1))
            if not 2 <= show <= max(2, min(MOST_SHOWN, len(items))) or not 1 <= top < show:
                raise InvalidInput(f"Questions that show {show} of {len(items)} items cannot ask for {top} places.")
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"This is not a problem written by surepick ({error}).") from None
        problem = cls.__new__(cls)
        every_pair = bool(fields.get("every_pair", False))
        problem._fill(rows, items, aliases, about, derived=derived, position=position, every_pair=every_pair)
        once = bool(fields.get("once", False))
        return problem._with_inputs(inputs, weights, once=once)._with_sets(show, top)


def _shares(weights: ArrayLike, count: int) -> Floats:
    """Weights of inputs as probabilities; those that sum to 1 already are kept to the last bit, for logs."""
    values = validate.vector("weights", weights, length=count, tiny=True)
    if np.any(values <= 0):
        bad = int(np.argmax(values <= 0))
        raise InvalidInput(f"weights must be positive, got {values[bad]:g} at place {bad}; leave such inputs out.")
    total = float(values.sum())
    return values if abs(total - 1) < 1e-12 else values / total


def _features(items: Items, names: Sequence[str] | None) -> tuple[Floats, tuple[str, ...]]:
    """A matrix of features and a name for each row."""
    if isinstance(items, Mapping):
        if names is not None:
            raise InvalidInput("names are already the keys of items; pass one or the other.")
        names, matrix = list(items), validate.matrix("items", np.array(list(items.values()), ndmin=1))
    elif hasattr(items, "columns"):
        names, matrix = _from_frame(items, names)
    elif isinstance(items, Sequence) and len(items) and all(isinstance(item, str) for item in items):
        if names is not None:
            raise InvalidInput("items are already names; pass features as a matrix to give names besides.")
        names, matrix = [str(name) for name in items], np.eye(len(items))
    else:
        matrix = validate.matrix("items", items)
    given = [str(number) for number in range(len(matrix))] if names is None else [str(name) for name in names]
    if len(given) != len(matrix):
        raise InvalidInput(f"names must be one for each item, got {len(given)} names for {len(matrix)} items.")
    if len(set(given)) < len(given):
        double = next(name for name in given if given.count(name) > 1)
        raise InvalidInput(f"names must differ, got {double!r} more than once; rename one of them.")
    return matrix, tuple(given)


def _from_frame(frame: Any, names: Sequence[str] | None) -> tuple[Sequence[str] | None, Floats]:
    """Names and features of a data frame (pandas or polars): column `item`, and all other numeric columns."""
    columns = [str(name) for name in frame.columns]
    if names is None and "item" in columns:
        names = [str(name) for name in frame["item"]]
    wanted = [name for name in columns if name not in DISPLAYED and np.asarray(frame[name]).dtype.kind in "iufb"]
    features = np.column_stack([np.asarray(frame[name], dtype=np.float64) for name in wanted] or [np.eye(len(frame))])
    return names, validate.matrix("items", features)


def _merge_duplicates(features: Floats, names: tuple[str, ...]) -> tuple[Floats, tuple[tuple[str, ...], ...], Integers]:
    """Items of equal features as one, in order of first appearance: features, all names, and where each went."""
    # To 12 digits of the largest: the same item computed in two ways may differ in the last bits.
    unit = max(float(np.max(np.abs(features))), 1e-300)
    rounded = np.round(features / unit, 12) + 0.0
    _, first, inverse = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    place = rank[inverse.ravel()].astype(np.int64)
    groups: list[list[str]] = [[] for _ in order]
    for name, where in zip(names, place, strict=True):
        groups[where].append(name)
    return features[first[order]], tuple(tuple(group) for group in groups), place


def _with_intercept(features: Floats, wanted: bool) -> Floats:
    return np.column_stack([np.ones(len(features)), features]) if wanted else features


def _singles(count: int) -> Integers:
    return np.column_stack([np.arange(count), np.full(count, NOTHING)]).astype(np.int64)


def _listed(pairs: int | Sequence[tuple[int, int]] | ArrayLike | None, count: int, seed: int) -> Integers:
    """Pairs as rows (i, j): all, those given, or a number of them drawn at random."""
    most = count * (count - 1) // 2
    if pairs is None and most <= ALL_PAIRS:
        return np.array(list(combinations(range(count), 2)), dtype=np.int64).reshape(-1, 2)
    if pairs is None or np.ndim(pairs) == 0:
        wanted = validate.whole("pairs", SAMPLED_PAIRS if pairs is None else pairs)
        return _sampled_pairs(count, min(wanted, most), np.random.default_rng(seed))
    listed = np.asarray(pairs)
    if listed.ndim != 2 or listed.shape[1] != 2 or listed.dtype.kind not in "iu":
        raise InvalidInput(f"pairs must be rows of two item numbers, got shape {listed.shape} of {listed.dtype}.")
    bad = np.flatnonzero((listed < 0).any(axis=1) | (listed >= count).any(axis=1))
    if bad.size:
        raise InvalidInput(f"pairs must name items 0 to {count - 1}, got {listed[bad[0]].tolist()} at row {bad[0]}.")
    return listed.astype(np.int64)


def _sampled_pairs(count: int, wanted: int, rng: np.random.Generator) -> Integers:
    """Distinct random pairs; where there are enough of them, a ring through all items first, so that all connect."""
    # A dictionary as a set that keeps its order: measurements are numbered by it, so a seed must always give the same.
    chosen: dict[tuple[int, int], None] = {}
    if wanted >= count > 2:
        ring = rng.permutation(count)
        chosen = {_ordered(a, b): None for a, b in zip(ring, np.roll(ring, 1), strict=True)}
    while len(chosen) < wanted:
        for a, b in rng.integers(count, size=(2 * wanted, 2)):
            if a != b and len(chosen) < wanted:
                chosen[_ordered(a, b)] = None
    return np.array(list(chosen), dtype=np.int64).reshape(-1, 2)


def _other_pairs(count: int, pairs: Integers) -> Integers:
    """All pairs (i, j), i < j, but these, in ascending order."""
    others = np.triu(np.ones((count, count), dtype=np.bool_), 1)
    others[pairs.min(axis=1), pairs.max(axis=1)] = False
    return np.argwhere(others)


def _has_own_coordinates(items: Floats) -> bool:
    """Whether every item has one coordinate, which no other item has."""
    used = items != 0
    return bool((used.sum(axis=1) == 1).all() and (used.sum(axis=0) <= 1).all())


def _ordered(a: int, b: int) -> tuple[int, int]:
    return (int(min(a, b)), int(max(a, b)))


def _differences(items: Floats, about: Integers, position: bool) -> Floats:
    """Measurement vectors: z_i − z_j for a pair, z_i for a single item; with 1 for the place of the first."""
    second = np.where((about[:, 1] >= 0)[:, None], items[about[:, 1]], 0.0)
    rows = np.asarray(items[about[:, 0]] - second)
    rows[:, -1] += position  # the last feature of every item is 0 then
    return rows
