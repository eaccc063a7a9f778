"""A contextual policy in use: decisions with ids, rewards whenever they come, a log that can be replayed exactly.

The log is a file of JSON lines, for replay and for off-policy evaluation. First line: {"event": "start", "format",
"policy", "configuration", "dimension", "seed", "order"}; then {"event": "choose", "decision", "context", "arms",
"index", "propensity", "bucket"}, and "features" once arms are named, {"event": "learn", "decision", "reward"} and
{"event": "forget", "decision"}. Numbers survive to the last bit.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.contextual.policy import AnyPolicy, Choice, clean_arms, clean_reward
from surepick.errors import InvalidInput
from surepick.registry import CLASSES
from surepick.session.journal import Journal, read_journal

Order = Literal["arrival", "decision"]

FORMAT = 1
"""Version of the format of logs; files of another one are refused."""


@dataclass(frozen=True)
class Decision:
    """What was decided; the reward is told to `id`."""

    id: int
    index: int
    """Row of the chosen arm."""
    propensity: float
    """Probability with which the policy chose it."""
    context_id: Hashable


@dataclass(frozen=True)
class LoggedDecision:
    """One decision as off-policy evaluation wants it."""

    id: int
    context_id: Any
    arms: Floats
    index: int
    propensity: float
    reward: float | None
    """None as long as it is not told."""


class ContextualSession:
    """Mutable, unlike policies and their states: `choose` gives out decisions, `learn` takes their rewards.

    Rewards may come late, in any order, twice or never. order="arrival" learns each as it comes; the guarantees then
    need that neither the delay nor the loss of a reward depends on its value. Where it does (clicks are reported at
    once, their absence only after an hour), order="decision" learns in the order of the decisions, each as soon as all
    earlier ones are rewarded or forgotten.

    The randomness of decision n is default_rng([seed, n]), so a session is a function of its log: `resume` replays it.

    >>> from surepick.contextual import LikelihoodRatioUcb
    >>> session = ContextualSession(LikelihoodRatioUcb(), dimension=2, seed=7)
    >>> decision = session.choose([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], context_id="page 1")
    >>> session.learn(decision.id, 1)
    True
    >>> session.learn(decision.id, 1)  # told twice: nothing changes
    False
    """

    def __init__(
        self,
        policy: AnyPolicy,
        *,
        dimension: int,
        seed: int = 0,
        order: Order = "arrival",
        path: str | Path | None = None,
    ) -> None:
        self.policy = policy
        self.dimension = validate.whole("dimension", dimension)
        self.seed = validate.whole("seed", seed, least=0)
        validate.one_of("order", order, ("arrival", "decision"))
        self.order: Order = order
        self.features: tuple[str, ...] | None = None
        self.state: Any = policy.start(self.dimension)
        self._waiting: dict[int, tuple[Floats, Choice]] = {}
        self._rewards: dict[int, float | None] = {}
        self._decided = 0
        self._learnt = 0
        self._next = 0
        if path is not None and Path(path).exists():
            raise InvalidInput(f"{path} exists; ContextualSession.resume goes on with it, another path starts a log.")
        self._journal: Journal | None = None
        self._write: Callable[[dict[str, Any]], None] = _nowhere
        if path is not None:
            self._write_to_file(Path(path))
            self._write(header(policy, self.dimension, self.seed, self.order))

    @property
    def decisions(self) -> int:
        """How many decisions were given out."""
        return self._decided

    @property
    def waiting(self) -> tuple[int, ...]:
        """Decisions whose reward is neither told nor forgotten."""
        return tuple(number for number in self._waiting if number not in self._rewards)

    @property
    def learnt(self) -> int:
        """How many rewards the policy has learnt."""
        return self._learnt

    @property
    def rewards(self) -> Mapping[int, float | None]:
        """What was told of which decision; None where it was given up."""
        return MappingProxyType(self._rewards)

    def choose(self, arms: Any, context_id: Hashable = None) -> Decision:
        """Choose among the arms: rows of a matrix, or of a data frame whose columns are the features."""
        offered, features = self._matrix(arms)
        number = self._decided
        choice = self.policy.choose(self.state, offered, self._rng(number))
        self._write(_chosen(number, context_id, offered, choice, features if self.features is None else None))
        if self.features is None:
            self.features = features
        self._remember(number, offered, choice)
        return Decision(number, choice.index, choice.propensity, context_id)

    def learn(self, decision_id: int, reward: float) -> bool:
        """Tell the reward (0 or 1) of a decision; False if it was told before and changes nothing."""
        number = self._known(decision_id)
        answer = clean_reward(reward)
        if number in self._rewards:
            before = self._rewards[number]
            if before == answer:
                return False
            told = "was forgotten" if before is None else f"has the reward {before:g}"
            raise InvalidInput(f"Decision {number} {told} already, got {answer:g}; a reward cannot be changed.")
        self._resolve(number, answer)
        return True

    def forget(self, decision_id: int) -> bool:
        """Stop waiting for a reward that will never come; False if its reward was told or forgotten already.

        The guarantees need that what is forgotten does not depend on the reward.
        """
        number = self._known(decision_id)
        if number in self._rewards:
            return False
        self._resolve(number, None)
        return True

    def close(self) -> None:
        """Close the log file."""
        if self._journal is not None:
            self._journal.close()

    def __enter__(self) -> "ContextualSession":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @classmethod
    def resume(cls, path: str | Path, *, check: bool = True) -> "ContextualSession":
        """Rebuild a session from its log and go on writing to it.

        With `check`, every choice is made again and compared with the log; a difference means that the policy or the
        log was changed. A last line cut off by a crash is dropped.
        """
        session = cls.replay(path, check=check)
        session._write_to_file(Path(path))
        return session

    @classmethod
    def replay(cls, path: str | Path, *, check: bool = True) -> "ContextualSession":
        """Rebuild a session from its log, without touching the file."""
        return cls.fold(*_read(Path(path)), check=check)

    @classmethod
    def fold(
        cls, start: dict[str, Any], events: Iterable[dict[str, Any]], *, check: bool = True
    ) -> "ContextualSession":
        """Rebuild a session from the first line of a log and all further ones."""
        session = cls(policy_of(start), dimension=start["dimension"], seed=start["seed"], order=start["order"])
        session.follow(events, check=check)
        return session

    def follow(self, events: Iterable[dict[str, Any]], *, check: bool = True) -> None:
        """Do what these lines say: the log as somebody else went on with it. They are not written again."""
        for event in events:
            try:
                self._apply(event, check)
            except (KeyError, TypeError, AttributeError) as error:
                raise InvalidInput(
                    f"The log has a line that does not follow from those before it ({type(error).__name__} {error}): "
                    f"{str(event)[:60]}; restore the log."
                ) from None

    def write_to(self, write: Callable[[dict[str, Any]], None]) -> None:
        """Hand every further line of the log to this function, before the decision or reward takes effect."""
        self._write = write

    def _write_to_file(self, path: Path) -> None:
        self._journal = Journal(path, default=str)
        self.write_to(self._journal.append)

    def _apply(self, event: dict[str, Any], check: bool) -> None:
        number = int(event["decision"])
        if event["event"] == "choose":
            offered = np.array(event["arms"], dtype=np.float64).reshape(-1, self.dimension)
            choice = Choice(int(event["index"]), float(event["propensity"]), int(event["bucket"]))
            if check:
                again = self.policy.choose(self.state, offered, self._rng(number))
                if again != choice or number != self._decided:
                    raise InvalidInput(
                        f"Replay of decision {number} gives {again}, the log has {choice}; "
                        "the log was changed, or written by another version (check=False skips this check)."
                    )
            if event.get("features") is not None:
                self.features = tuple(event["features"])
            self._remember(number, offered, choice)
        else:
            self._resolve(number, event["reward"] if event["event"] == "learn" else None, write=False)

    def _remember(self, number: int, offered: Floats, choice: Choice) -> None:
        self._waiting[number] = (offered, choice)
        self._decided = number + 1

    def _resolve(self, number: int, reward: float | None, *, write: bool = True) -> None:
        """Note the reward of one decision and let the policy learn what is due; the state changes last of all."""
        due = [number]
        position = self._next
        if self.order == "decision":
            due = []
            while position == number or position in self._rewards:
                due.append(position)
                position += 1
        state, learnt = self.state, self._learnt
        for decision in due:
            told = reward if decision == number else self._rewards[decision]
            if told is not None:
                offered, choice = self._waiting[decision]
                state, learnt = self.policy.learn(state, offered, choice, told), learnt + 1
        if write:
            self._write(_resolved(number, reward))
        self.state, self._learnt, self._next = state, learnt, position
        self._rewards[number] = reward
        for decision in due:
            del self._waiting[decision]

    def _known(self, decision_id: int) -> int:
        if isinstance(decision_id, bool) or not isinstance(decision_id, int | np.integer):
            raise InvalidInput(f"decision_id must be a whole number as given by choose, got {decision_id!r}.")
        if not 0 <= decision_id < self._decided:
            given = f"ids 0 to {self._decided - 1} were given out" if self._decided else "none was given out yet"
            raise InvalidInput(f"There is no decision {decision_id}; {given}.")
        return int(decision_id)

    def _matrix(self, arms: Any) -> tuple[Floats, tuple[str, ...] | None]:
        """The arms as a matrix of their own, columns in the order of the first data frame."""
        names = getattr(arms, "columns", None)
        if names is None or not hasattr(arms, "to_numpy"):
            return np.array(clean_arms(arms, self.dimension)), None
        features = tuple(str(name) for name in names)
        wanted = self.features or features
        missing = [name for name in wanted if name not in features]
        if missing or len(features) != len(wanted):
            raise InvalidInput(
                f"The data frame must have the columns {', '.join(wanted)}, got {', '.join(features) or 'none'}."
            )
        ordered = arms[[names[features.index(name)] for name in wanted]]
        return np.array(clean_arms(ordered.to_numpy(), self.dimension)), wanted

    def _rng(self, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, number])


def header(policy: AnyPolicy, dimension: int, seed: int, order: str) -> dict[str, Any]:
    """The first line. A policy that is not of this package is logged by name and cannot be resumed from the log."""
    known = dataclasses.is_dataclass(policy) and not isinstance(policy, type)
    return {
        "event": "start",
        "format": FORMAT,
        "policy": type(policy).__name__,
        "configuration": dataclasses.asdict(cast("Any", policy)) if known else {},
        "dimension": dimension,
        "seed": seed,
        "order": order,
    }


def _chosen(
    number: int, context_id: Hashable, arms: Floats, choice: Choice, features: tuple[str, ...] | None
) -> dict[str, Any]:
    """The line of a decision."""
    line = {
        "event": "choose",
        "decision": number,
        "context": context_id,
        "arms": arms.tolist(),
        "index": choice.index,
        "propensity": choice.propensity,
        "bucket": choice.bucket,
    }
    return line if features is None else {**line, "features": list(features)}


def _resolved(number: int, reward: float | None) -> dict[str, Any]:
    """The line of a reward, or of its being given up."""
    return (
        {"event": "forget", "decision": number}
        if reward is None
        else {"event": "learn", "decision": number, "reward": reward}
    )


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The first line and all events after it; a last line without its end is left out."""
    if not path.exists():
        raise InvalidInput(f"There is no log {path}; ContextualSession(policy, path=...) starts one.")
    try:
        events = read_journal(path)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error} Restore the log.") from None
    if not events or events[0].get("event") != "start" or events[0].get("format") != FORMAT:
        raise InvalidInput(f"{path} is not the log of a contextual session (format {FORMAT}).")
    return events[0], events[1:]


def policy_of(start: dict[str, Any]) -> AnyPolicy:
    """The policy that the first line of a log describes."""
    name = start["policy"]
    if name not in CLASSES:
        raise InvalidInput(f"The log was written by the policy {name!r}, which is not part of surepick.")
    policy: AnyPolicy = CLASSES[name](**start["configuration"])
    return policy


def read_decisions(path: str | Path) -> list[LoggedDecision]:
    """All decisions of a log with their rewards, for off-policy evaluation."""
    _, events = _read(Path(path))
    rewards = {event["decision"]: event["reward"] for event in events if event["event"] == "learn"}
    return [
        LoggedDecision(
            event["decision"],
            event["context"],
            np.array(event["arms"]),
            event["index"],
            event["propensity"],
            rewards.get(event["decision"]),
        )
        for event in events
        if event["event"] == "choose"
    ]


def _nowhere(line: dict[str, Any]) -> None:
    """A session without a log."""
