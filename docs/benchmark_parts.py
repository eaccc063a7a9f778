"""What is written by hand on the page benchmark.md; all its numbers are computed by make_benchmark.py."""

HEAD = """# Benchmark

How many questions does each method need, how often is it wrong when it stops, and how good is its guess before that?
Every method meets the same worlds through the same four functions, and sees nothing but the items and the answers to
its questions.

| command | what it runs |
|---|---|
| `surepick study benchmark` | the small profile: {small} worlds, {few} runs, a few minutes on two cores |
| `surepick study benchmark --profile full` | {full} worlds, {many} runs, about an hour; resumes where it stopped |
| `surepick study benchmark --profile full --data DIR` | recorded votes as judges, from any folder in our format |
| `python docs/make_benchmark.py` | the full profile, then this page |

All options of [studies](sweeps.md) apply: cores, Ray or Dask, a seed. `pip install './experiments[benchmark]'` adds
the packages of two rating systems; without them everything else runs. The numbers of this page are computed from
`docs/benchmark/rows.csv.gz`, one row per run; a test compares them.
"""

FEWER = """Fewer runs than {many} have {which}: they take longer.
"""

MEASURES = """## How it is measured

- **Runs.** {runs} of each method in each world, {total:,} in all. An instance is drawn from the seed, the world and
  the number of the run, so all methods meet the same instances.
- **Questions to stop.** A run that has not stopped after {most} questions counts as not stopped. Medians are over all
  runs, with intervals between order statistics.
- **Errors.** A claim is wrong if it names another item than the best, or denies that there is one; in a world without
  a winner every item is wrong. Intervals are those of Clopper and Pearson. A method exceeds delta = {delta:g} *beyond
  doubt* if its errors would have a probability below {level:g}, divided by the number of tests, for any method that
  keeps delta.
- **Best guesses** are read after 25, 50, ..., 1,600 questions; after a stop the claim stands. Simple regret is how
  much more often than half the time the best item beats the guess; it is in the rows.
- **The same for all.** The order of the two items shown, and the judge, are drawn at random for every method. Up to
  1,600 questions every question is asked alone; beyond that a method may ask one several times in a row, by 2% of the
  questions so far.
- **The near tie** was added after a trial on other seeds had shown that stops without a proof err there. Methods that
  stop have 600 runs in it, the number fixed on another seed; it was taken up again after 37 runs had been looked at.
- **Version.** `winner` was measured before its [bets aimed at the threshold](assumptions.md#theorem-1-excluding-items)
  and before it [always showed the leader](assumptions.md#what-else-was-tried), which takes about 8% fewer
  questions, and `anytime` before it [bet against items](anytime.md).
- **Settings** are published or default ones. Nothing was tuned. Methods that need κ₀ or the norm of θ* are told the
  truth, which no user knows.
- **What is heuristic.** The best guess of every method, ours included. Stops are what the tables say of them: proved,
  cited, as printed, or heuristic ([labels](guarantees.md)).
- Ours are the policies alone. In a session the [checks](checks.md) would take the proof from claims whose assumption
  they refute.
"""

PLAIN = (
    "Without features every item has to be compared several times. Adaptive methods drop clear losers after a "
    "few answers and compare the rest; the others spend most questions on items that cannot win, the more so "
    "the more items there are."
)

