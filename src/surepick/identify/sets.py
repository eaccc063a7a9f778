"""Questions that show a set of items: their numbers, and the orders that are their answers.

A set of k items has a number of its own among all sets of k (the combinatorial number system, Lehmer 1964), so that the
billions of sets of a thousand items are never listed.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import comb

from surepick.errors import InvalidInput

Order = tuple[int, ...]
"""An answer to a question about a set: places of its items, counted from 0 in the order of their numbers, best first.

One place for a pick, all but the last for a whole ranking, any number between where only the top is ranked. Empty for a
tie: no item is preferred.
"""

Orders = Sequence[Sequence[Order]]
"""For each question of a stage the orders that answer it; empty where the stage has none."""


def set_number(items: Iterable[int]) -> int:
    """The number of a set of items among all sets of as many: Σ C(c_i, i) over its items c_1 < c_2 < …, i from 1.

    >>> [set_number(items) for items in ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3), (0, 1, 4))]
    [0, 1, 2, 3, 4]
    """
    return sum(comb(item, place) for place, item in enumerate(sorted(items), 1))


def set_of(number: int, size: int) -> tuple[int, ...]:
    """The set of this number, as ascending items: the inverse of `set_number`; O(size·log of the largest item).

    >>> set_of(4, 3)
    (0, 1, 4)
    """
    items = []
    for place in range(size, 0, -1):
        low, high = place - 1, place
        while comb(high, place) <= number:
            low, high = high, 2 * high
        while high - low > 1:  # C(low, place) ≤ number < C(high, place)
            middle = (low + high) // 2
            low, high = (middle, high) if comb(middle, place) <= number else (low, middle)
        items.append(low)
        number -= comb(low, place)
    return tuple(reversed(items))


def picks_of(order: Order, size: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """An order as picks one after the other: the places that are left, and the one that is picked from them."""
    left = tuple(range(size))
    for place in order:
        yield left, place
        left = tuple(other for other in left if other != place)


def decided_pairs(order: Order, named: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Comparisons that an order decides, as (preferred, other), of pairs that are named before each pick.

    The pairs are the first and second of `named`, the third and fourth, and so on. A pick of one of a pair decides it;
    both then leave their places, and the other one waits at the end. In the model of Plackett and Luce the choice
    within a pair, given that one of the two is picked, is logistic in the difference of their scores; so it is for
    every pair here, given all before it (docs/anytime.md). A whole ranking of four decides 2.67 pairs on average where
    all are equal.

    >>> list(decided_pairs((2, 0, 3), range(4))), list(decided_pairs((2, 3, 1), range(4)))
    ([(2, 3), (0, 1), (3, 1)], [(2, 3), (1, 0)])
    """
    left = list(named)
    for picked in order:
        partner = left.index(picked) ^ 1
        other = left[partner] if partner < len(left) else None
        left.remove(picked)
        if other is not None:
            yield picked, other
            left.remove(other)
            left.append(other)


def neighbours_decided(order: Order, size: int) -> Iterator[tuple[int, int, int]]:
    """Comparisons that an order decides of neighbours in the order shown: the earlier place, the later, and 1 or 0."""
    for winner, loser in decided_pairs(order, range(size)):
        yield min(winner, loser), max(winner, loser), int(winner < loser)


def checked_order(order: Sequence[int], size: int) -> Order:
    """An order of some of `size` places, without the last place of a whole ranking, which follows from the others."""
    places = tuple(int(place) for place in order)
    if len(set(places)) < len(places) or not all(0 <= place < size for place in places):
        raise InvalidInput(
            f"An order of {size} items has places from 0 to {size - 1}, each at most once; got {places}."
        )
    return places[: size - 1]
