"""The check of the claim "winner": every item but one is excluded (docs/assumptions.md, Theorems 1 and 2).

A certificate has the stages in the order in which they were planned. In a stage, for each question:

    shown    numbers of the items shown, k ≥ 2                 planned   how often it was to be asked
    shares   expected scores by the model and by the record, fixed when the stage was planned: a list with a score for
             each item shown, or for two items the score p of the first, which stands for (p, 1 − p)
    answers  pairs of scores, one in [0, 1] for each item shown, and how often they occurred
    orders   instead of answers, for a pick or a ranking: places among the items shown, the best first, and how often
             they occurred. Each place is a pick from what is left, of which each item is predicted its part of `shares`

Rankings of systems, which show an input, count by who is placed above whom. In place of `shares` they have `stakes`,
for each process, the outright one and those of the leaders named so far, and for each item shown the place among them
that it bets against, and the bet.

There may also be `leader`, an item named when the stage was planned, whose process counts the answers from this stage
on, `spread`, how much scores were expected to vary, as a share of the variance of wins and losses, and `stakes`, the
bets of both items if the plan of a single question fixed them.

In a problem with `once` answers are drawn without replacement: a question has two for each input, one in the reverse
order.
"""

import math
from collections.abc import Mapping
from itertools import chain, combinations
from typing import Any

from surepick.certificate.claim import Checked
from surepick.certificate.reading import limits, names, number, whole
from surepick.errors import CertificateRefused

# Constants of the rule itself (docs/assumptions.md), repeated so that the checker imports nothing of the policy.
WEIGHTS = (0.6, 0.2, 0.2 / 3, 0.2 / 3, 0.2 / 3)
CONSTANT_LOSSES = (0.65, 0.85, 0.97)
LEAST_SHARE = 0.01
MOST_FAIR = 0.999
REFUTED = 100.0
MOST_ETA = 0.49
MOST_BET = 0.99
MOST_BET_ON_PICK = 0.98
ROUNDING = 1e-9  # nats by which the writer's arithmetic may differ: a billionth of delta


