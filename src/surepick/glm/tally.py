"""Tally: everything the statistics need to know of the answers."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from os import PathLike
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick.errors import InvalidInput
from surepick.glm.loss import Derivatives, derivatives


@dataclass(frozen=True, eq=False)
class Tally:
    """Which measurement vector, how many times asked, how many ones.

    10⁸ answers on 5,000 vectors cost as much as 5,000 rows. Adding answers is adding tallies.

    >>> tally = Tally([[1.0, 0.0], [0.0, 1.0]], pulls=[10, 20], wins=[7, 5])
    >>> (tally + tally).pulls.tolist()
    [20, 40]
    """

    vectors: Floats
    pulls: Integers
    wins: Integers

    def __init__(self, vectors: ArrayLike, pulls: ArrayLike, wins: ArrayLike) -> None:
        clean = validate.matrix("vectors", vectors, empty=True)
        asked = validate.counts("pulls", pulls, length=len(clean))
        ones = validate.counts("wins", wins, length=len(clean))
        # Most often two columns swapped, so the first bad row is shown.
        bad = np.flatnonzero(ones > asked)
        if bad.size:
            row = bad[0]
            raise InvalidInput(
                f"wins must not exceed pulls, got {ones[row]} wins in {asked[row]} pulls at row {row}; "
                "pulls counts all answers, wins the ones among them."
            )
        self._set(clean, asked, ones)

    @classmethod
    def from_answers(cls, vectors: ArrayLike, answers: ArrayLike) -> "Tally":
        """A row for each answer (1 or 0); equal vectors stay separate rows until `merged`."""
        clean = validate.matrix("vectors", vectors, empty=True)
        ones = validate.counts("answers", answers, length=len(clean))
        if np.any(ones > 1):
            raise InvalidInput(f"answers must be 0 or 1, got {ones.max()}; pass counts as Tally(vectors, pulls, wins).")
        return cls._of_checked(clean, np.ones(len(clean), dtype=np.int64), ones)

    @property
    def dimension(self) -> int:
        """Length of a measurement vector."""
        return int(self.vectors.shape[1])

    @property
    def total(self) -> int:
        """Number of answers."""
        return int(self.pulls.sum())

    def __len__(self) -> int:
        return len(self.vectors)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(self._columns(), other._columns(), strict=True))

    def __add__(self, other: "Tally") -> "Tally":
        """Put answers together: row by row on the same vectors, otherwise merged, equal vectors as one row."""
        if not isinstance(other, Tally):
            return NotImplemented
        if self.dimension != other.dimension:
            raise InvalidInput(f"Tallies of {self.dimension} and {other.dimension} columns cannot be added.")
        # The common case of one catalogue asked again: no sorting, and rows that were never asked stay.
        if np.array_equal(self.vectors, other.vectors):
            return Tally(self.vectors, self.pulls + other.pulls, self.wins + other.wins)
        columns = zip(self._columns(), other._columns(), strict=True)
        return Tally(*(np.concatenate(pair) for pair in columns)).merged()

    def merged(self) -> "Tally":
        """The same answers with equal vectors as one row, in order of first appearance; O(p log p)."""
        # Adding 0.0 turns −0.0 into 0.0, which must count as equal.
        _, first, inverse = np.unique(self.vectors + 0.0, axis=0, return_index=True, return_inverse=True)
        # np.unique sorts; first appearances put the rows back into the order in which they came.
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        group = place[inverse.ravel()]
        pulls, wins = np.zeros((2, len(order)), dtype=np.int64)
        # Whole numbers, so that 10¹⁸ answers add up exactly.
        np.add.at(pulls, group, self.pulls)
        np.add.at(wins, group, self.wins)
        return Tally(self.vectors[first[order]], pulls, wins)

    def asked(self) -> "Tally":
        """Without the vectors that were never asked."""
        keep = self.pulls > 0
        if keep.all():
            return self
        return Tally._of_checked(self.vectors[keep], self.pulls[keep], self.wins[keep])

    def loss(self, theta: ArrayLike) -> float:
        """Negative log-likelihood Σ n·m(xᵀθ) − k·xᵀθ."""
        return self.derivatives(theta).value

    def gradient(self, theta: ArrayLike) -> Floats:
        """Gradient of the loss, Σ (n·μ(xᵀθ) − k)·x."""
        return self.derivatives(theta).gradient

    def information(self, theta: ArrayLike) -> Floats:
        """Fisher information Σ n·s(xᵀθ)·xxᵀ, which is also the Hessian of the loss."""
        return self.derivatives(theta).hessian

    def derivatives(self, theta: ArrayLike) -> Derivatives:
        """Loss, gradient and information at once, at the cost of one."""
        point = validate.vector("theta", theta, length=self.dimension, tiny=True)
        return derivatives(self.vectors, self.pulls.astype(float), self.wins.astype(float), point)

    def to_json(self) -> str:
        """As JSON; numbers survive the round trip to the last bit."""
        fields = {name: column.tolist() for name, column in self._named_columns()}
        return json.dumps({"dimension": self.dimension, **fields})

    @classmethod
    def from_json(cls, text: str) -> "Tally":
        """Read what `to_json` wrote."""
        try:
            fields = json.loads(text)
            vectors, pulls, wins = (fields[name] for name in ("vectors", "pulls", "wins"))
            if vectors == []:  # only the field says how long the vectors would be
                vectors = np.zeros((0, int(fields["dimension"])))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidInput(
                f"A tally in JSON has the fields vectors, pulls and wins; this text does not ({error})."
            ) from None
        return cls(vectors, pulls, wins)

    def save(self, file: str | PathLike[str] | IO[bytes]) -> None:
        """Write as a compressed npz file (no pickle), under just this name."""
        arrays: dict[str, Any] = dict(self._named_columns())
        with _opened(file, "wb") as stream:
            np.savez_compressed(stream, **arrays)

    @classmethod
    def load(cls, file: str | PathLike[str] | IO[bytes]) -> "Tally":
        """Read what `save` wrote."""
        try:
            with _opened(file, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
                vectors, pulls, wins = (stored[name] for name in ("vectors", "pulls", "wins"))
        except FileNotFoundError:
            raise
        except Exception as error:  # a damaged file can make numpy, zipfile and zlib raise almost anything
            reason = str(error) or type(error).__name__
            raise InvalidInput(f"{file!s} is not a tally saved by surepick ({reason}).") from None
        return cls(vectors, pulls, wins)

    def _set(self, vectors: Floats, pulls: Integers, wins: Integers) -> None:
        for name, column in zip(("vectors", "pulls", "wins"), (vectors, pulls, wins), strict=True):
            object.__setattr__(self, name, column)

    @classmethod
    def _of_checked(cls, vectors: Floats, pulls: Integers, wins: Integers) -> "Tally":
        """A tally of columns that were checked before, which a second pass over long data would not improve."""
        tally = cls.__new__(cls)
        tally._set(vectors, pulls, wins)
        return tally

    def _columns(self) -> tuple[Floats, Integers, Integers]:
        return self.vectors, self.pulls, self.wins

    def _named_columns(self) -> Iterator[tuple[str, NDArray[Any]]]:
        return zip(("vectors", "pulls", "wins"), self._columns(), strict=True)


def _opened(file: str | PathLike[str] | IO[bytes], mode: str) -> AbstractContextManager[IO[bytes]]:
    """A file by its name, closed afterwards, or one that is open already and stays so."""
    return open(file, mode) if isinstance(file, str | PathLike) else nullcontext(file)
