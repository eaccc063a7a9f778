"""A session: the one mutable object. It hands out questions, takes answers, and is a fold over its own log.

Every change is one event (a JSON object) applied by `_apply` and appended to the log, live and in a replay alike; so to
resume is to replay, and nothing is ever pickled. Stages and verdicts are logged as they were found, and a replay reads
them instead of computing them again. Questions are drawn with default_rng([seed, question number]).

A stage is *answered* when all its answers are in, *evaluated* when the policy has counted them for good (from then on
no answer of it can be undone, since that could depend on what the evaluation showed), and the session is *decided* when
the verdict is reached.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from surepick import validate
from surepick.answer import Places, read_answer
from surepick.certificate import Chain
from surepick.checks import CHECKS, Check, check_all
from surepick.display import Displayed, View
from surepick.errors import InvalidInput, SurepickError
from surepick.identify import Anytime, Claim, Forecast, Plan, Policy, Problem, Verdict, Wait, Winner
from surepick.identify.forecast import FEWEST, OpenStage, forecast_further, outdated
from surepick.identify.ladder import LADDER_POLICIES, Ladder, default_assumption, policy_for, questioned
from surepick.identify.policy import require_sets_allowed, updated
from surepick.registry import policy_from_json
from surepick.session.event_log import EventLog
from surepick.session.journal import Event, Journal, answers_of, parse_events, read_journal
from surepick.session.question import Question, StageProgress
from surepick.session.record import Record
from surepick.session.repeats import REPEATS, Repeats

FORMAT = 3
"""Version of the log's format."""

ON_AVERAGE = "To win is to win on average over these {:,} inputs, of which each question shows one, drawn at random"
"""What comparisons of systems are about; docs/systems.md."""

ONCE = ", and over both orders, by the first answer that the judge gives to each"
"""What else they are about if a pair is compared at most once on each input in each order."""

RANKED_ONCE = ", in an order of the outputs drawn at random for each and in its reverse, by the first answer to each"
"""The same for rankings."""

MOST_CHECKED = 300
"""In more coordinates the checks would take longer than the search; `Session.checks` runs them whatever it takes."""

LEAST_EXPECTED = 1e-3
"""No repeated answer is expected to agree with a smaller chance: one surprise must not prove memory."""


@dataclass(frozen=True)
class _LastForecast:
    """The last forecast, and when and how it was made."""

    forecast: Forecast
    at: int
    made_with: tuple[int, int]