def check_winner(certificate: Mapping[str, Any]) -> Checked:
    """Multiply the factors of all stages again, and see that every item but the best was excluded."""
    delta, epsilon = limits(certificate)
    item_names = names(certificate["problem"], len(certificate["problem"]["aliases"]))
    count = len(item_names)
    best = whole(certificate["best"], "The best item", count)
    charged = {"ignorable": False, "charged": True}[certificate["missing"]]
    eta = min(math.tanh(epsilon / 2) / 2, MOST_ETA)  # the margin in a comparison that epsilon is worth
    cells = 2 * len(certificate["problem"]["inputs"]) if certificate["problem"].get("once") else 0
    asked = certificate["problem"]
    by_places = bool(asked.get("inputs")) and asked.get("top", 1) > 1  # rankings of systems
    outright, named, answers = Process(count), list[Process](), 0
    drawn: dict[int, AnswersDrawn] = {}
    ranked: dict[int, RankingsDrawn] = {}
    for place, stage in enumerate(certificate["stages"]):
        if "leader" in stage:
            leader = whole(stage["leader"], "A leader", count)
            if any(process.leader == leader for process in named) or epsilon == 0:
                raise CertificateRefused(f"Stage {place} names a leader twice, or without an epsilon.")
            named.append(Process(count, leader, eta))
        [spread] = unit_numbers([stage.get("spread", 1.0)], 1)
        sets, bets = "orders" in stage, stage.get("stakes")
        if by_places and not sets:
            raise CertificateRefused(f"Stage {place} has answers to comparisons, and this problem asks for rankings.")
        told, fixed = "orders" if sets else "answers", "stakes" if by_places else "shares"
        questions = tuple(stage[name] for name in ("measurements", "shown", "planned", fixed, told))
        if len(set(questions[0])) != len(questions[0]):
            raise CertificateRefused(f"Stage {place} lists a question twice.")
        single = not sets and [whole(one, "planned") for one in stage["planned"]] == [1]
        if bets is not None and not by_places and not (single and len(bets) == 2):
            raise CertificateRefused(f"Stage {place} fixes bets for anything but one comparison, asked once.")
        for measurement, given, planned, shares, scored in zip(*questions, strict=True):
            shown = [whole(item, "An item shown", count) for item in given]
            number = whole(measurement, "A measurement")
            known = (
                is_set(certificate["problem"], number, shown)
                if sets
                else (shown == list(certificate["problem"]["about"][number]))
            )
            if len(set(shown)) < max(len(shown), 2) or not known:
                raise CertificateRefused(f"Stage {place} does not show two or more items of a question of the problem.")
            predicted = [] if by_places else [expected(one, len(shown)) for one in shares]
            if sets:
                if predicted and min(map(min, predicted)) <= 0:
                    raise CertificateRefused(f"Stage {place} predicts a share of zero, of which nothing can be left.")
                orders = [(order_of(places, len(shown)), whole(times, "A count")) for places, times in scored]
                missing = whole(planned, "planned") - sum(times for _, times in orders)
                answers += sum(times for _, times in orders)
                if missing < 0:
                    raise CertificateRefused(f"Stage {place} counts more answers than questions.")
                top = whole(certificate["problem"]["top"], "top")
                processes, lost = (outright, *named), missing if charged else None
                if by_places:
                    seen = ranked.setdefault(number, RankingsDrawn(cells, len(shown))) if cells else None
                    for process, stakes in zip(processes, shares, strict=True):
                        process.count_rankings(shown, stakes, orders, lost, top, seen)
                    if seen is not None:
                        seen.draw(planned, orders, missing, charged, top)
                else:
                    for process in processes:
                        process.count_orders(shown, predicted, orders, lost, top)
                continue
            counts = [(unit_numbers(scores, len(shown)), whole(times, "A count")) for scores, times in scored]
            given_answers = sum(times for _, times in counts)
            missing, answers = whole(planned, "planned") - given_answers, answers + given_answers
            if missing < 0:
                raise CertificateRefused(f"Stage {place} counts more answers than questions.")
            # A score of 1 is the worst for every process: so are missing answers charged that may depend on the answer.
            counts += [([1.0] * len(shown), missing)] if charged else []
            before = drawn.setdefault(measurement, AnswersDrawn(cells, len(shown))) if cells else None
            for process in (outright, *named):
                process.count(shown, predicted, counts, spread, before, bets if process is outright else None)
            if before is not None:
                before.draw(planned, counts, 0 if charged else missing)
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
    sets = any("orders" in stage for stage in certificate["stages"])
    return Checked(item_names[best], delta, within, answers, nats, "winner", sets=sets, places=by_places)


class AnswersDrawn:
    """What was drawn of the answers to a question, each of which is drawn at most once: t of n, and their scores."""

    def __init__(self, total: int, items: int) -> None:
        self.total, self.before, self.scores = total, 0, [0.0] * items

    def draw(self, planned: int, answers: list[tuple[list[float], int]], missing: int) -> None:
        """Count the one question of a stage; an answer that never came is counted as a win of every item."""
        if planned != 1 or self.before >= self.total:
            raise CertificateRefused("A question is asked again, although its answers are drawn once and one by one.")
        self.before += 1
        for place in range(len(self.scores)):
            self.scores[place] += missing + sum(times * scores[place] for scores, times in answers)


class RankingsDrawn:
    """The same for rankings of one set: how often each place was above each other one in t of n rankings."""

    def __init__(self, total: int, items: int) -> None:
        self.total, self.before, self.above = total, 0, [[0.0] * items for _ in range(items)]

    def draw(self, planned: int, orders: list[tuple[list[int], int]], missing: int, charged: bool, top: int) -> None:
        """Count the one ranking of a stage; where it never came, every place counts as above every other one."""
        if planned != 1 or self.before >= self.total:
            raise CertificateRefused("A ranking is asked again, although its answers are drawn once and one by one.")
        self.before += 1
        for place, row in enumerate(self.above):
            for other in range(len(row)):
                row[other] += missing + sum(
                    times * placed_above(order, place, other, unsaid_in(order, top, charged)) for order, times in orders
                )

    def fair(self, place: int, other: int, share: float) -> float:
        """How often the next ranking has a place above another one on average, if it is `share` in all of them."""
        return (self.total * share - self.above[place][other]) / max(self.total - self.before, 1)


