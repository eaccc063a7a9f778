"""The check of the claim "winner": every item but one is excluded (docs/assumptions.md, Theorems 1 and 2).

A certificate has the stages in the order in which they were planned. In a stage, for each question:

    shown    numbers of the items shown, k ≥ 2                 planned   how often it was to be asked
    shares   expected scores by the model and by the record, fixed when the stage was planned: a list with a score for
             each item shown, or for two items the score p of the first, which stands for (p, 1 − p)
    answers  pairs of scores, one in [0, 1] for each item shown, and how often they occurred

and perhaps `leader`, an item named when the stage was planned, whose process counts the answers from this stage on,
and `spread`, how much scores were expected to vary, as a share of the variance of wins and losses.
"""

import math
from collections.abc import Mapping
from typing import Any

from surepick.certificate.claim import Checked
from surepick.certificate.reading import limits, names, number, whole
from surepick.errors import CertificateRefused

# Constants of the rule itself (docs/assumptions.md), repeated so that the checker imports nothing of the policy.
WEIGHTS = (0.6, 0.2, 0.2 / 3, 0.2 / 3, 0.2 / 3)
CONSTANT_LOSSES = (0.65, 0.85, 0.97)
LEAST_SHARE = 0.01
MOST_ETA = 0.49
MOST_BET = 0.99
ROUNDING = 1e-9  # nats by which the writer's arithmetic may differ: a billionth of delta


def check_winner(certificate: Mapping[str, Any]) -> Checked:
    """Multiply the factors of all stages again, and see that every item but the best was excluded."""
    delta, epsilon = limits(certificate)
    item_names = names(certificate["problem"], len(certificate["problem"]["aliases"]))
    count = len(item_names)
    best = whole(certificate["best"], "The best item", count)
    charged = {"ignorable": False, "charged": True}[certificate["missing"]]
    eta = min(math.tanh(epsilon / 2) / 2, MOST_ETA)  # the margin in a comparison that epsilon is worth
    outright, named, answers = Process(count), list[Process](), 0
    for place, stage in enumerate(certificate["stages"]):
        if "leader" in stage:
            leader = whole(stage["leader"], "A leader", count)
            if any(process.leader == leader for process in named) or epsilon == 0:
                raise CertificateRefused(f"Stage {place} names a leader twice, or without an epsilon.")
            named.append(Process(count, leader, eta))
        [spread] = unit_numbers([stage.get("spread", 1.0)], 1)
        questions = tuple(stage[name] for name in ("measurements", "shown", "planned", "shares", "answers"))
        if len(set(questions[0])) != len(questions[0]):
            raise CertificateRefused(f"Stage {place} lists a question twice.")
        for measurement, given, planned, shares, scored in zip(*questions, strict=True):
            shown = [whole(item, "An item shown", count) for item in given]
            known = certificate["problem"]["about"][whole(measurement, "A measurement")]
            if len(set(shown)) < max(len(shown), 2) or shown != list(known):
                raise CertificateRefused(f"Stage {place} does not show two or more items of a question of the problem.")
            predicted = [expected(one, len(shown)) for one in shares]
            counts = [(unit_numbers(scores, len(shown)), whole(times, "A count")) for scores, times in scored]
            given_answers = sum(times for _, times in counts)
            missing, answers = whole(planned, "planned") - given_answers, answers + given_answers
            if missing < 0:
                raise CertificateRefused(f"Stage {place} counts more answers than questions.")
            # A score of 1 is the worst for every process: so are missing answers charged that may depend on the answer.
            counts += [([1.0] * len(shown), missing)] if charged else []
            for process in (outright, *named):
                process.count(shown, predicted, counts, spread)
    needed = math.log(2 if epsilon else 1) - math.log(delta)
    j = next((j for j, process in enumerate(named) if process.leader == best), None)
    # The j-th leader has the share 0.6·0.4^j of half of delta. In logarithms, since 0.4^j underflows.
    against_leader = math.inf if j is None else needed - math.log(0.6) - j * math.log(0.4)
    nats, within = {}, 0.0
    for item, name in enumerate(item_names):
        nats[name] = outright.reached[item]
        if item == best or nats[name] >= needed - ROUNDING:
            continue
        if j is None or not named[j].reached[item] >= against_leader - ROUNDING:
            raise CertificateRefused(f"{name!r} is not excluded: {nats[name]:.3f} nats proved, {needed:.3f} needed.")
        nats[name], within = named[j].reached[item], epsilon
    if nats.pop(item_names[best]) >= needed + ROUNDING:
        raise CertificateRefused(f"{item_names[best]!r} is excluded like all others, which refutes the assumption.")
    return Checked(item_names[best], delta, within, answers, nats, "winner")


class Process:
    """log M(z) for every item z: a mixture, with fixed weights, of one product of factors for each expert."""

    def __init__(self, items: int, leader: int | None = None, eta: float = 0.0) -> None:
        self.leader, self.eta = leader, eta
        self.logs = [[math.log(weight) for weight in WEIGHTS] for _ in range(items)]
        self.reached = [0.0] * items
        """The largest log M(z) so far: an item that was excluded once stays excluded."""

    def count(
        self, shown: list[int], shares: list[list[float]], answers: list[tuple[list[float], int]], spread: float
    ) -> None:
        """Multiply by 1 + b·(f − score) for each answer; the bet is b = (f − w)/(f(1 − f) − (1 − spread)w(1 − w))."""
        for place, item in enumerate(shown):
            # Theorem 2 is about comparisons: there alone the other item's fair share is larger.
            margin = self.eta if len(shown) == 2 and self.leader in shown and item != self.leader else 0.0
            fair = 1 / len(shown) + margin
            model, record = (one[place] for one in shares)
            constant = [2 * fair * (1 - loss) if model < fair else fair for loss in CONSTANT_LOSSES]
            for expert, share in enumerate([model, record, *constant]):
                w = min(max(share, LEAST_SHARE), fair)
                bet = (fair - w) / max(fair * (1 - fair) - (1 - spread) * w * (1 - w), 1e-9)
                bet = min(bet, MOST_BET / (1 - fair))
                if not 0 <= bet < 1 / (1 - fair):  # a factor may be negative, or its mean above 1 for the winner
                    raise CertificateRefused(f"A bet of {bet:g} at the fair share {fair:g} is out of range.")
                self.logs[item][expert] += sum(
                    times * math.log1p(bet * (fair - scores[place])) for scores, times in answers
                )
            most = max(self.logs[item])
            mixture = most + math.log(sum(math.exp(log - most) for log in self.logs[item]))
            self.reached[item] = max(self.reached[item], mixture)


def expected(value: Any, items: int) -> list[float]:
    """The expected scores of the items shown; for two items the first one's may stand for both."""
    if items == 2 and not isinstance(value, list | tuple):
        [p] = unit_numbers([value], 1)
        return [p, 1 - p]
    return unit_numbers(value, items)


def unit_numbers(values: Any, length: int) -> list[float]:
    """Scores or shares, one for each item shown."""
    found = [number(value, "A score") for value in values]
    if len(found) != length or not all(0 <= value <= 1 for value in found):
        raise CertificateRefused("Scores and shares must be numbers from 0 to 1, one for each item shown.")
    return found
