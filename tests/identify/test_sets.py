"""Questions about sets: their numbers, exact means of the evidence of picks and rankings, and whole searches."""

import json
from itertools import combinations, permutations
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from certificates import signed
from surepick import (
    CertificateRefused,
    InvalidInput,
    NotIdentifiable,
    Problem,
    Session,
    Winner,
    find_best,
    verify_certificate,
)
from surepick.certificate.winner import Process
from surepick.evidence.betting import LOG_SHARES, WinnerEvidence
from surepick.glm.item_scores import ItemScores
from surepick.identify import Plan, RageGlm, Status
from surepick.identify.sets import checked_order, decided_pairs, picks_of, set_number, set_of
from surepick.judges import World

TASTE = {"plum": 2.5, "teal": 1.0, "blue": 0.5, "red": 0.0, "grey": -1.0, "pink": -1.5}


def test_sets_are_numbered_without_gaps_and_found_again() -> None:
    for show in (3, 4):
        sets = list(combinations(range(9), show))
        assert sorted(map(set_number, sets)) == list(range(comb(9, show)))
        assert all(set_of(set_number(items), show) == items for items in sets)
    assert set_of(comb(1000, 4) - 1, 4) == (996, 997, 998, 999)


def test_a_problem_of_sets_says_what_its_questions_show() -> None:
    problem = Problem.from_sets(list(TASTE), show=4, answer="pick")
    number = problem.number_of([5, 0, 3, 1])
    assert number >= len(problem.about) == 15  # pairs keep their numbers
    assert (problem.shown(number), problem.kind(number), problem.kind(0)) == ((0, 1, 3, 5), "pick", "compare")
    again = Problem.from_json(json.loads(json.dumps(problem.to_json())))
    assert (again.show, again.top, again.shown(number)) == (4, 1, (0, 1, 3, 5))
    assert "show" not in Problem.from_sets(list(TASTE), show=2).to_json()
    with pytest.raises(InvalidInput, match="at most the number of different items, 6; got 7"):
        Problem.from_sets(list(TASTE), show=7)
    with pytest.raises(InvalidInput, match="too many sets of 10"):
        Problem.from_sets([str(item) for item in range(900)], show=10)
    with pytest.raises(InvalidInput, match="A pick has one place; got top=2"):
        Problem.from_sets(list(TASTE), show=4, answer="pick", top=2)
    with pytest.raises(InvalidInput, match="cannot ask for 9 places"):
        Problem.from_json(problem.to_json() | {"top": 9})
    with pytest.raises(InvalidInput, match="by the policy winner, not by rage-glm"):
        Session(problem, RageGlm())
    assert not issubclass(NotIdentifiable, InvalidInput) or problem.obstacle is None


def order_chance(order: tuple[int, ...], shown: tuple[int, ...], chance: Any) -> float:
    """The probability of an order if `chance(items)` has the probability of each item in a pick from these."""
    result = 1.0
    for left, picked in picks_of(order, len(shown)):
        result *= chance([shown[place] for place in left])[left.index(picked)]
    return result


def border(weights: list[float]) -> Any:
    """Item 0 is picked exactly as often as the likeliest other item, the others by weights."""

    def chance(items: list[int]) -> list[float]:
        most = max(weights[item] for item in items if item)
        known = [weights[item] if item else most for item in items]
        return [weight / sum(known) for weight in known]

    return chance


def mean_of_process(policy: Winner, chance: Any, questions: int, lost: Any = None, item: int = 0) -> float:
    """E of the mixture process of an item over all answers to rankings of three of four items."""
    problem = Problem.from_sets(np.eye(4), show=3)
    leaves = []

    def walk(state: Any, asked: int, weight: float) -> None:
        plan = policy.plan(state, np.random.default_rng(asked)) if asked < questions else None
        if not isinstance(plan, Plan):
            evidence = (
                state.evaluated.named[0] if policy.epsilon and state.evaluated.named else state.evaluated.evidence
            )
            leaves.append((weight, logsumexp(evidence.log_wealth[item] + LOG_SHARES)))
            return
        state = policy.apply(state, plan)
        shown = problem.shown(int(plan.measurements[0]))
        nothing = plan.tally(problem, [0], [0])
        for order in permutations(range(3), 2):
            here = weight * order_chance(order, shown, chance)
            missing = 0.0 if lost is None else lost(shown, order)
            told = policy.update(state, plan.stage, nothing, (), [[order]])
            walk(told, asked + 1, here * (1 - missing))
            if missing:
                walk(policy.close(state, plan.stage), asked + 1, here * missing)

    walk(policy.start(problem), 0, 1.0)
    weights, logs = np.array(leaves).T
    assert weights.sum() == pytest.approx(1.0)
    return float(weights @ np.exp(logs))