class Process:
    """log M(z) for every item z: the sum of what each expert has, which bets by its own predictions."""

    def __init__(self, items: int, leader: int | None = None, eta: float = 0.0) -> None:
        self.leader, self.eta = leader, eta
        self.logs = [[math.log(weight) for weight in WEIGHTS] for _ in range(items)]
        self.own = [[math.log(weight) for weight in WEIGHTS] for _ in range(items)]
        """What each expert would have if it had always bet by itself."""
        self.reached = [0.0] * items
        """The largest log M(z) so far: an item that was excluded once stays excluded."""

    def count(
        self,
        shown: list[int],
        shares: list[list[float]],
        answers: list[tuple[list[float], int]],
        spread: float,
        drawn: AnswersDrawn | None,
        bets: list[float] | None,
    ) -> None:
        """Multiply by 1 + b·(f − score) for each answer; the bet is b = (f − w)/(f(1 − f) − (1 − spread)w(1 − w)).

        With `bets` all experts bet the same, and what they have is divided among them again, by what each would have.
        """
        for place, item in enumerate(shown):
            # Theorem 2 is about comparisons: there alone the other item's fair share is larger.
            margin = self.eta if len(shown) == 2 and self.leader in shown and item != self.leader else 0.0
            fair, lost = 1 / len(shown) + margin, False
            if drawn is not None and drawn.before < drawn.total:
                needed, left = drawn.total * fair - drawn.scores[place], drawn.total - drawn.before
                lost = (
                    needed - sum(times * scores[place] for scores, times in answers)
                    > left - sum(times for _, times in answers) + ROUNDING
                )  # not even by winning every answer that is left
                fair = min(max(needed / left, LEAST_SHARE), MOST_FAIR)
            model, record = (one[place] for one in shares)
            constant = [2 * fair * (1 - loss) if model < fair else fair for loss in CONSTANT_LOSSES]
            scored = [(scores[place], times) for scores, times in answers]
            if bets is not None:
                total, deserved = log_sum(self.logs[item]), log_sum(self.own[item])
                # The least share stands for all that are smaller, so nothing is bet there.
                gain = gained(number(bets[place], "A bet"), fair, scored) if fair > LEAST_SHARE else 0.0
                self.logs[item] = [total + log - deserved + gain for log in self.own[item]]
            for expert, share in enumerate([model, record, *constant]):
                w = min(max(share, LEAST_SHARE), fair)
                bet = (fair - w) / max(fair * (1 - fair) - (1 - spread) * w * (1 - w), 1e-9)
                gain = gained(min(bet, MOST_BET / (1 - fair)), fair, scored)
                self.own[item][expert] += gain
                self.logs[item][expert] += gain if bets is None else 0.0
                if lost:
                    self.logs[item][expert] = REFUTED
            self.note(item)

    def count_orders(
        self,
        shown: list[int],
        shares: list[list[float]],
        orders: list[tuple[list[int], int]],
        missing: int | None,
        top: int,
    ) -> None:
        """Multiply by the factors of each pick from what is left, and, unless missing is None, charge missing picks."""
        everything = list(range(len(shown)))
        for order, times in orders:
            for _ in range(times):
                left = list(everything)
                for picked in order:
                    for place in left:
                        self.multiply(shown[place], self.pick(shown, shares, left, place, picked))
                    left.remove(picked)
                if missing is not None and 0 < len(order) < top:
                    self.charge(shown, shares, left)
        for _ in range(missing or 0):
            self.charge(shown, shares, everything)

    def count_rankings(
        self,
        shown: list[int],
        bets: Any,
        orders: list[tuple[list[int], int]],
        missing: int | None,
        top: int,
        drawn: RankingsDrawn | None = None,
    ) -> None:
        """Multiply by 1 + c·(f − X) for each ranking, where X is 1 if the item is above the one it bets against.

        Where a ranking does not say, X is ½, or 1 where missing answers are charged. The mean is at most 1 for an item
        that is above each other one with a probability of at least f, since c ≥ 0. With `drawn` f is that of what is
        left, and an item is refuted if not even the first place in every ranking that is left would give it its share.
        """
        for place, (item, (against, bet)) in enumerate(zip(shown, bets, strict=True)):
            other = whole(against, "A place of a bet", len(shown))
            if other == place:
                raise CertificateRefused(f"Item {item} bets against itself.")
            fair, bet = self.share_against(shown[other]), number(bet, "A bet")
            if drawn is not None:
                fair = min(max(drawn.fair(place, other, fair), LEAST_SHARE), MOST_FAIR)
                # It was fixed when less was drawn; and the least share stands for all that are smaller.
                bet = min(bet, MOST_BET / (1 - fair)) if fair > LEAST_SHARE else 0.0
            scored = [(1.0, missing or 0)]
            for order, times in orders:
                unsaid = unsaid_in(order, top, missing is not None)
                scored.append((placed_above(order, place, other, unsaid), times))
            self.multiply(item, [gained(bet, fair, scored)] * len(WEIGHTS))
        if drawn is not None:
            self.refute(shown, orders, missing, top, drawn)

    def share_against(self, item: int) -> float:
        """How often the winner is placed above an item, at least."""
        return 0.5 + (self.eta if item == self.leader else 0.0)

    def refute(
        self, shown: list[int], orders: list[tuple[list[int], int]], missing: int | None, top: int, drawn: RankingsDrawn
    ) -> None:
        """Exclude items that stay below their share even if they are placed first in all that is left after these."""
        left = drawn.total - drawn.before - (missing or 0) - sum(times for _, times in orders)
        for place, item in enumerate(shown):
            for other in range(len(shown)):
                above = drawn.above[place][other] + (missing or 0)
                for order, times in orders:
                    above += times * placed_above(order, place, other, unsaid_in(order, top, missing is not None))
                if other != place and drawn.total * self.share_against(shown[other]) - above > left + ROUNDING:
                    self.logs[item] = [REFUTED] * len(WEIGHTS)
            self.note(item)

    def pick(
        self, shown: list[int], shares: list[list[float]], left: list[int], place: int, picked: int
    ) -> list[float]:
        """Log factors of the item at a place in a pick from what is left, one for each expert.

        If the item is at least as likely to be picked as any other, bets c on others with a sum of at most 1 give the
        factor 1 + c(u) if u is picked and 1 − Σ c if it is picked itself, with a mean of at most 1.
        """
        leader = next((other for other in left if shown[other] == self.leader), None)
        if leader is not None and leader != place:
            return self.pick_against_leader(shares, place, leader, picked)
        factors = []
        for expert, one in enumerate((*shares, *(shares[0] for _ in CONSTANT_LOSSES))):
            others = sorted((other for other in left if other != place), key=lambda other: (-one[other], other))
            if expert < len(shares):
                # The largest mean of shares over this item and some of the others.
                mean, several = max(
                    (sum(one[other] for other in (place, *others[:count])) / (count + 1), -count)
                    for count in range(len(others) + 1)
                )
                bets = {other: max(one[other] / mean - 1, 0.0) for other in others[:-several]}
                scale = MOST_BET_ON_PICK / max(sum(bets.values()), MOST_BET_ON_PICK)
                bets = {other: scale * bet for other, bet in bets.items()}
            elif one[others[0]] > one[place]:
                bets = {others[0]: 2 * CONSTANT_LOSSES[expert - len(shares)] - 1}
            else:
                bets = {}
            # Whatever they are: the mean is at most 1 for an item that is picked at least as often as any other.
            if any(bet < 0 for bet in bets.values()) or sum(bets.values()) >= 1:
                raise CertificateRefused(f"Bets of {sum(bets.values()):g} on a pick are out of range.")
            factors.append(1 - sum(bets.values()) if picked == place else 1 + bets.get(picked, 0.0))
        return [math.log(factor) for factor in factors]

    def pick_against_leader(self, shares: list[list[float]], place: int, leader: int, picked: int) -> list[float]:
        """The same for an item that is left with the leader: a bet on the two of them, at the share ½ + eta."""
        if picked not in (place, leader):
            return [0.0] * len(WEIGHTS)
        fair, logs = 0.5 + self.eta, []
        model, record = (one[place] / (one[place] + one[leader]) for one in shares)
        constant = [2 * fair * (1 - loss) if model < fair else fair for loss in CONSTANT_LOSSES]
        for share in (model, record, *constant):
            w = min(max(share, LEAST_SHARE), fair)
            bet = min((fair - w) / (fair * (1 - fair)), MOST_BET / (1 - fair))
            logs.append(math.log1p(bet * (fair - (picked == place))))
        return logs

    def charge(self, shown: list[int], shares: list[list[float]], left: list[int]) -> None:
        """Multiply by the least factors of any way to go on: all sets in which an item may be picked are tried."""
        for place in left:
            others = [other for other in left if other != place]
            least = [0.0] * len(WEIGHTS)
            for kept in chain.from_iterable(combinations(others, size) for size in range(1, len(others) + 1)):
                factors = self.pick(shown, shares, [place, *kept], place, place)
                least = [min(pair) for pair in zip(least, factors, strict=True)]
            self.multiply(shown[place], least)

    def multiply(self, item: int, factors: list[float]) -> None:
        """Multiply what the experts of an item have by these factors, given as logarithms."""
        for expert, log in enumerate(factors):
            self.logs[item][expert] += log
            self.own[item][expert] += log
        self.note(item)

    def note(self, item: int) -> None:
        """Keep the largest log M(z) of an item."""
        self.reached[item] = max(self.reached[item], log_sum(self.logs[item]))


