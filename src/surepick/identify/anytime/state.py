"""The state of Anytime: all stages with their answers, both evidence processes, and the estimates they suggest.

Stages are multiplied into the processes in the order of planning, over the longest prefix of answered stages; all that
a stage's factors depend on is fixed in its memo before its answers are used. So late answers, and delays that depend on
the answer, do no harm (docs/anytime.md, section 4).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from surepick._arrays import Floats, Integers
from surepick._cached import cached_property
from surepick.evidence.likelihood_ratio import RIDGES, Evidence, PlugIn, predicted
from surepick.evidence.plug_in_bounds import Localiser, localiser
from surepick.identify.anytime.directional import (
    BETS,
    DirectionalBets,
    DirectionalProcess,
    choose_bets,
)
from surepick.identify.anytime.estimates import Estimates
from surepick.identify.anytime.sampling import CaughtUpRivals, caught_up_rivals, closest_rivals, quadratic_nats
from surepick.identify.anytime.tuning import TUNING
from surepick.identify.policy import StageRecord, has_more
from surepick.identify.problem import Problem


@dataclass(frozen=True)
class ProvedRival:
    """A rival that was proved passed after some number of stages, and what the proof was found with."""

    leader: int
    item: int
    stages: int
    nats: float
    proof: Mapping[str, Any]


@dataclass(frozen=True)
class FailedProof:
    """A proof that failed: the evidence there was, the nats it lacked, and the questions that had been asked."""

    leader: int
    item: int
    evidence: float
    lacking: float
    asked: int
    bounded: bool = True
    """Whether there was a directional bound, however low."""
    witness: list[float] | None = None
    """A theta at which no proof could succeed, if one was met: nothing is worth trying before it is refuted."""

    def worth_repeating(self, evidence: float, asked: int) -> bool:
        """Whether enough has changed since: a proof that fails costs as much as one that succeeds."""
        gained = evidence > self.evidence + TUNING.retry_gain * self.lacking
        return gained or asked > TUNING.retry_growth * self.asked

    def loss(self, needed: float) -> float:
        """Nats that the proof lost of the evidence there was."""
        return self.evidence + self.lacking - needed


@dataclass(frozen=True, eq=False)
class StageFactors:
    """What the factors of a stage depend on besides its answers: fixed before these are used."""

    experts: Floats
    """The fits that predict."""
    predictions: Floats
    """Logits; experts × measurements of the stage."""
    bets: DirectionalBets | None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        bets = None if self.bets is None else self.bets.to_json()
        return {"experts": self.experts.tolist(), "predictions": self.predictions.tolist(), "bets": bets}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "StageFactors":
        """Read what `to_json` gave."""
        bets = given["bets"]
        if isinstance(bets, list):
            bets = _of_leaders(bets)
        bets = None if bets is None else DirectionalBets.from_json(bets)
        return cls(np.array(given["experts"]), np.array(given["predictions"]), bets)


def _of_leaders(given: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Bets of logs that had a process for each leader, as bets against items: of several on one item the first.

    They were fixed before the answers, so these are, too. The largest of five is left out.
    """
    chosen = {item: (bet, place) for bet in reversed(given) for place, item in enumerate(bet["rivals"])}
    if not chosen:
        return None
    shifts = [bet["shifts"][place][-BETS:] for bet, place in chosen.values()]
    return {"rivals": list(chosen), "shifts": shifts, "logits": given[0]["logits"], "limits": given[0]["limits"]}