class Session(Displayed):
    """Ask, tell, and read the verdict; any number of questions may be out, and answers come in any order.

    `policy` defaults to Winner() for comparisons and Anytime() for other questions. `repeats` says which answers of a
    judge count: "independent", all; "once", the first to each question; "spaced", also later ones with enough questions
    between; "tested", all of a judge who has answered one question in two ways. With `path` every event is written to
    that file before the call returns; `Session.resume(path)` goes on from it.

    >>> session = Session(Problem.from_pairs({"red": [1.0, 0.0], "blue": [0.0, 1.0]}), seed=7)
    >>> question = session.ask(1)[0]
    >>> session.tell(question.id, 1)
    >>> session.verdict().status
    <Status.OPEN: 'open'>
    """

    _journal: Journal | None

    def __init__(
        self,
        problem: Problem,
        policy: Policy[Any] | None = None,
        *,
        repeats: Repeats = "independent",
        seed: int = 0,
        path: str | PathLike[str] | None = None,
    ) -> None:
        policy = policy or policy_for(problem, default_assumption(problem))
        self._set_up(problem, policy, seed, repeats, ties_count=policy.name in LADDER_POLICIES)
        if path is not None:
            if Path(path).exists() and Path(path).stat().st_size:
                raise InvalidInput(f"{path} already holds a session; Session.resume('{path}') resumes it.")
            self._journal = Journal(Path(path))
        self._write(
            {
                "event": "session",
                "format": FORMAT,
                "seed": seed,
                "policy": described(policy),
                "problem": problem.to_json(),
            }
            | ({} if repeats == "independent" else {"repeats": repeats})
            | ({"ties": "half"} if policy.name in LADDER_POLICIES else {})
        )

    def _set_up(self, problem: Problem, policy: Policy[Any], seed: int, repeats: Repeats, *, ties_count: bool) -> None:
        validate.one_of("repeats", repeats, REPEATS)
        if repeats != "independent" and policy.name not in LADDER_POLICIES:
            raise InvalidInput(
                f"repeats={repeats!r} needs a policy that can ask other questions instead: winner, anytime, "
                f"exclusion or posterior, not {policy.name}."
            )
        if repeats in ("spaced", "tested") and problem.inputs:
            raise InvalidInput(
                f"repeats={repeats!r} is for pairs that are asked again and again; with inputs use 'once', which lets "
                "the first answer to a pair on an input stand, or 'independent'."
            )
        if problem.once and policy.name != "winner":
            raise InvalidInput(
                f"Answers drawn without replacement need the policy Winner, not {policy.name}; leave out once."
            )
        if repeats != "independent" and problem.once:
            raise InvalidInput(f"This problem asks nothing twice, so repeats={repeats!r} has no meaning; leave it out.")
        require_sets_allowed(problem, policy)
        if repeats in ("spaced", "tested") and problem.show > 2:
            raise InvalidInput(
                f"repeats={repeats!r} is for comparisons, which tell whether answers are remembered; for sets use "
                "'once' or 'independent'."
            )
        self.problem = problem
        self.policy = policy
        self.seed = seed
        self.log = EventLog()
        self.chain = Chain(self.log)
        self._journal = None
        self._state = policy.start(problem)
        self._record = Record(problem, repeats, ties_count=ties_count)
        self._exhausted: str | None = None
        self._ladder: Ladder | None = None
        self._evaluated = 0
        self._logged_evaluations = 0
        self._verdict: Verdict | None = None
        self._forecast: _LastForecast | None = None

    @classmethod
    def replay(cls, lines: Iterable[str | Event], *, policy: Policy[Any] | None = None) -> "Session":
        """Rebuild a session from its log, as text lines or events; pass `policy` only if it is not of this package."""
        events = parse_events(lines)
        head = next(events, {})
        if head.get("event") != "session":
            raise InvalidInput("A session's log begins with an event 'session'; this one does not.")
        if head.get("format") != FORMAT:
            raise InvalidInput(f"This log has format {head.get('format')!r}, this version of surepick reads {FORMAT}.")
        session = cls.__new__(cls)
        try:
            chosen = policy_from_json(head["policy"]) if policy is None else policy
            session._set_up(
                Problem.from_json(head["problem"]),
                chosen,
                head["seed"],
                head.get("repeats", "independent"),
                ties_count=head.get("ties") == "half",  # in logs of earlier versions they are missing answers
            )
            session.log.append(head)
            for event in events:
                session._apply(event)
                session.log.append(event)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            number = 1 + len(vars(session).get("log", []))
            raise InvalidInput(
                f"Line {number} of the log does not follow from those before it ({type(error).__name__} {error}); "
                "restore the log."
            ) from None
        return session

    @classmethod
    def resume(cls, path: str | PathLike[str], *, policy: Policy[Any] | None = None) -> "Session":
        """Go on with the session whose log is this file; a half-written last line, left by a crash, is cut off."""
        session = cls.replay(read_journal(Path(path)), policy=policy)
        session._journal = Journal(Path(path))
        return session

    def view(self) -> View:
        """All questions with their answers. Nothing is evaluated, so that looking changes nothing."""
        kinds = {event["id"]: event for event in self.log if event["event"] in ("answer", "tie", "skip", "undo")}
        last = [kinds.get(number, {"event": "open"}) for number in self.questions]
        items, out = len(self.problem.names), len(self.outstanding)
        found = "no verdict yet" if self._verdict is None else str(self._verdict).rstrip(".")
        return View(
            f"{items:,} items, policy {self.policy.name}; answers: {self.answered:,}, open questions: {out:,}; {found}",
            {
                "question": list(self.questions),
                "shown": [", ".join(question.items) for question in self.questions.values()],
                "answer": [event.get("answer", event["event"].replace("undo", "open")) for event in last],
                "judge": [event.get("judge") for event in last],
            },
        )

    def to_lines(self) -> list[str]:
        """The log as JSON lines."""
        return [json.dumps(event) for event in self.log]

    def ask(self, n: int = 1, *, without: Collection[int] | None = None) -> list[Question]:
        """Up to n new questions; fewer where the policy waits for open ones (see `outstanding`) or is done.

        Where repeated answers do not count, they are questions that the judge without a name has not had. With several
        judges, `without` says which measurements are not to be asked: `had_by(judge)`, and what that judge has open.
        """
        if n < 1 or n != int(n):
            raise InvalidInput(f"ask takes a whole number of questions, at least 1, got {n!r}.")
        asked: list[Question] = []
        while len(asked) < n and self._verdict is None:
            if not self._record.stages or not self._record.stages[-1].unasked.any():
                if not self._plan(without):
                    break
                continue
            stage = self._record.stages[-1]  # all questions of the one before had been asked when this one was planned
            number = len(self._record.questions) + 1
            rng = np.random.default_rng([self.seed, number])
            drawn = int(rng.integers(stage.unasked.sum()))
            place = int(np.searchsorted(np.cumsum(stage.unasked), drawn, side="right"))
            measurement = int(stage.plan.measurements[place])
            event: Event = {"event": "question", "id": number, "stage": stage.plan.stage, "measurement": measurement}
            kind = self.problem.kind(measurement)
            if kind in ("pick", "rank"):
                event["order"] = rng.permutation(self.problem.show).tolist()
            else:
                either_way = kind == "compare" and not self.problem.position
                event["swapped"] = bool(rng.integers(2)) if either_way else False
            if self.problem.once:
                event["input"], swapped = self._record.draw_cell(measurement, rng)
                if "order" not in event:
                    event["swapped"] = swapped
                elif (before := self._record.first_order(measurement, event["input"])) is not None:
                    event["order"] = before[::-1]
            elif self.problem.inputs:  # drawn last, so that the draws before it are the same in every problem
                inputs, weights = self.problem.inputs, self.problem.input_weights
                event["input"] = inputs[int(rng.choice(len(inputs), p=weights))]
            self._do(event)
            asked.append(self._record.questions[number])
        return asked

    def tell(
        self,
        question: int | Question,
        answer: float | str | Sequence[int | str],
        *,
        judge: str | None = None,
        cost: float | None = None,
        raw: str | None = None,
        probability: float | None = None,
        late: bool = False,
    ) -> None:
        """File an answer: 1 for yes or the first item shown, 0 for no or the second. The same twice does nothing.

        `question` is a question or its id. The answer may be the name of the better item, or another word of
        docs/votes.md, such as "tie", "skip", "yes" or "no"; the name of an item shown goes before a word.

        Winner and Anytime also take scores between 0 and 1: how far the first item is preferred. A question about a set
        takes the item picked, or several in their order, the best first: as places counted from 1, or as names.

        An answer to a skipped question whose stage has been evaluated meanwhile is late, and so is every one after the
        verdict: it is logged as such (see `late`) and changes no evidence, since whether it was given may depend on
        what the evaluation showed. With `late` the caller says so of an answer that came too late elsewhere.

        Who answered, the cost, the judge's own words (`raw`) and the probability that the answer was drawn from are
        logged and not used.
        """
        known = self._record.question(question.id if isinstance(question, Question) else question)
        question = known.id
        if isinstance(answer, str) and not known.about_set:
            named = len(known.items) == 2 and answer in known.items
            read = int(answer == known.items[0]) if named else read_answer(answer, known.items)
            if read is None:
                self.skip(question, judge=judge, cost=cost, raw=raw)
                return
            if read == "tie":
                self.tie(question, judge=judge, cost=cost, raw=raw)
                return
            answer = read
        said = self._record.checked(question, answer)
        given = self._record.given(question)
        if given == said:
            return
        if given is not None:
            raise InvalidInput(
                f"Question {question} was answered {given} before and {said} now; undo({question}) takes the first "
                "answer back."
            )
        late = late or known.stage < self._evaluated or self._verdict is not None
        event = {"event": "answer", "id": known.id, "answer": list(said) if isinstance(said, tuple) else said}
        event |= {"late": True} if late else {}
        self._do(event | ({} if late else self._about_repeat(known, judge)) | _source(judge, cost, raw, probability))

    def _about_repeat(self, question: Question, judge: str | None) -> Event:
        """Whether a repeated answer counts, and how likely it was to agree: decided by what came before it."""
        history = self._record.history
        if history.first_stands(judge, question.asked):
            said = history.last_said(judge, question.asked)
            if isinstance(said, tuple):  # places of the set, and not yet of what is shown this time
                return {"stands": [question.order.index(place) + 1 for place in said]}
            return {"stands": 1 - said if question.swapped else said}
        event: Event = {} if history.counts(judge, question.asked) else {"void": True}
        if not history.is_repeat(judge, question.asked):
            return event
        if history.predicts and history.last_said(judge, question.asked) in (0, 1):
            predict = cast("Anytime | Winner", self.policy).predict
            chance = predict(self._state, question.measurement)
            agreeing = chance if history.last_said(judge, question.asked) else 1 - chance
            event["expected"] = math.ceil(1e6 * min(max(agreeing, LEAST_EXPECTED), 1.0)) / 1e6  # never less than it is
        return event

    def skip(
        self, question: int, *, judge: str | None = None, cost: float | None = None, raw: str | None = None
    ) -> None:
        """An answer is no longer expected; one that comes before the stage is evaluated still counts."""
        self._leave_unanswered({"event": "skip", "id": question} | _source(judge, cost, raw))

    def tie(
        self, question: int, *, judge: str | None = None, cost: float | None = None, raw: str | None = None
    ) -> None:
        """The judge saw no difference: a score of ½ for Winner and Anytime, and a missing answer for other policies."""
        known = self._record.question(question)
        if question not in self._record.tied:
            about = self._about_repeat(known, judge) if self._record.ties_count else {}
            self._leave_unanswered({"event": "tie", "id": question} | about | _source(judge, cost, raw))

    def undo(self, question: int | None = None) -> Question:
        """Take back an answer, skip or tie (by default the last answer), until its stage is evaluated.

        The question is open again.
        """
        if question is None:
            if not self._record.answers:
                raise InvalidInput("There is no answer to undo.")
            question = next(reversed(self._record.answers))
        known = self._record.question(question)
        answered = question in self._record.answers or question in self._record.tied
        if not answered and question not in self._record.without_answer:
            raise InvalidInput(f"Question {question} has no answer to undo.")
        if known.stage < self._evaluated:
            raise InvalidInput(
                f"The answer to question {question} can no longer be undone: its stage {known.stage} has been "
                "evaluated, and a change now would depend on what it showed."
            )
        self._do({"event": "undo", "id": question})
        return known

    @property
    def outstanding(self) -> list[Question]:
        """Questions handed out that have no answer, skip or tie yet, in the order asked."""
        return self._record.outstanding

    @property
    def questions(self) -> Mapping[int, Question]:
        """All questions asked, by id."""
        return self._record.questions

    @property
    def answers(self) -> Mapping[int, float | Places]:
        """All answers by the id of their question: 1 for the first item shown or yes, 0, a score between, or places."""
        return self._record.answers

    @property
    def answered(self) -> int:
        """Number of answers filed, late ones included."""
        return len(self._record.answers)

    @property
    def late(self) -> frozenset[int]:
        """Questions whose answer came after their stage had been evaluated; it is logged and not counted."""
        return frozenset(self._record.late)

    @property
    def takes_scores(self) -> bool:
        """Whether answers to comparisons may be scores between 0 and 1, and a tie counts as one half."""
        return self._record.ties_count

    @property
    def repeats(self) -> Repeats:
        """Which answers of a judge count."""
        return self._record.history.repeats

    @property
    def uncounted(self) -> frozenset[int]:
        """Questions whose answer repeats an earlier one of the same judge and does not count."""
        return frozenset(self._record.void)

    @property
    def exhausted(self) -> bool:
        """Whether the last call of `ask` found nothing new for its judge that could decide."""
        return self._exhausted is not None

    def had_by(self, judge: str | None) -> frozenset[int]:
        """Measurements that this judge has answered, where another answer would not count."""
        return self._record.history.had_by(judge)

    @property
    def final(self) -> Verdict | None:
        """The final verdict once it is reached; unlike `verdict()` it evaluates nothing."""
        return self._verdict

    @property
    def answered_stages(self) -> int:
        """Length of the longest run of answered stages from the first: what will be evaluated next."""
        stages = self._record.stages
        rest = range(self._evaluated, len(stages))
        return next((number for number in rest if not stages[number].answered), len(stages))

    def verdict(self) -> Verdict:
        """The verdict: final once reached, else `open` with what is known from answered stages.

        An open one has a `forecast` of further questions and `claims`, computed when they are first read.
        """
        if self._verdict is not None:
            return self._verdict
        self._evaluate()
        result = self.policy.verdict(self._state)
        if result.status.final:
            self._conclude(result)
        else:
            self._log_evaluation()
        return self._verdict or self._on_the_way(result)

    def _on_the_way(self, result: Verdict) -> Verdict:
        """An open verdict with all that can be said besides."""
        count = sum(stage.filed for stage in self._record.stages[self._evaluated :])
        if count:
            result = replace(result, not_evaluated=count, **self._best_guess(result))
        said = (result.reason, _about_waiting(count, self.outstanding) if count else "")
        result = replace(
            result,
            assumptions=(*result.assumptions, *self._about_questions),
            reason=" ".join(filter(None, (*said, self._exhausted))),
            forecaster=self.forecast,
        )
        return replace(result, claimant=lambda: self._claims(result))

    def _best_guess(self, result: Verdict) -> dict[str, Any]:
        """The best item by every answer that is in, as fields of a verdict; what is proved does not change."""
        if self.policy.name in LADDER_POLICIES:
            return {}  # their leader is by all answers already
        state = self._state
        try:
            for stage in range(self._evaluated, len(self._record.stages)):
                state = self.policy.close(state, stage)
            best = self.policy.verdict(state).best
        except SurepickError:  # a policy whose proof needs every answer of a stage
            return {}
        known = self.problem.index(best)
        return {"best": best, "also": self.problem.aliases[known][1:]} if best in result.surviving else {}

    @property
    def _about_questions(self) -> tuple[str, ...]:
        """What is assumed of inputs and of repeated answers, in sentences."""
        count, weighted = len(self.problem.inputs), self.problem.input_weights is not None
        once = RANKED_ONCE if self.problem.by_places else ONCE
        how = ", with the weights given" if weighted else once if self.problem.once else ""
        return (
            *((f"{ON_AVERAGE.format(count)}{how}.",) if count else ()),
            *(() if self.problem.once else self._record.history.sentences),
        )

    @property
    def evaluated_stages(self) -> Sequence[StageProgress]:
        """The stages whose answers count for good, in the order of planning."""
        return self._record.stages[: self._evaluated]

    def _claims(self, result: Verdict) -> tuple[Claim, ...]:
        """What the evaluated stages prove under every assumption; only what is new since the last call is computed."""
        stages = self.evaluated_stages
        self._ladder = (self._ladder or Ladder.of(self.problem, self.policy)).after(stages)
        return self._ladder.claims(result, stages)

    def _conclude(self, result: Verdict) -> None:
        """Log the final verdict with all claims, and what the checks say of their assumptions."""
        result = replace(result, assumptions=(*result.assumptions, *self._about_questions))
        result = replace(result, known_claims=self._claims(result))
        if result.status.decided and self.problem.items.shape[1] <= MOST_CHECKED:
            result = questioned(result, self.checks())
        self._do({"event": "verdict", **result.to_json()})

    def certificate(self) -> dict[str, Any]:
        """Plain data from which `surepick.verify_certificate` proves the verdict again; needs a policy that has one."""
        make = getattr(self.policy, "certificate", None)
        if make is None:
            raise InvalidInput(f"{self.policy.name} writes no certificates; Anytime, Exclusion and Winner do.")
        reached = next((place for place, event in enumerate(self.log) if event["event"] == "verdict"), len(self.log))
        if reached < len(self.log) - 1:  # answers that came later may say less; the verdict stands on those before it
            return Session.replay(self.log[:reached], policy=self.policy).certificate()
        self._evaluate()
        self._log_evaluation()
        return self.chain.write(make(self._state))

    def checks(self, *, level: float = 0.05) -> tuple[Check, ...]:
        """Are the verdict's assumptions in doubt? All of docs/checks.md; any false alarm has probability `level`."""
        answers, own = answers_of(self.problem, self.log), getattr(self.policy, "check_population", None)
        if own is None:
            return check_all(answers, level=level)
        share = level / (len(CHECKS) + 1)
        return (*check_all(answers, level=level - share), own(self._state, level=share))

    def progress(self) -> tuple[Any, list[OpenStage]]:
        """The policy's state with all answers filed, and the stages as they stand.

        It is what a simulation goes on from (`identify.forecast.forecast_further`), in another thread if need be. It
        shows something of the answers, so an evaluation is logged as by `verdict`.
        """
        state, stages = self._progress()
        return state, list(stages)

    def _progress(self) -> tuple[Any, Iterator[OpenStage]]:
        """The same with stages that are unpacked one after the other, as long as the session does not change."""
        self._evaluate()
        self._log_evaluation()
        return self._state, (stage.as_it_stands(self._record.questions) for stage in self._record.stages)

    def forecast(self, *, draws: int = FEWEST, seed: int = 0, price: float | None = None) -> Forecast:
        """How many more questions it will take, with an 80% interval; heuristic.

        It is simulated again (`draws` searches, seconds for a small problem) when a quarter more answers are in than
        when it was last made; in between it is the last one, less the answers since. So it may be called after every
        answer.
        """
        if self._verdict is not None:
            nothing = np.zeros(draws, dtype=np.int64)
            return Forecast(self.policy.name, nothing, nothing.astype(bool), 0, 0, price)
        kept = self._forecast
        if kept is None or kept.made_with != (draws, seed) or outdated(kept.at, self.answered):
            made = forecast_further(self.problem, self.policy, *self._progress(), draws=draws, seed=seed)
            kept = self._forecast = _LastForecast(made, self.answered, (draws, seed))
        return replace(kept.forecast.after(self.answered - kept.at), price=price)

    def _plan(self, without: Collection[int] | None) -> bool:
        """Let the policy plan; returns whether the log has grown by a stage or the verdict."""
        self._evaluate()
        rng = np.random.default_rng([self.seed, len(self._record.questions) + 1, 1])
        alone = self.repeats != "independent" and without is None
        if alone:
            # The same pair on another input is another question, so there open ones do not matter.
            out = () if self.problem.inputs else self.outstanding
            had = self._record.history.had_by_all()
            without = had | {question.measurement for question in out} if had or self.repeats != "tested" else None
        if without is None:
            outcome = self.policy.plan(self._state, rng)
        else:
            outcome = cast("Any", self.policy).plan(self._state, rng, without=without)  # a policy of the ladder
            if alone and isinstance(outcome, Wait) and outcome.exhausted and self._record.history.forgets(None):
                outcome = self._meanwhile(without, rng) or outcome
        if isinstance(outcome, Plan):
            event = {"event": "stage", **outcome.to_json()}
            self._do(event | {"link": self.chain.next(event, self._record.stages, self._evaluated)})
        elif isinstance(outcome, Verdict):
            self._conclude(outcome)
        # With several judges this is about one of them, and so no part of a verdict for all.
        self._exhausted = (
            (outcome.reason if alone or self.problem.once else "")
            if isinstance(outcome, Wait) and outcome.exhausted
            else None
        )
        return not isinstance(outcome, Wait)

    def _meanwhile(self, without: Collection[int], rng: np.random.Generator) -> Plan | None:
        """A question that lets time pass, until those which could decide have been forgotten; None if there is none."""
        askable = np.setdiff1d(np.arange(len(self.problem.about)), list(without))
        if not len(askable):
            return None
        counts = np.zeros(len(self.problem.about), dtype=np.int64)
        counts[rng.choice(askable)] = 1
        plan: Plan = cast("Any", self.policy).stage_of(self._state, counts)
        return plan

    def _evaluate(self) -> None:
        """Tell the policy of answers filed since, and evaluate the stages that are answered now.

        A stage is evaluated only where all before it are answered too; until then each of its answers can be undone.
        After the verdict nothing changes: its certificate shows exactly the answers that it used.
        """
        if self._verdict is not None:
            return
        for number in sorted(self._record.changed):
            stage = self._record.stages[number]
            tally = stage.plan.tally(self.problem, stage.wins, stage.pulls)
            self._state = updated(self.policy, self._state, number, tally, stage.partial, stage.orders)
            self._record.changed.discard(number)
        for number in range(self._evaluated, self.answered_stages):
            stage = self._record.stages[number]
            if stage.filed < stage.plan.total:  # the policy still waits for these, and must be told not to
                self._state = self.policy.close(self._state, number)
            self._evaluated = number + 1
        self._record.settle(self._evaluated)

    def _log_evaluation(self) -> None:
        """Log that stages were evaluated since the last such event: then a resumed session refuses the same undos."""
        if self._evaluated > self._logged_evaluations:
            # "look" is this evaluation in the log's format: it shows something, so no answer before it can be undone.
            self._do({"event": "look", "stages": self._evaluated})

    def _leave_unanswered(self, event: Event) -> None:
        known = self._record.question(event["id"])
        if known.id in self._record.answers:
            raise InvalidInput(f"Question {known.id} has the answer {self._record.answers[known.id]}; undo it first.")
        if known.id not in self._record.without_answer:
            self._do(event)

    def _do(self, event: Event) -> None:
        """Write the event, then apply it: what is acknowledged is stored."""
        self._write(event)
        self._apply(event)

    def _write(self, event: Event) -> None:
        if self._journal is not None:
            self._journal.append(event)
        self.log.append(event)

    def _apply(self, event: Event) -> None:
        kind = event.get("event")
        handler = getattr(self, f"_on_{kind}", None) or getattr(self._record, f"on_{kind}", None)
        if handler is None:
            raise InvalidInput(f"The log holds an event {kind!r}, which this version of surepick does not know.")
        handler(event)

    def _on_stage(self, event: Event) -> None:
        self._count_evaluation()
        self.chain.append(event, self._record.stages, self._evaluated)
        plan = Plan.from_json(event)
        self._state = self.policy.apply(self._state, plan)
        self._record.add_stage(plan)

    def _on_look(self, event: Event) -> None:
        self._count_evaluation()

    def _on_verdict(self, event: Event) -> None:
        self._count_evaluation()
        self._verdict = Verdict.from_json(event)

    def _count_evaluation(self) -> None:
        """An event says that everything answered before it was evaluated then; a replay evaluates at the same place."""
        self._evaluate()
        self._logged_evaluations = self._evaluated