def gained(bet: float, fair: float, scored: list[tuple[float, int]]) -> float:
    """The log of the product of 1 + b·(f − score) over these answers."""
    if not 0 <= bet < 1 / (1 - fair):  # a factor may be negative, or its mean above 1 for the winner
        raise CertificateRefused(f"A bet of {bet:g} at the fair share {fair:g} is out of range.")
    return sum(times * math.log1p(bet * (fair - score)) for score, times in scored)


def log_sum(logs: list[float]) -> float:
    """The log of a sum of numbers that are given by their logarithms."""
    most = max(logs)
    return most + math.log(sum(math.exp(log - most) for log in logs))


def is_set(problem: Mapping[str, Any], measurement: int, shown: list[int]) -> bool:
    """Whether this is the number of a question that shows this set of items: after all pairs, by Σ C(item, place)."""
    items = len(problem["aliases"])
    pairs = math.comb(items, 2) if problem.get("every_pair") else len(problem["about"])
    number = pairs + sum(math.comb(item, place) for place, item in enumerate(shown, 1))
    return len(shown) == problem["show"] and shown == sorted(shown) and measurement == number


def unsaid_in(order: list[int], top: int, charged: bool) -> float:
    """What stands for comparisons that an order leaves out: 1 if some were asked for and missing ones are charged."""
    return 1.0 if charged and 0 < len(order) < top else 0.5


def placed_above(order: list[int], place: int, other: int, unsaid: float) -> float:
    """Whether an order puts one place above another: 1, 0, or `unsaid` if it has neither."""
    if place not in order and other not in order:
        return unsaid
    return float(place in order and (other not in order or order.index(place) < order.index(other)))


def order_of(value: Any, items: int) -> list[int]:
    """Places among the items shown, each at most once, without the last, which follows."""
    order = [whole(place, "A place of an order", items) for place in value]
    if len(set(order)) < len(order) or len(order) >= items:
        raise CertificateRefused("An order names a place twice, or the last of all places.")
    return order


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
