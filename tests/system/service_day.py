"""Twenty-four hours of judges coming and going, time compressed: how often is the verdict wrong?

    python tests/system/service_day.py --studies 200

Every study has its own truth, day and judges. They come at random hours, answer as slowly as the question is hard,
leave while they hold questions, come back late, skip, call a tie, undo. The store and the planner are the
service's, on SQLite with a clock that the simulation moves; each study is compared with its log afterwards.

A negative control follows: studies whose verdict rule takes the first lead for a proof; the same count must catch it.
"""

import argparse
import heapq
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import binom, binomtest

from surepick.store import Conflict, Database, Planner, open_database, studies
from surepick.store.question_queue import (
    LeaseQuestions,
    SubmitAnswer,
    UndoAnswer,
    lease_questions,
    submit_answers,
    undo_answers,
)
from surepick.store.verify import verify_study

DAY = 86_400.0
LEASE = 120.0
JUDGES = 12
VISITS = 3
"""Visits of a judge in a day."""

GAPS = (1.5, 3.0)
"""Log-odds by which the best item is better than the second: between these."""

PLAN_SECONDS = 30.0
"""How often the planner has its turn; it is the slow part, and a judge holds questions for about as long."""

FALSE_ALARM = 1e-4
"""Probability that a rule which keeps its guarantee is called wrong."""

FIRST_LEAD = {"name": "posterior", "delta": 0.49}
"""A broken rule: stops at the first evaluation at which the leader is more likely best than not."""

CONTROL_GAPS = (0.05, 0.1)
"""Nearly equal items: where the gap is as in GAPS, even this rule is right four times in five, and hardly caught."""


class Day:
    """One study."""

    def __init__(
        self, database: Database, clock: list[float], policy: dict[str, Any], gaps: tuple[float, float], seed: int
    ) -> None:
        self.database, self.clock = database, clock
        database.clock = lambda: clock[0]
        self.planner, self.planned = Planner(database), -math.inf
        self.rng = np.random.default_rng([seed, 24])
        features = self.rng.normal(size=(3, 2))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        theta = self.rng.normal(size=2)
        best, second = np.sort(features @ theta)[::-1][:2]
        self.scores = features @ theta * (self.rng.uniform(*gaps) / (best - second))
        self.best = int(np.argmax(self.scores))
        items = [studies.Item(str(place), features=tuple(row)) for place, row in enumerate(features.tolist())]
        wanted = studies.StudyOptions("day", policy=policy, repeats="independent", lease=LEASE, seed=seed)
        with database.writing(durable=False) as connection:
            self.study = studies.create(connection, wanted, items, [], clock[0])
            self.judges = [studies.add_judge(connection, self.study, "", clock[0]) for _ in range(JUDGES)]

    def ask(self, handler: Any, request: Any) -> Any:
        with self.database.writing(durable=False) as connection:
            return handler(self.database, connection, [request])[0]

    def run(self) -> dict[str, Any]:
        """Until the verdict, or the end of the day."""
        begun = self.clock[0]
        visits: list[tuple[float, int, str, Any]] = []
        for place, judge in enumerate(self.judges):
            for number in range(VISITS):
                heapq.heappush(visits, (begun + self.rng.uniform(0, DAY), VISITS * place + number, judge, None))
        ticket = JUDGES * VISITS
        counts = {"answers": 0, "ties": 0, "skips": 0, "undone": 0, "left": 0, "late": 0}
        while visits and visits[0][0] < begun + DAY:
            self.clock[0], _, judge, held = heapq.heappop(visits)
            if self.clock[0] >= self.planned + PLAN_SECONDS:
                self.planned = self.clock[0]
                self.planner.round()
            if held is None:
                taken = self.ask(lease_questions, LeaseQuestions(self.study, judge, 2))
                if not taken.open:
                    break
                held = taken.questions[0] if taken.questions else None
            if held is None:  # nothing is ready
                next_visit = (self.clock[0] + 60, ticket, judge, None)
            else:
                next_visit = self.answer(judge, held, ticket, counts)
            ticket += 1
            if next_visit is not None:
                heapq.heappush(visits, next_visit)
        self.planner.round()
        with self.database.reading() as connection:
            row = studies.get(connection, self.study)
            report = verify_study(connection, self.study)
        with self.database.writing(durable=False) as connection:
            studies.change_state(connection, self.study, "closed")  # the planners of later days leave it alone
        found = {} if row["verdict"] is None else json.loads(row["verdict"])
        decided = found.get("status") in ("certain", "within epsilon")
        return {
            "decided": decided,
            "wrong": decided and found["best"] != str(self.best),
            "damaged": report.wrong,
            "hours": (self.clock[0] - begun) / 3600,
            **counts,
        }

    def answer(self, judge: str, question: Any, ticket: int, counts: dict[str, int]) -> Any:
        """What a judge does with a question; the next visit."""
        now, rng = self.clock[0], self.rng
        behind = self.scores[int(question["first"])] - self.scores[int(question["second"])]
        fresh = question["leased_until"] is None or now < question["leased_until"]
        if fresh and rng.random() < 0.05:
            counts["left"] += 1  # goes away with it, and answers after it expired, or never
            return (now + LEASE * rng.uniform(1.1, 4), ticket, judge, question) if rng.random() < 0.5 else None
        kind = rng.random()
        said = "a" if rng.random() < expit(behind) else "b"
        said = "tie" if kind < 0.1 else "skip" if kind < 0.13 else said
        outcome = self.ask(submit_answers, SubmitAnswer(self.study, judge, question["id"], said))
        if isinstance(outcome, Conflict):
            return None
        counts["ties" if said == "tie" else "skips" if said == "skip" else "answers"] += 1
        counts["late"] += question["leased_until"] is not None and now > question["leased_until"]
        if rng.random() < 0.03 and not isinstance(self.ask(undo_answers, UndoAnswer(self.study, judge)), Conflict):
            counts["undone"] += 1
            again = "a" if rng.random() < expit(behind) else "b"
            self.ask(submit_answers, SubmitAnswer(self.study, judge, question["id"], again, turn=2))
        if rng.random() < 0.03:
            return None  # the visit is over
        # Hard questions take longer, and a win of the first shown is clicked faster: delays depend on answers.
        delay = rng.lognormal(math.log(8 + 10 * math.exp(-abs(behind)) + 5 * (said == "b")), 0.6)
        return now + delay, ticket, judge, None