WORLDS = [border([0, 1.0, 1.0, 1.0]), border([0, 5.0, 1.0, 0.1]), border([0, 0.01, 1.0, 30.0])]


@pytest.mark.parametrize("world", range(len(WORLDS)))
def test_at_the_border_of_the_assumption_the_mean_of_rankings_is_at_most_one(world: int) -> None:
    mean = mean_of_process(Winner(), WORLDS[world], 3)
    assert mean <= 1 + 1e-9
    if world == 0:  # all are equal, so every bet is fair
        assert mean == pytest.approx(1.0, abs=1e-9)


def test_a_loser_of_rankings_is_found_out() -> None:
    def loser(items: list[int]) -> list[float]:
        weights = [0.05 if item == 0 else 1.0 for item in items]
        return [weight / sum(weights) for weight in weights]

    assert mean_of_process(Winner(), loser, 3) > 1.2


def test_a_fair_share_alone_is_not_what_is_assumed() -> None:
    """Item 0 has exactly its share of every pick, but another item is picked more often: (W) for sets is more."""

    def shared(items: list[int]) -> list[float]:
        weights = {item: 5.0 if item == 1 else 1.0 for item in items if item}
        left = (1 - 1 / len(items)) if 0 in items else 1.0
        total = sum(weights.values())
        return [left * weights[item] / total if item else 1 / len(items) for item in items]

    assert mean_of_process(Winner(), shared, 3) > 1.001


def test_independent_noise_of_one_log_concave_density_satisfies_the_assumption() -> None:
    """Thurstone's model, by drawing: the best item is not behind in later picks of a ranking."""
    rng = np.random.default_rng(5)
    orders = np.argsort(-(np.array([0.1, 0.0, -0.2, -0.5]) + rng.normal(size=(400_000, 4))), axis=1)
    for first in (2, 3):
        later = orders[orders[:, 0] == first]
        for other in {1, 2, 3} - {first}:
            ahead, behind = (np.mean(later[:, 1] == item) for item in (0, other))
            assert ahead > behind


def test_charged_rankings_may_be_lost_for_what_they_are() -> None:
    def lost(shown: tuple[int, ...], order: tuple[int, ...]) -> float:
        return 0.8 if 0 in shown and shown[order[0]] == 0 else 0.0

    for world in WORLDS:
        assert mean_of_process(Winner(missing="charged"), world, 3, lost) <= 1 + 1e-9
    # The control: to ignore rankings that item 0 wins makes its process grow.
    assert mean_of_process(Winner(), WORLDS[1], 3, lost) > 1.02


class Hindsight(Winner):
    """The broken rule: predictions are made after the answer."""

    def update(self, state, stage, tally, partial=(), orders=()):  # type: ignore[no-untyped-def]
        shares = [0.1, 0.1, 0.1]
        shares[orders[0][0][0]] = 0.8
        state.stages[stage].plan.memo["shares"] = [[shares, shares]]
        return super().update(state, stage, tally, partial, orders)


def test_predictions_after_the_ranking_are_caught() -> None:
    assert mean_of_process(Hindsight(), WORLDS[0], 3) > 1.5


def test_what_is_charged_is_the_least_of_all_that_may_have_happened() -> None:
    rng = np.random.default_rng(1)
    for against in (-1, 2):
        shares = (rng.dirichlet(np.ones(4)).tolist(), rng.dirichlet(np.ones(4)).tolist())
        start = WinnerEvidence.of(5, against, 0.1 if against >= 0 else 0.0)
        shown = (0, 1, 2, 4)
        worst = start.charge_order(shown, shares, range(4)).log_wealth
        possible = [start.after_order(shown, shares, order).log_wealth for order in permutations(range(4), 3)]
        others = [item for item in shown if item != against]
        assert np.all(worst[others] <= np.min(possible, axis=0)[others] + 1e-12)
        assert np.any(worst[others] < -0.1)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_checker_multiplies_the_same_factors(size: int) -> None:
    """By its own code: for shares of any kind, equal ones included, orders of any length, and charged ones."""
    rng = np.random.default_rng(size)
    equal = [round(1 / size, 6)] * size
    tiny = [1.0, *[1e-6] * (size - 1)]
    for shares in (equal, tiny, *np.round(rng.dirichlet(np.ones(size), 8), 6).tolist()):
        for other in (equal, np.round(rng.dirichlet(np.ones(size)), 6).tolist()):
            order = tuple(rng.permutation(size)[: rng.integers(0, size)].tolist())
            shown, predicted = tuple(range(1, size + 1)), [[max(one, 1e-6) for one in shares], other]
            for leader in (None, 2):
                made = WinnerEvidence.of(size + 2, -1 if leader is None else leader, 0.0 if leader is None else 0.1)
                made = made.after_order(shown, predicted, order)
                left = [place for place in range(size) if place not in order]
                if 0 < len(order) < size - 1:
                    made = made.charge_order(shown, predicted, left)
                process = Process(size + 2, leader, 0.0 if leader is None else 0.1)
                process.count_orders(list(shown), predicted, [(list(order), 1)], 0, size - 1)
                logs = np.array(process.logs)
                assert np.allclose(made.log_wealth + LOG_SHARES, logs, atol=1e-9)
                assert np.allclose(made.reached, process.reached, atol=1e-9)


