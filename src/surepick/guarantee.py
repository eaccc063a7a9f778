"""What stands behind a number that promises something."""

from enum import StrEnum


class Guarantee(StrEnum):
    """How far a bound or a stopping rule can be trusted; the value is the JSON field `guarantee`."""

    PROVED = "proved"
    """Proved here; the result names the statement."""
    CITED = "cited"
    """Proved elsewhere and not re-derived here."""
    AS_PRINTED = "as printed"
    """The constants of a paper, not valid in general."""
    HEURISTIC = "heuristic"
    """No proof for the data at hand."""