def days(number: int, policy: dict[str, Any], gaps: tuple[float, float], seed: int) -> list[dict[str, Any]]:
    """Studies one after the other on one database."""
    rows: list[dict[str, Any]] = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{Path(folder)}/days.db")
        for place in range(number):
            rows.append(Day(database, [1e6 + 2 * DAY * place], policy, gaps, seed + place).run())
            for sentence in rows[-1]["damaged"]:
                print(f"seed {seed + place}: {sentence}", file=sys.stderr, flush=True)
            if (place + 1) % 10 == 0 or place + 1 == number:
                seconds, wrong = time.monotonic() - begun, sum(row["wrong"] for row in rows)
                left = seconds / (place + 1) * (number - place - 1)
                print(
                    f"{place + 1} of {number} studies, {wrong} wrong, {seconds:.0f} s, about {left:.0f} s to go",
                    file=sys.stderr,
                    flush=True,
                )
        database.close()
    return rows


def summary(rows: list[dict[str, Any]], delta: float) -> dict[str, Any]:
    """How many verdicts are wrong, and whether that is plausible where each is wrong with probability delta."""
    wrong, most = sum(row["wrong"] for row in rows), int(binom.isf(FALSE_ALARM, len(rows), delta))
    return {
        "studies": len(rows),
        "decided": sum(row["decided"] for row in rows),
        "wrong": wrong,
        "wrong_at_most": most,
        "keeps_its_word": wrong <= most,
        "upper_95": binomtest(wrong, len(rows)).proportion_ci(0.9, "exact").high,
        "damaged": sum(bool(row["damaged"]) for row in rows),
        "mean_hours": float(np.mean([row["hours"] for row in rows])),
        **{name: sum(row[name] for row in rows) for name in ("answers", "ties", "skips", "undone", "left", "late")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--controls", type=int, default=60, help="studies with a broken verdict rule")
    parser.add_argument("--delta", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    proved = {"name": "anytime", "delta": chosen.delta}
    found = summary(days(chosen.studies, proved, GAPS, chosen.seed), chosen.delta)
    control = summary(days(chosen.controls, FIRST_LEAD, CONTROL_GAPS, chosen.seed), chosen.delta)
    print(json.dumps({"delta": chosen.delta, "proved": found, "control": control}, indent=2))
    print(
        f"{found['studies']} studies, {found['decided']} decided, {found['wrong']} wrong: an error rate of at most "
        f"{found['upper_95']:.3f} (exact binomial, 95%) where {chosen.delta} is promised; "
        f"{found['studies'] - found['damaged']} equal to the replay of their log. Broken rule: {control['wrong']} of "
        f"{control['studies']} wrong, {'not caught' if control['keeps_its_word'] else 'caught'}."
    )
    good = found["keeps_its_word"] and not control["keeps_its_word"] and not found["damaged"] + control["damaged"]
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
