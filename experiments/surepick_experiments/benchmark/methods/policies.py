"""Policies of surepick, ours and those it keeps for comparison, as methods of the benchmark."""

from collections import deque
from typing import Any

import numpy as np

from surepick.identify import Policy, Problem, Status, Verdict, Wait
from surepick.identify.policy import Plan, updated
from surepick.registry import policy_named
from surepick_experiments.benchmark.challenge import CHECKPOINTS, Answer, Challenge, Make, Question
from surepick_experiments.benchmark.methods.counts import Counts, Posterior

TAKES_TIES = ("winner", "anytime")
"""Policies that count a tie as a score of ½; for others it is decided by a coin."""


class PolicyMethod:
    """A policy, asked stage by stage; the questions of a stage come in random order."""

    def __init__(self, policy: Policy[Any], challenge: Challenge, rng: np.random.Generator) -> None:
        self.policy, self.rng = policy, rng
        self.problem = _problem(challenge)
        self.state = policy.start(self.problem)
        self.counts = Counts(challenge)
        self.verdict: Verdict | None = None
        self.waiting: deque[tuple[int, int]] = deque()
        """Place in the stage, and how often to ask."""
        self._next_stage()

    def _next_stage(self) -> None:
        outcome = self.policy.plan(self.state, self.rng)
        if isinstance(outcome, Wait):
            raise AssertionError(f"{self.policy.name} waits though every stage is answered: {outcome.reason}")
        if isinstance(outcome, Verdict):
            self.verdict = outcome
            return
        self.plan: Plan = outcome
        self.state = self.policy.apply(self.state, outcome)
        self.pulls, self.wins = np.zeros_like(outcome.pulls), np.zeros_like(outcome.pulls)
        self.ties: list[list[float]] = [[] for _ in outcome.pulls]
        # One by one up to the last checkpoint, where guesses are read; then each question as often as it is planned.
        single = min(outcome.total, max(0, CHECKPOINTS[-1] - self.counts.asked))
        order = self.rng.permutation(np.repeat(np.arange(len(outcome.pulls)), np.minimum(outcome.pulls, single)))
        first = order[:single].tolist()
        self.waiting.extend((place, 1) for place in first)
        left = outcome.pulls - np.bincount(order[:single], minlength=len(outcome.pulls))
        self.waiting.extend((place, int(left[place])) for place in np.flatnonzero(left).tolist())

    def ask(self) -> Question:
        """The next question of the stage."""
        place, times = self.waiting[0]
        measurement = int(self.plan.measurements[place])
        if not self.counts.challenge.pairs:
            return Question(measurement, times=times)  # the questions are about the items, in their order
        first, second = self.problem.about[measurement].tolist()
        return Question(first, second, times)

    def tell(self, question: Question, answer: Answer) -> None:
        """Record it; the last answer of a stage is followed by the next stage."""
        place, times = self.waiting.popleft()
        score = answer.score
        if times == 1 and score == 0.5 and self.policy.name in TAKES_TIES:
            self.ties[place].append(score)
        else:
            # The half point of a tie goes to either side at random.
            score = int(score) + int(score % 1 > 0 and self.rng.random() < 0.5)
            self.pulls[place] += times
            self.wins[place] += score
        self.counts.add(question, answer)
        if not self.waiting:
            tally = self.plan.tally(self.problem, self.wins, self.pulls)
            partial = self.ties if any(self.ties) else ()
            self.state = updated(self.policy, self.state, self.plan.stage, tally, partial)
            self._next_stage()

    def best(self) -> int | None:
        """The item of the verdict so far; for a policy that says nothing between stages, of a fit to its answers."""
        if self.verdict is not None:
            return None if self.verdict.status is Status.NO_WINNER else int(self.verdict.best)
        if self.policy.name in TAKES_TIES:
            return int(self.policy.verdict(self.state).best)
        fitted = Posterior.usual(self.counts)
        fitted.refit(8)
        return fitted.best

    def done(self) -> bool:
        """Whether the verdict is a claim; that there is no winner is one, too."""
        return self.verdict is not None and (self.verdict.status.decided or self.verdict.status is Status.NO_WINNER)


def _problem(challenge: Challenge) -> Problem:
    """The same items as a problem of surepick, named by their numbers."""
    names = [str(item) for item in range(challenge.items)]
    if not challenge.pairs:
        return Problem(challenge.points, challenge.points, names=names)
    return Problem.from_pairs(challenge.points, names=names)


def policy(name: str) -> Make:
    """The policy of this name, told what the challenge says is known."""

    def make(challenge: Challenge, rng: np.random.Generator) -> PolicyMethod:
        told = {"kappa": challenge.known["kappa"]} if "kappa" in challenge.known else {}
        return PolicyMethod(policy_named(name, delta=challenge.delta, **told), challenge, rng)

    return make