def test_within_epsilon_a_better_item_keeps_a_mean_of_at_most_one() -> None:
    """Item 0 is picked at least its share, and beats the leader named, item 1, by more than epsilon."""
    evidence = WinnerEvidence.of(3, 1, 0.1)
    shares = ([0.2, 0.6, 0.2], [0.1, 0.7, 0.2])
    for p0, p1 in ((0.6, 0.4), (0.45, 0.3), (1 / 3, 0.2)):  # the share of item 0 among the two is 0.6 or more
        picks = [evidence.after_order((0, 1, 2), shares, (place,)).log_wealth[0] for place in range(3)]
        mean = np.array([p0, p1, 1 - p0 - p1]) @ np.exp(logsumexp(np.array(picks) + LOG_SHARES, axis=1))
        assert mean <= 1 + 1e-12


def test_a_pick_of_two_is_a_comparison_to_the_beliefs() -> None:
    start = ItemScores.of(np.random.default_rng(0).normal(size=(5, 2)), 5)
    pick, compared = start.update_pick((1, 3), 0), start.update(1, 3, 1)
    assert np.allclose(pick.mean, compared.mean, atol=1e-12)
    assert np.allclose(pick.variance, compared.variance, atol=1e-12)
    assert np.allclose(pick.covariance_with(2), compared.covariance_with(2), atol=1e-12)
    assert np.allclose(start.shares((1, 3))[:, 0], start._by_scale(1, 3), atol=0.01)


def test_pairs_that_a_ranking_decides() -> None:
    for order in permutations(range(4), 3):
        decided = list(decided_pairs(order, (0, 1, 2, 3)))
        rank = {place: number for number, place in enumerate(order)}
        assert len(decided) in (2, 3)
        assert all(rank.get(winner, 9) < rank.get(loser, 9) for winner, loser in decided)
        assert len({frozenset(pair) for pair in decided}) == len(decided)
    assert np.mean([len(list(decided_pairs(order, range(4)))) for order in permutations(range(4), 3)]) == 8 / 3
    with pytest.raises(InvalidInput, match="each at most once"):
        checked_order((1, 1), 4)


def world(show: int, answer: Any) -> World:
    return World("taste", Problem.from_sets(list(TASTE), show=show, answer=answer), np.array(list(TASTE.values())))


@pytest.mark.parametrize(("show", "answer"), [(4, "rank"), (4, "pick"), (3, "rank")])
def test_a_search_with_sets_names_the_best_and_can_be_proved_again(show: int, answer: Any, tmp_path: Any) -> None:
    taste = world(show, answer)
    session = Session(taste.problem, Winner(budget=600), seed=3, path=tmp_path / "log.jsonl")
    judge = taste.judge(4)
    number = 0
    while session.final is None:
        for question in session.ask(2):
            number += 1
            assert len(question.items) == show
            assert question.first is None
            assert question.kind == answer
            if number % 9 == 0:
                session.skip(question.id)
            elif number % 7 == 0:
                session.tie(question.id)
            elif number % 5 == 0:
                session.tell(question.id, [question.items[2]])
                assert session.undo(question.id) is question
                session.tell(question.id, judge(question))
            else:
                session.tell(question.id, judge(question))
    verdict = session.verdict()
    assert (verdict.best, verdict.status) == ("plum", Status.CERTAIN)
    assert "at least as likely to be picked as any other" in verdict.assumptions[0]
    resumed = Session.resume(tmp_path / "log.jsonl")
    assert resumed.verdict().to_json() == verdict.to_json()
    assert resumed.chain.state == "chained"
    certificate = json.loads(json.dumps(session.certificate()))
    checked = verify_certificate(certificate)
    nats = {rival.name: rival.evidence for rival in verdict.rivals}
    assert (checked.best, checked.answers) == ("plum", verdict.questions)
    assert checked.nats == pytest.approx(nats, abs=1e-9)
    for forged in forgeries(certificate):
        with pytest.raises(CertificateRefused):
            verify_certificate(signed({name: value for name, value in forged.items() if name != "chain"}))


