"""One root for everything surepick raises on purpose."""

import re
from collections.abc import Sequence

MOST_LINES = 20
"""Lines named in a message."""


class SurepickError(Exception):
    """Root of all errors raised by surepick; catching it catches them all."""


class InvalidInput(SurepickError, ValueError):
    """What was passed in cannot be used; the message shows the value received and a remedy."""


class BadRows(InvalidInput):
    """Rows of a table cannot be used. Nothing is left out unless that was asked for, so nothing was done.

    `said` is the message without the remedy; `sentences` are the reasons, each with its line.
    """

    def __init__(self, source: str, sentences: Sequence[str]) -> None:
        by_line = {int(re.findall(r", line (\d+):", sentence)[0]): sentence for sentence in sentences}
        found = sorted(by_line)
        one = len(found) == 1
        shown = ", ".join(map(str, found[:MOST_LINES])) + (", …" if len(found) > MOST_LINES else "")
        lines = "" if one else f" (lines {shown}); the first is"
        self.sentences = tuple(sentences)
        self.said = (
            f"{source} has {'a row' if one else f'{len(found):,} rows'} that cannot be used{lines}"
            f"{':' if one else ''} {by_line[found[0]].removeprefix(f'{source}, ')}"
        )
        super().__init__(
            f"{self.said} Correct {'it' if one else 'them'}, or leave {'it' if one else 'them'} out with "
            "--drop-bad-rows (in Python drop_bad_rows=True)."
        )


class NotIdentifiable(InvalidInput):
    """The measurements cannot determine what is asked, however many answers come in."""


class CertificateRefused(SurepickError):
    """A certificate does not prove what it claims."""


class MissingExtra(SurepickError, ImportError):
    """An optional dependency is needed for this; the message says which extra installs it."""
