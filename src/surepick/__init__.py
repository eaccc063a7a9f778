"""surepick: find the best item from yes/no or A-versus-B answers, and say how sure it is.

Reading order for newcomers: the README's example, `session`, `identify`, `evidence`, `design`, `confidence`, `glm`,
`linalg`; docs/architecture.md has the map.

Names are imported from their modules when first used (PEP 562), so that `import surepick` and `surepick --help` do not
wait for SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

_HOMES = (
    "errors",
    "guarantee",
    "glm",
    "io.items",
    "io.systems",
    "certificate",
    "confidence",
    "design",
    "checks",
    "leaderboard",
    "io.vote_counts",
    "identify",
    "limits",
    "contextual",
    "baselines",
    "session",
    "judges",
    "report",
)
"""Where public names live, the quickest to import first."""

if TYPE_CHECKING:
    from surepick import checks, contextual, design, identify, judges, limits
    from surepick.baselines import (
        EcoLog,
        GlGapE,
        Greedy,
        LogisticThompson,
        LogisticUcb,
        OfuGlb,
        OfuLog,
        PassivePrinted,
        RageGlm2,
        RageGlmPrinted,
        RageGlmR,
        RageLinear,
        SquareCb,
        SupCbGlm,
        UcbGlm,
        interval_faury,
        interval_li,
        interval_printed,
        interval_wald,
    )
    from surepick.certificate import CertificateRefused, Checked, verify_certificate
    from surepick.checks import Answers, Check, check_all
    from surepick.confidence import Intervals, in_given_order, interval_anytime, interval_corrected
    from surepick.contextual import LikelihoodRatioUcb, OnePassUcb, SupLogistic
    from surepick.design import (
        Design,
        DesignStatus,
        apportion,
        d_optimal,
        g_optimal,
        gap_optimal,
        max_optimal,
        pairs_optimal,
        xy_optimal,
    )
    from surepick.errors import InvalidInput, MissingExtra, NotIdentifiable, SurepickError
    from surepick.glm import FitStatus, Tally
    from surepick.glm.fit import Fit, fit
    from surepick.guarantee import Guarantee
    from surepick.identify import (
        Anytime,
        Claim,
        Exclusion,
        Forecast,
        GOptimal,
        Passive,
        Policy,
        Population,
        Posterior,
        Problem,
        RageGlm,
        Rival,
        Status,
        Uniform,
        Verdict,
        Winner,
    )
    from surepick.io.items import ItemTable, read_items
    from surepick.io.systems import SystemTable, read_systems
    from surepick.io.vote_counts import count_votes
    from surepick.leaderboard import Leaderboard, LeaderboardRow, VoteCounts, rank_votes
    from surepick.report import write_report
    from surepick.session import Comparison, ContextualSession, Question, Session, compare_two, find_best
else:  # hidden from type checkers, for which every misspelt name would exist otherwise

    def __getattr__(name):
        """The public name, imported now; or the package of that name."""
        if name not in __all__:
            raise AttributeError(f"module 'surepick' has no attribute {name!r}")
        if name in _HOMES:
            return import_module(f"surepick.{name}")
        homes = (vars(import_module(f"surepick.{home}")) for home in _HOMES)
        value = globals()[name] = next(home[name] for home in homes if name in home)
        return value


def __dir__() -> list[str]:
    """What there is to use, imported or not."""
    return sorted({*globals(), *__all__})


__all__ = [
    "Answers",
    "Anytime",
    "CertificateRefused",
    "Check",
    "Checked",
    "Claim",
    "Comparison",
    "ContextualSession",
    "Design",
    "DesignStatus",
    "EcoLog",
    "Exclusion",
    "Fit",
    "FitStatus",
    "Forecast",
    "GOptimal",
    "GlGapE",
    "Greedy",
    "Guarantee",
    "Intervals",
    "InvalidInput",
    "ItemTable",
    "Leaderboard",
    "LeaderboardRow",
    "LikelihoodRatioUcb",
    "LogisticThompson",
    "LogisticUcb",
    "MissingExtra",
    "NotIdentifiable",
    "OfuGlb",
    "OfuLog",
    "OnePassUcb",
    "Passive",
    "PassivePrinted",
    "Policy",
    "Population",
    "Posterior",
    "Problem",
    "Question",
    "RageGlm",
    "RageGlm2",
    "RageGlmPrinted",
    "RageGlmR",
    "RageLinear",
    "Rival",
    "Session",
    "SquareCb",
    "Status",
    "SupCbGlm",
    "SupLogistic",
    "SurepickError",
    "SystemTable",
    "Tally",
    "UcbGlm",
    "Uniform",
    "Verdict",
    "VoteCounts",
    "Winner",
    "apportion",
    "check_all",
    "checks",
    "compare_two",
    "contextual",
    "count_votes",
    "d_optimal",
    "design",
    "find_best",
    "fit",
    "g_optimal",
    "gap_optimal",
    "identify",
    "in_given_order",
    "interval_anytime",
    "interval_corrected",
    "interval_faury",
    "interval_li",
    "interval_printed",
    "interval_wald",
    "judges",
    "limits",
    "max_optimal",
    "pairs_optimal",
    "rank_votes",
    "read_items",
    "read_systems",
    "verify_certificate",
    "write_report",
    "xy_optimal",
]