def forgeries(certificate: dict[str, Any]) -> list[dict[str, Any]]:
    """Certificates of the same search with an order, a set or a share that it did not have."""
    text = json.dumps(certificate)
    stage = next(place for place, stage in enumerate(certificate["stages"]) if stage["orders"][0])
    result = []
    for name, value in (
        ("orders", [[[[1, 1], 1]]]),
        ("orders", [[[[9], 1]]]),
        ("orders", [[[[0], 2]]]),
        ("orders", [[[[0, 1, 2, 3], 1]]]),
        ("shown", [[0, 1, 2, 3][: len(certificate["stages"][stage]["shown"][0]) - 1]]),
        ("measurements", [certificate["stages"][stage]["measurements"][0] + 1]),
        ("shares", [[[0.5], [0.5]]]),
        ("shares", [[[0, 0, 0, 0], [1, 0, 0, 0]]]),
    ):
        forged = json.loads(text)
        forged["stages"][stage][name] = value
        result.append(forged)
    forged = json.loads(text)
    forged["stages"] = forged["stages"][: len(forged["stages"]) // 2]
    return [*result, forged]


@pytest.mark.parametrize("questions", [1, 600])
def test_every_verdict_about_sets_names_its_assumption(questions: int) -> None:
    taste = world(4, "rank")
    session, judge = Session(taste.problem, Winner(budget=600), seed=3), taste.judge(4)
    while session.answered < questions and (asked := session.ask(1)):
        session.tell(asked[0].id, judge(asked[0]))
    verdict = session.verdict()
    assert verdict.status.decided == (questions > 1)
    assert any("at least as likely to be picked as any other" in sentence for sentence in verdict.assumptions)
    assert not any("each of its comparisons" in sentence for sentence in verdict.assumptions)
    (winner,) = (claim for claim in verdict.claims if claim.assume == "winner")
    assert "at least as likely to be picked as any other" in winner.assumption


def test_answers_to_sets_are_read_strictly() -> None:
    session = Session(Problem.from_sets(list(TASTE), show=4, answer="rank", top=2), seed=1)
    question = session.ask(1)[0]
    assert question.to_json()["items"] == list(question.items)
    assert question.top == 2
    for wrong in (0, 5, [1, 1], "mauve", ["plum", ["teal", "red"]], 0.5, True, [], "1=2"):
        with pytest.raises(InvalidInput):
            session.tell(question.id, wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="asks for at most 2 places"):
        session.tell(question.id, [1, 2, 3])
    session.tell(question.id, f"{question.items[2]} > {question.items[0]}")
    assert session.answers[question.id] == (3, 1)
    session.tell(question.id, [3, 1])  # the same again
    with pytest.raises(InvalidInput, match="undo"):
        session.tell(question.id, [1, 3])


def test_once_shows_no_judge_a_set_again() -> None:
    session = Session(Problem.from_sets(list(TASTE)[:4], show=3, answer="rank"), repeats="once", seed=2)
    asked = []
    while questions := session.ask(1):
        asked.append(questions[0].measurement)
        session.tell(questions[0].id, [1, 2])
    assert len(set(asked)) == len(asked) <= 4
    assert session.exhausted or session.final is not None
    with pytest.raises(InvalidInput, match="'spaced' is for comparisons"):
        Session(Problem.from_sets(list(TASTE)), repeats="spaced")


def test_find_best_takes_items_and_how_to_ask() -> None:
    def judge(question: Any) -> list[str]:
        return sorted(question.items, key=lambda name: -TASTE[name])

    verdict = find_best(list(TASTE), judge, show=4, answer="rank", budget=200)
    assert verdict.best == "plum"
    assert verdict.questions < 30
    picked = find_best(list(TASTE), lambda question: judge(question)[0], show=3, answer="pick", budget=200)
    assert picked.best == "plum"
    simulated = world(4, "rank")
    assert [claim.assume for claim in picked.claims] == ["winner"]  # without features there is one claim
    bright = {name: [value] for name, value in TASTE.items()}
    claims = find_best(bright, judge, show=4, answer="rank", assume="features").claims
    assert [(claim.assume, claim.reached, claim.best) for claim in claims] == [
        ("winner", True, "plum"),
        ("features", True, "plum"),
    ]
    assert "Plackett-Luce" in claims[1].assumption
    assert find_best(simulated.problem, simulated.judge(1)).best == "plum"
    with pytest.raises(InvalidInput, match="pass items with show and answer"):
        find_best(simulated.problem, judge, show=4)