@dataclass(frozen=True, eq=False)
class AnytimeMemo:
    """What must be remembered of the moment at which a stage was planned; `Plan.memo` holds it as JSON."""

    restart: bool
    """Whether a restart of the plug-in process begins with this stage."""
    passed: tuple[ProvedRival, ...]
    """Proofs that succeeded just before it ..."""
    tried: tuple[FailedProof, ...]
    """... and that failed."""
    examined: int
    """Evaluated stages when proofs were last tried."""
    rehearsed: int
    """Questions when proofs were last tried though other rivals lacked evidence."""
    factors: StageFactors | None
    """None while answers to earlier stages, on which they may depend, are still out."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "restart": self.restart,
            "passed": [asdict(proved) for proved in self.passed],
            "tried": [asdict(failed) for failed in self.tried],
            "examined": self.examined,
            "rehearsed": self.rehearsed,
            **({} if self.factors is None else self.factors.to_json()),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "AnytimeMemo":
        """Read what `to_json` gave."""
        return cls(
            given["restart"],
            # A pass by the bets for one leader, as logs once had them, is no pass by those against the item.
            tuple(
                ProvedRival(**proved)
                for proved in given["passed"]
                if proved["proof"]["rule"] != "directional" or len(proved["proof"]["bets"]) == BETS
            ),
            tuple(FailedProof(**failed) for failed in given["tried"]),
            given["examined"],
            given["rehearsed"],
            StageFactors.from_json(given) if "predictions" in given else None,
        )


@dataclass(frozen=True, eq=False)
class ProofLog:
    """What was proved and tried so far, by leader and rival: a rival once passed stays passed.

    Both processes are below their thresholds at theta* at all times at once with probability 1 − delta, so the proofs
    of different rivals may use different moments (docs/anytime.md, Theorem 1).
    """

    proved: Mapping[tuple[int, int], ProvedRival] = field(default_factory=dict)
    failed: Mapping[tuple[int, int], FailedProof] = field(default_factory=dict)
    examined: int = 0
    rehearsed: int = 0
    """As in the memo of the last stage."""

    def after(self, memo: AnytimeMemo) -> "ProofLog":
        """With what the memo of one more stage holds."""
        return ProofLog(
            # A rival passed for one leader is not passed for another, so both are part of the key.
            {**self.proved, **{(proved.leader, proved.item): proved for proved in memo.passed}},
            {**self.failed, **{(failed.leader, failed.item): failed for failed in memo.tried}},
            memo.examined,
            memo.rehearsed,
        )

    def passed(self, leader: int | None) -> dict[int, ProvedRival]:
        """Rivals of a leader that are passed; without one, items passed for any."""
        return {item: proved for (whose, item), proved in self.proved.items() if leader in (None, whose)}

    def tried(self, leader: int) -> dict[int, FailedProof]:
        """The last proof that failed, of each of its rivals that has one."""
        return {item: failed for (whose, item), failed in self.failed.items() if whose == leader}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a stopping rule finds in a state: whether the search is decided, and what to remember and to ask about."""

    promised: Floats
    """Nats that a proof against each item may come to, by estimates."""
    decided: bool = False
    passed: tuple[ProvedRival, ...] = ()
    tried: tuple[FailedProof, ...] = ()
    examined: int = 0
    rehearsed: int = 0
    """These four as in `AnytimeMemo`."""
    unbounded: bool = False
    """Whether some proof found no bound at all: there are hardly answers about some direction."""
    unproved: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Rivals that are passed by the estimates, and not by a proof ..."""
    unproved_nats: Floats = field(default_factory=lambda: np.zeros(0))
    """... and about how many nats their proofs come to."""


@dataclass(frozen=True, eq=False)
class State(Estimates):
    """All stages with their answers, and both processes after the first `evaluated_stages` of them."""

    problem: Problem
    delta: float
    epsilon: float
    charge: bool
    """Whether missing answers are charged the worst."""
    stopping_rule: Callable[["State"], Evaluation]
    plug_in: PlugIn
    experts: Floats
    """Fits that predicted the last stage: where the next ones start."""
    old: tuple[Floats, Floats] | None = None
    """Pulls and wins of answers from before the search, which half of the experts know."""
    stages: tuple[StageRecord, ...] = ()
    memos: tuple[AnytimeMemo, ...] = ()
    """Of each stage; with its factors once they are fixed."""
    evaluated_stages: int = 0
    process: DirectionalProcess = field(default_factory=DirectionalProcess.begin)
    proof_log: ProofLog = field(default_factory=ProofLog)

    @property
    def threshold(self) -> float:
        """log 1/delta_2: nats that pass a rival by the plug-in process (4)."""
        # delta_2 pays for the localiser and plug-in proofs, delta_1 = delta − delta_2 for directional ones.
        return math.log(1 / (TUNING.localiser_share * self.delta))

    @property
    def needed(self) -> float:
        """log 1/delta_1: nats that pass a rival by the directional process (5)."""
        return math.log(1 / ((1 - TUNING.localiser_share) * self.delta))

    def passed_before(self, leader: int) -> dict[int, ProvedRival]:
        """Items passed before the last stage; with epsilon > 0 only passes for this leader count."""
        return self.proof_log.passed(leader if self.epsilon > 0 else None)

    @cached_property
    def leader(self) -> int:
        """The best item under the estimate, of those that were not passed."""
        scores = self.problem.points @ self.theta
        if self.epsilon == 0:
            # The stopping rule never passes the leader, so there is always one left.
            scores[list(self.proof_log.passed(None))] = -np.inf
        return int(np.argmax(scores))

    @property
    def evaluated(self) -> "State":
        """The same with all stages of the longest answered prefix multiplied into the processes."""
        return self._evaluated if has_more(self.stages, self.evaluated_stages) else self

    @cached_property
    def _evaluated(self) -> "State":
        state = self
        for stage, memo in zip(self.stages[self.evaluated_stages :], self.memos[self.evaluated_stages :], strict=True):
            # A later stage may be answered; its factors may depend on the answers that this one still lacks.
            if not stage.answered:
                break
            done, where = state.evaluated_stages, stage.plan.measurements
            factors = memo.factors
            if factors is None:
                # All earlier answers are in, and no later one is used: that is what makes the factors predictable.
                before = replace(state, stages=state.stages[:done], memos=state.memos[:done])
                factors = before.fix_factors(where, stage.plan.pulls)
                memo = replace(memo, factors=factors)
            # A score between 0 and 1 counts as that much of a one: every factor is the exponential of an affine
            # function of the score, so it lies below its chord, whose mean is at most 1 (docs/anytime.md, section 4).
            pulls, wins = stage.scored
            # Missing answers count as factor one, or are charged the worst (19).
            missing = (stage.plan.pulls - pulls) * self.charge
            state = replace(
                state,
                memos=(*state.memos[:done], memo, *state.memos[done + 1 :]),
                evaluated_stages=done + 1,
                plug_in=state.plug_in.after(
                    where, pulls, wins, factors.predictions, restart=memo.restart, missing=missing
                ),
                process=state.process.after(factors.bets, where, pulls, wins, missing, self.problem.rows),
                experts=factors.experts,
            )
        return state

    @property
    def without_last_factors(self) -> "State":
        """The same for whoever writes no certificate: what was predicted and bet in the last stage is left out."""
        return replace(self, memos=(*self.memos[:-1], replace(self.memos[-1], factors=None)))

    @cached_property
    def evaluation(self) -> Evaluation:
        """What the stopping rule finds after the evaluated stages; proofs are expensive, so it is found once."""
        return self.stopping_rule(self) if self.evaluated is self else self.evaluated.evaluation

    @cached_property
    def evidence(self) -> Evidence:
        """The plug-in evidence of the evaluated stages."""
        return Evidence.of(self.evaluated.plug_in, self.problem.rows)

    @cached_property
    def localiser(self) -> Localiser:
        """An ellipsoid around C, all theta that the plug-in process does not refute."""
        return localiser(self.evidence, self.threshold)

    @cached_property
    def recent_information(self) -> Floats:
        """Information of the questions planned after the last restart but one."""
        # The newest restarts dominate G: where they have hardly any information, no bound is found.
        restarts = self.evaluated.plug_in.restarts
        return self.information_of(self.planned - restarts[max(len(restarts) - 2, 0)].pulls)

    @cached_property
    def early(self) -> bool:
        """Whether it is human scale still: few dimensions, few answers, and some of them all but certain."""
        rank = self.problem.span.rank
        if rank > TUNING.early_dimensions or self.asked >= TUNING.early_questions * rank:
            return False
        # Where no answer is all but certain the quadratic approximation is good, and larger stages lose nothing.
        first = self.asked < TUNING.first_early * rank
        return first or bool(np.max(np.abs(self.problem.rows @ self.theta)) > TUNING.early_log_odds)

    def rivals_except(self, items: Iterable[int]) -> Integers:
        """All items but the leader and these."""
        return np.setdiff1d(np.arange(len(self.problem.items)), [self.leader, *items])

    @property
    def coming_nats(self) -> Floats:
        """Nats that answers still to come will add against each item, if the estimate is right."""
        if not self.waiting:
            return np.zeros(len(self.problem.points))
        seen = self.information_of(self.arrived[0])
        inverse = np.asarray(np.linalg.inv(seen + self.ridge * np.eye(len(seen))))
        now = quadratic_nats(self.problem.points, self.leader, self.theta, inverse, self.epsilon)
        later = self.nats(self.leader)
        # The leader's own nats are infinite, and the difference of infinities is no number.
        now[self.leader] = later[self.leader] = 0.0
        return np.maximum(later - now, 0.0)

    @cached_property
    def caught_up(self) -> CaughtUpRivals:
        """The likeliest theta with which rivals of the leader have caught up, by the answers there are."""
        return self._caught_up(self.leader, self.theta, np.zeros(len(self.planned)))

    def caught_up_later(self, leader: int, theta: Floats) -> CaughtUpRivals:
        """The same as expected when all questions are answered, if this theta is right."""
        return self._caught_up(leader, theta, self.planned - self.arrived[0]) if self.waiting else self.caught_up

    def _caught_up(self, leader: int, theta: Floats, waiting: Floats) -> CaughtUpRivals:
        points = self.problem.points
        close = closest_rivals(self.nats(leader, theta))
        y = points[leader] - points[close]
        # The weakest ridge of all experts: what answers that all agree leave open is to be seen.
        ridge = float(RIDGES[-1]) * self._longest
        return caught_up_rivals(
            self.problem.rows, self.arrived, waiting, theta, close, y, self.inverse, ridge, self.epsilon
        )

    def fix_factors(self, where: Integers, pulls: Integers) -> StageFactors:
        """What is predicted and bet about a stage that asks these measurements this often.

        It may depend on all answers to stages planned before, whenever they came (docs/anytime.md, section 4).
        """
        rows, state = self.problem.rows, self.evaluated
        # Bets reckon with the process as it will be when all planned stages are answered.
        process = state.process
        for stage, memo in zip(
            state.stages[state.evaluated_stages :], state.memos[state.evaluated_stages :], strict=True
        ):
            assert memo.factors is not None  # with charged answers all factors are fixed when planned
            asked, none = stage.plan.pulls.astype(float), np.zeros(len(stage.plan.pulls))
            process = process.after(memo.factors.bets, stage.plan.measurements, asked, none, none, rows)
        bets = None
        if self.asked >= TUNING.bets_from * self.problem.span.rank:
            rivals, y, nats = self._bet_against
            if len(rivals):
                bets = choose_bets(
                    process,
                    rows,
                    rivals,
                    y,
                    self.theta,
                    (where, pulls.astype(float)),
                    nats=nats,
                    epsilon=self.epsilon,
                    target=2 * (math.log(1 / self.delta) + 1),
                    inverse=self.inverse,
                )
        predictions = predicted(rows, self.arrived[0], self.fits, rows[where])
        return StageFactors(self.fits, predictions, bets)

    @property
    def _bet_against(self) -> tuple[Integers, Floats, Floats]:
        """Items to bet against, what each is behind by its vector y, and the nats by which it is.

        The closest rivals that are not passed, and the leader itself where another item may be better.
        """
        points, leader = self.problem.points, self.leader
        nats = self.nats(leader)
        open_ = nats.copy()
        open_[list(self.passed_before(leader))] = np.inf
        rivals = closest_rivals(open_)
        rivals = rivals[np.isfinite(open_[rivals])]
        y, behind = points[leader] - points[rivals], nats[rivals]
        if len(rivals) and behind[0] < TUNING.contender_nats:
            rivals, y = np.append(rivals, leader), np.vstack([y, -y[:1]])
            behind = np.append(behind, 0.0)
        return rivals, y, behind
