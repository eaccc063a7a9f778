"""Ties, grades and soft answers: scores between 0 and 1 in both claims."""

import itertools
import json

import numpy as np
import pytest

from surepick.certificate import digest, verify_certificate
from surepick.errors import CertificateRefused, InvalidInput
from surepick.evidence.betting import MOST_BET, WinnerEvidence, log_factors
from surepick.glm import probability_of_yes
from surepick.identify import Anytime, Problem, RageGlm, Status, Winner
from surepick.session import Session, find_best

ITEMS = ["a", "b", "c", "d"]
SCORE = dict(zip(ITEMS, (1.2, 0.4, 0.0, -0.6), strict=True))
PLAIN = Problem.from_pairs(ITEMS)
GUIDED = Problem.from_pairs({name: [score] for name, score in SCORE.items()})


def chance(question) -> float:
    return float(probability_of_yes(np.array(SCORE[question.first] - SCORE[question.second])))


def with_ties(seed: int, most: float):
    """Ties as often as `most`, as far as the mean score, which is the chance to win without ties, allows it."""
    rng = np.random.default_rng([1, seed])

    def judge(question):
        p = chance(question)
        share = min(most, 2 * p, 2 * (1 - p))
        drawn = rng.random()
        return "tie" if drawn < share else int(drawn - share < p - share / 2)

    return judge


def soft(seed: int, mean: float, spread: float):
    """The better item gets the mean score on average, as a judge's probability."""
    rng = np.random.default_rng([2, seed])

    def judge(question) -> float:
        score = float(np.clip(rng.normal(mean, spread), 0.001, 0.999))
        return score if SCORE[question.first] > SCORE[question.second] else 1 - score

    return judge


class TestEvidence:
    def test_spread_one_is_the_bet_on_wins_and_losses(self) -> None:
        w = np.array([[0.1, 0.3, 0.5]])
        for score in (0.0, 0.3, 1.0):
            usual = np.log1p((0.5 - w) / 0.25 * (0.5 - score))
            assert np.allclose(log_factors(w, np.array([[score]]), np.array([[0.5]])), usual)

    @pytest.mark.parametrize("spread", [1.0, 0.4, 0.0])
    def test_the_mean_is_at_most_one_at_the_border(self, spread: float) -> None:
        # Every distribution of scores on {0, ¼, ½, ¾, 1} with mean ½ is a mixture of pairs around ½.
        shown, shares = (0, 1), ((0.2, 0.8), (0.4, 0.6))
        for low, high in itertools.product((0.0, 0.25, 0.5), (0.5, 0.75, 1.0)):
            up = 0.5 if high == low else (0.5 - low) / (high - low)
            ends = [
                WinnerEvidence.of(2).update(shown, shares, [((score, 1 - score), 1)], spread).log_wealth[0]
                for score in (low, high)
            ]
            mean = (1 - up) * np.exp(ends[0]) + up * np.exp(ends[1])
            assert np.all(mean <= 1 + 1e-12)

    def test_no_factor_is_negative(self) -> None:
        worst = log_factors(np.array([[0.01]]), np.array([[1.0]]), np.array([[0.5]]), 0.0)
        assert np.exp(worst) == pytest.approx(1 - MOST_BET)

    def test_the_features_process_keeps_its_mean(self) -> None:
        # exp(affine in y) lies below its chord: with E[y] = μ the mean of q(y)/p(y) is at most 1 for y on a grid.
        p, q = 0.3, 0.8
        for low, high in itertools.product((0.0, 0.1, 0.3), (0.3, 0.6, 1.0)):
            up = 0.0 if high == low else (p - low) / (high - low)
            factor = [np.exp(y * np.log(q / p) + (1 - y) * np.log((1 - q) / (1 - p))) for y in (low, high)]
            assert (1 - up) * factor[0] + up * factor[1] <= 1 + 1e-12


class TestSearches:
    def test_ties_are_answers_of_one_half(self) -> None:
        session = Session(PLAIN, Winner(), seed=1)
        question = session.ask(1)[0]
        session.tie(question.id)
        session.tie(question.id)
        verdict = session.verdict()
        assert verdict.questions == 1
        assert all(rival.evidence == pytest.approx(0.0) for rival in verdict.rivals)
        with pytest.raises(InvalidInput, match=r"answered 0\.5 before"):
            session.tell(question.id, 1)
        again = Session.replay(session.to_lines())
        assert again.verdict().to_json() == verdict.to_json()

    def test_a_tie_can_be_undone(self) -> None:
        session = Session(PLAIN, Winner(), seed=1)
        question = session.ask(1)[0]
        session.tie(question.id)
        session.undo(question.id)
        session.tell(question.id, 0.7)
        assert session.answers == {question.id: 0.7}
        assert session.verdict().questions == 1

    def test_ties_cost_no_questions_where_mean_scores_are_the_same(self) -> None:
        plain = [find_best(PLAIN, with_ties(seed, 0.0), seed=seed).questions for seed in range(20)]
        tied = [find_best(PLAIN, with_ties(seed, 0.3), seed=seed) for seed in range(20)]
        assert sum(verdict.best == "a" for verdict in tied) >= 18
        assert np.mean([verdict.questions for verdict in tied]) < 1.1 * np.mean(plain)

    def test_soft_answers_take_a_fraction_of_the_questions(self) -> None:
        hard = [find_best(PLAIN, lambda q: int(soft(0, 0.6, 0.0)(q) > np.random.default_rng(q.id).random()), seed=1)]
        votes = [find_best(PLAIN, soft(seed, 0.6, 0.2), seed=seed) for seed in range(6)]
        assert all(verdict.best == "a" and verdict.stands for verdict in votes)
        assert 4 * np.median([verdict.questions for verdict in votes]) < hard[0].questions

    @pytest.mark.parametrize("policy", [Winner(delta=0.1), Anytime(delta=0.1)])
    def test_certificates_carry_scores_and_refuse_others(self, policy: Winner | Anytime) -> None:
        session = Session(GUIDED, policy, seed=3)
        judge = with_ties(3, 0.3)
        while questions := session.ask(1):
            said = judge(questions[0])
            session.tie(questions[0].id) if said == "tie" else session.tell(questions[0].id, said)
        assert session.verdict().status is Status.CERTAIN
        certificate = session.certificate()
        assert verify_certificate(certificate).best == "a"
        assert "0.5" in str(certificate["stages"])
        forged = json.loads(json.dumps(certificate).replace("0.5", "0.9"))
        forged["digest"] = digest(forged)  # so that the content is refused, and not only the seal on it
        with pytest.raises(CertificateRefused):
            verify_certificate(forged)

    def test_other_policies_and_questions_take_no_scores(self) -> None:
        for session in (Session(PLAIN, RageGlm()), Session(Problem.from_items({"a": [1.0], "b": [2.0]}))):
            question = session.ask(1)[0]
            with pytest.raises(InvalidInput, match="must be 0 or 1"):
                session.tell(question.id, 0.7)
        session = Session(PLAIN)
        question = session.ask(1)[0]
        with pytest.raises(InvalidInput, match="from 0 to 1"):
            session.tell(question.id, 1.5)