WHY = {
    "Soare": (
        "Only methods with a model of the features can take part: no two items are ever compared. `features` asks "
        "about the items that tell the best from the turned one, as a design would, and pays for every look with "
        "a likelihood ratio instead of a union of bounds."
    ),
    "colours, clear": (
        "Nine coordinates describe 37 colours, so an answer about two of them says something about all. Methods "
        "that use the features are ahead of those that do not; `winner` lets them choose its questions and proves "
        "its claim without them."
    ),
    "colours, close": (
        "The same, but most of the questions go into telling apart the best two, about which the features say "
        "little more than a comparison of the two does."
    ),
    "5 items": PLAIN,
    "10 items": "As with 5 items.",
    "20 items": "As with 5 items.",
    "50 items": (
        "As with 5 items. Spanning trees and schedules of games ask about all items alike: they are made for a "
        "whole ranking."
    ),
    "100 items": "As with 50 items.",
    "200 items": "As with 50 items. For the first guesses there is less than one question per item.",
    "10 items, close": "All stops take longer, and those by a posterior or a bootstrap are at greater risk.",
    "5 items, near tie": (
        "The best two differ by 2.5 points of win rate. A posterior whose prior expects larger gaps stops too "
        "early here, and a bootstrap that is looked at again and again stops when luck has it; both are often "
        "wrong. Stops with a proof wait."
    ),
    "Thurstone": "The logistic model is a little wrong, which nobody minds.",
    "circle below": (
        "Bradley–Terry does not hold among the others, so a fit to all answers may lead the choice of questions "
        "astray; `winner` and `savage` assume nothing about them."
    ),
    "ties": (
        "A tie is half a win for most methods, and a coin toss for those whose model has none. It says nothing "
        "against either item, so proofs take about as many decisive answers as before."
    ),
    "position bias": (
        "The random order makes the bias cancel, but it leaves noisier answers: everybody takes longer than without it."
    ),
    "mixed judges": (
        "Averaged over the judges the winner still wins every comparison, which is all that `winner` assumes. "
        "Answers are noisier than those of one judge."
    ),
    "careless judges": (
        "Tossed coins make every comparison closer to a half. `crowd-bt` is the only method that learns which "
        "judges to trust; the others average over them."
    ),
    "systems": (
        "A system wins on some inputs and loses on others, so win rates are near a half, and everybody takes longer."
    ),
    "disguised winner": (
        "Whoever trusts the features alone never finds the winner, and names another item for certain: "
        "`features`, `rage-glm`, `log-ts` and `top-two-features`, if they stop. `winner` uses the features to "
        "choose its questions, and finds out that they mislead."
    ),
    "circle on top": (
        "No claim of an item can be right here. `winner` and `savage` can find that every item loses to another "
        "one, and then say so; other methods cannot."
    ),
}
"""A word on each world: who is ahead, and why."""

ADDING = """## Adding a method or a world

A method is a class with `ask`, `tell`, `best` and `done`; a world draws an instance from a random generator. This is
all that is needed:

```python
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from surepick_experiments.benchmark import METHODS, WORLDS, Comparisons, Entry, Family, Question
from surepick_experiments.studies import Options, find_study, run_study


class KingOfTheHill:
    def __init__(self, challenge, rng):
        self.rng, self.items, self.king = rng, challenge.items, 0

    def ask(self):
        return Question(self.king, (self.king + 1 + int(self.rng.integers(self.items - 1))) % self.items)

    def tell(self, question, answer):
        self.king = question.first if answer.score >= 0.5 else question.second

    def best(self):
        return self.king

    def done(self):
        return False


def favourite(rng):  # one item wins 70% of its comparisons, the others are equal
    chances = np.full((6, 6), 0.5)
    best = int(rng.integers(6))
    chances[best], chances[:, best], chances[best, best] = 0.7, 0.3, 0.5
    return Comparisons(chances[None])


METHODS["king-of-the-hill"] = Entry(KingOfTheHill, "Whoever wins stays.")
WORLDS["favourite"] = Family(favourite, "One item wins 70% of its comparisons.")
options = Options(runs=1, policies=("king-of-the-hill",))
rows, summary = run_study(find_study("benchmark"), options, out=Path(mkdtemp()))
assert rows[-1]["world"] == "favourite"
del METHODS["king-of-the-hill"], WORLDS["favourite"]  # for whoever runs this page as a test
```

A method gets a `Challenge`: the number of items, their features if they have any, delta and a budget. It never gets
the world. To check that it sees nothing else, give it made-up answers and no world at all: the tests do so with
`surepick_experiments.benchmark.play.transcript` for every method, and catch one that cheats.
"""
