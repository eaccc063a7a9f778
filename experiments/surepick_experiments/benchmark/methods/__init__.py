"""Methods of the benchmark, by the name they have in its tables; docs/benchmark.md shows how to add one."""

from importlib.util import find_spec

from surepick_experiments.benchmark.challenge import Challenge, Entry, only_pairs
from surepick_experiments.benchmark.methods.crowd_bt import CrowdBt
from surepick_experiments.benchmark.methods.eubo import Eubo
from surepick_experiments.benchmark.methods.log_ts import LogTs
from surepick_experiments.benchmark.methods.policies import policy
from surepick_experiments.benchmark.methods.ratings import Elo, Glicko, TrueSkill
from surepick_experiments.benchmark.methods.savage import Savage
from surepick_experiments.benchmark.methods.spanning_trees import Asap, HybridMst
from surepick_experiments.benchmark.methods.successive_elimination import SuccessiveElimination
from surepick_experiments.benchmark.methods.top_two import TopTwo
from surepick_experiments.benchmark.methods.uniform import RoundRobin, UniformBradleyTerry

FEW = 12
"""Coordinates up to which designs over all pairs are quick."""

MANY = 50
"""Items up to which all pairs can be weighed before every question."""


def only_features(challenge: Challenge) -> str:
    """Refuses items without features."""
    return "" if challenge.features is not None else "needs features"


def few_coordinates(challenge: Challenge) -> str:
    """Refuses many items without features: each would be a coordinate of its own."""
    return "" if challenge.points.shape[1] <= FEW else f"is for at most {FEW} coordinates, which take minutes a run"


def medium(challenge: Challenge) -> str:
    """Refuses very many items, for methods that weigh every pair before every question."""
    return only_pairs(challenge) or ("" if challenge.items <= MANY else "weighs every pair before every question")


METHODS: dict[str, Entry] = {
    "winner": Entry(
        policy("winner"),
        "surepick's default for comparisons (`Winner`, docs/assumptions.md).",
        claim="proved if one item wins each of its comparisons at least half the time",
        ours=True,
        assumes="winner",
        unfit=only_pairs,
    ),
    "features": Entry(
        policy("anytime"),
        "surepick's claim with features (`Anytime`, docs/anytime.md).",
        claim="proved if answers are logistic in the features",
        ours=True,
        assumes="features",
        unfit=only_features,
    ),
    "rage-glm": Entry(
        policy("rage-glm"),
        "RAGE-GLM (Jun et al. 2021) with the corrected theorem (docs/theory.md). Told the true κ₀.",
        claim="proved if answers are logistic in the features",
        needs=("kappa",),
        unfit=few_coordinates,
    ),
    "rage-glm-printed": Entry(
        policy("rage-glm-printed"),
        "RAGE-GLM (Jun et al. 2021) as printed. Told the true κ₀.",
        claim="as printed, if answers are logistic in the features",
        needs=("kappa",),
        unfit=few_coordinates,
    ),
    "log-ts": Entry(
        LogTs,
        "Log-TS: track-and-stop for logistic bandits (Rivera and Tewari 2024), from its abstract: the threshold is "
        "that of OFUGLB (Lee, Yun and Jun 2024), the allocation a greedy step per question. Told the true norm of θ*.",
        claim="cited, if answers are logistic in the features",
        needs=("norm",),
        unfit=few_coordinates,
    ),
    "savage": Entry(
        Savage,
        "SAVAGE: elimination of Condorcet losers with Hoeffding's intervals (Urvoy et al. 2013), published threshold.",
        claim="cited, if one item wins each of its comparisons more than half the time",
        unfit=only_pairs,
    ),
    "uniform": Entry(
        UniformBradleyTerry,
        "Random pairs, Bradley–Terry, and a stop when the leader leads in 95% of 200 bootstrap samples (one Newton "
        "step each); looked at after every 10% more answers, the first time after five questions per item.",
        claim="heuristic: the bootstrap is looked at again and again",
    ),
    "top-two": Entry(
        TopTwo.of_items,
        "Top-two Thompson sampling (Russo 2016) on items' own scores, Laplace posterior.",
        claim="heuristic: a posterior probability of 95%",
        unfit=only_pairs,
    ),
    "top-two-features": Entry(
        TopTwo,
        "The same on the coordinates of the features.",
        claim="heuristic: a posterior probability of 95%",
        unfit=only_features,
    ),
    "gse": Entry(
        SuccessiveElimination,
        "Generalised successive elimination (Azizi, Kveton and Ghavamzadeh 2022), fixed budget: run again for each "
        "number of questions.",
        fixed_budget=True,
    ),
    "asap": Entry(
        Asap,
        "ASAP: expected information gain with TrueSkill beliefs, a spanning tree at a time (Mikhailiuk et al. 2020), "
        "implemented from the paper with beliefs updated answer by answer.",
        unfit=only_pairs,
    ),
    "hybrid-mst": Entry(
        HybridMst,
        "Hybrid-MST: expected information gain with a Bradley–Terry fit, spanning trees after the first N(N − 1)/2 "
        "questions (Li et al. 2018), implemented from the paper.",
        unfit=medium,
    ),
    "crowd-bt": Entry(
        CrowdBt,
        "Crowd-BT: Bradley–Terry with judges of unknown quality (Chen et al. 2013), implemented from the paper.",
        unfit=medium,
    ),
    "eubo": Entry(
        Eubo,
        "Preferential Bayesian optimisation: BoTorch's `PairwiseGP` on the features, the pair of the largest expected "
        "utility of the best option (Lin et al. 2022), default settings; for 100 questions, as they are slow.",
        most=100,
        package="botorch",
        unfit=lambda challenge: only_pairs(challenge) or only_features(challenge),
    ),
    "round-robin": Entry(
        RoundRobin, "All pairs in turn, in a random order each time; the highest share of wins.", unfit=only_pairs
    ),
    "elo": Entry(Elo, "K = 32; the item with the fewest games plays the nearest in rating.", unfit=only_pairs),
    "trueskill": Entry(
        TrueSkill,
        "Package `trueskill`, default settings; the least certain item plays its closest match.",
        package="trueskill",
        unfit=only_pairs,
    ),
    "glicko-2": Entry(
        Glicko,
        "Package `glicko2`, default settings; the least certain item plays the nearest in rating.",
        package="glicko2",
        unfit=only_pairs,
    ),
}
"""By name."""

NOT_RUN: dict[str, str] = {}
"""Published methods that are not in the benchmark, and why."""


def installed(entry: Entry) -> bool:
    """Whether the package that a method needs is there."""
    return entry.package is None or find_spec(entry.package) is not None


def obstacle(entry: Entry, challenge: Challenge) -> str:
    """Why a method does not take part in a world; empty if it does."""
    if not installed(entry):
        return f"needs the package {entry.package}, which is not installed"
    return entry.unfit(challenge)
