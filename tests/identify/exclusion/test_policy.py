"""Exclusion: it ends where answers all agree, which no finite theta explains best."""

import numpy as np
import pytest

from surepick import Problem, Session, verify_certificate
from surepick.identify import Exclusion


@pytest.mark.parametrize("together", [1, 5])
def test_a_judge_who_never_errs_is_believed_soon(together: int) -> None:
    """The least wealth is then at infinity: the search must go on with questions whose answers prove something."""
    worth = {"a": 0, "b": 3, "c": -2, "d": 1}
    problem = Problem.from_pairs({"a": [0, 0], "b": [1, 0], "c": [0, 1], "d": [1, 1]})
    session = Session(problem, Exclusion(), seed=1)
    while asked := session.ask(together):
        for question in asked:
            session.tell(question.id, int(worth[question.first] > worth[question.second]))
        assert session.answered < 150
    assert session.verdict().best == "b"
    assert verify_certificate(session.certificate()).answers == session.verdict().questions


def test_the_best_of_many_is_found_by_a_judge_who_never_errs() -> None:
    features = np.random.default_rng(4).normal(size=(20, 3))
    worth = features @ [2.0, -1.0, 0.5]
    problem = Problem.from_pairs(features)
    session = Session(problem, Exclusion(), seed=2)
    while asked := session.ask(1):
        first, second = (problem.index(name) for name in (asked[0].first, asked[0].second))
        session.tell(asked[0].id, int(worth[first] > worth[second]))
        assert session.answered < 400
    assert problem.index(session.verdict().best) == int(np.argmax(worth))
