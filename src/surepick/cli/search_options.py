"""Options that `surepick find` and `surepick ask` share: their types, help texts and panels."""

from typing import Literal

Kind = Literal["pairs", "items", "both"]
Assumption = Literal["winner", "features", "population"]
Repeats = Literal["independent", "once", "spaced", "tested"]

ITEMS_HELP = (
    "Items (CSV or Parquet): column item; every other column except label, image, text and colour is a feature."
)
EPSILON_HELP = "Accept an item that is worse than the best by at most this much (log-odds)."
KIND_HELP = "What to ask: which of two (pairs), yes/no about one (items), or both."
POSITION_HELP = "Estimate the effect of being shown first (with --kind pairs)."
PCA_HELP = "Reduce the features to this many principal components."
FEATURES_HELP = "With --no-features every item has its own score."
SEED_HELP = "The same seed and answers give the same questions."
REPORT_HELP = "Write a report with figures to this HTML file."

ASSUME_HELP = (
    "The claim that ends the search: winner (one item wins its comparisons, whatever the features), features (these "
    "explain every answer) or population (the judge's taste is drawn from one). The other claims are shown beside it."
)
POPULATION_HELP = (
    "What earlier people answered about the same items, as logs of sessions or votes with a column judge; may be given "
    "several times. With --assume population tastes are drawn from these people (by default from usual people); with "
    "--assume winner they predict, and the proof does not need them."
)
REPEATS_HELP = (
    "Which of a judge's answers count: all (independent), only the first to each question (once), later ones too if 20 "
    "other questions came between (spaced), or all if the judge has answered some question in two ways (tested)."
)

SYSTEMS_HELP = (
    "Outputs to compare: columns system,input,output, or input and a column per system (CSV, JSON lines, Parquet); or "
    "a folder SYSTEM/INPUT.txt. ITEMS may then give features of the systems."
)
INPUTS_HELP = "With --systems: what the judge sees above the outputs, columns input,text; or a folder of text files."
STRATA_HELP = "With --systems: a column of --inputs; each of its values is drawn equally often."

WARM_HELP = (
    "Earlier answers that improve predictions and do not count as evidence, such as those of a language model: votes, "
    "or the log (--state) of an earlier search."
)

SHOW_HELP = "Items that a question shows: 2 (the default), or more with --pick or --rank."
PICK_HELP = "Every question asks for the best of the items shown, 4 unless --show says otherwise."
RANK_HELP = "Every question asks for the order of the items shown, 4 unless --show says otherwise."
TOP_HELP = "With --rank: ask only for this many places of the order, the best first."

COMPARED = "Systems on inputs"
SETS = "Questions that show several items"