def described(policy: Policy[Any]) -> dict[str, Any]:
    """A policy as the log has it: name and options, or only the name of one without `to_json`."""
    describe = getattr(policy, "to_json", None)
    fields: dict[str, Any] = {"name": policy.name} if describe is None else describe()
    return fields


def _about_waiting(count: int, outstanding: list[Question]) -> str:
    """What answers are for that are in but not evaluated, as a sentence."""
    answers = "1 answer counts" if count == 1 else f"{count:,} answers count"
    if not outstanding:
        return f"{answers} for the best guess, and for what is proved once their stage is complete."
    first = min(question.id for question in outstanding)
    return (
        f"Evaluated up to question {first}, which is still open; {answers} for the best guess, and for what is proved "
        "once it is answered or skipped."
    )


def _source(judge: str | None, cost: float | None, raw: str | None, probability: float | None = None) -> Event:
    """What is known of where an answer comes from, as fields of its event."""
    given = {"judge": judge, "cost": cost, "raw": raw, "probability": probability}
    known = {name: value for name, value in given.items() if value is not None}
    for name, value in known.items():
        if not isinstance(value, str | int | float):  # a log could not hold it
            raise InvalidInput(f"{name} must be {'text' if name in ('judge', 'raw') else 'a number'}, got {value!r}.")
    return known
