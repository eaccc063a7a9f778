"""Every search keeps the claims of all assumptions; alarms of the checks reach them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from surepick.checks import Check
from surepick.errors import InvalidInput
from surepick.guarantee import Guarantee
from surepick.identify import Anytime, Exclusion, Population, Posterior, Problem, RageGlm, Status, Verdict, Winner
from surepick.identify.ladder import Ladder, default_assumption, policy_for, questioned
from surepick.identify.policy import StageRecord
from surepick.session import Question, Session, find_best

SCORES = {"a": 2.0, "b": 0.6, "c": 0.0, "d": -0.5, "e": -1.2, "f": -2.0}
GUIDED = Problem.from_pairs({name: [score, (-1) ** place] for place, (name, score) in enumerate(SCORES.items())})
PLAIN = Problem.from_pairs(list(SCORES))


def answered(session: Session, most: int) -> Session:
    """Answers drawn from the scores, by the question's number."""
    while session.answered < most and (questions := session.ask(1)):
        for question in questions:
            session.tell(question.id, drawn(question))
    return session


def drawn(question: Question) -> int:
    assert question.first is not None
    assert question.second is not None
    chance = 1 / (1 + np.exp(SCORES[question.second] - SCORES[question.first]))
    return int(np.random.default_rng([4, question.id]).random() < chance)


def alarm(name: str, *refutes: str) -> Check:
    return Check(name, 0.05, True, 1e3, "Something is off.", "All is well.", Guarantee.PROVED, refutes=refutes)


class TestDefaults:
    def test_comparisons_end_by_winner_and_yes_no_questions_by_features(self) -> None:
        assert default_assumption(GUIDED) == default_assumption(PLAIN) == "winner"
        assert default_assumption(Problem.from_items({"a": [1.0], "b": [2.0]})) == "features"
        assert Session(GUIDED).policy.name == "winner"

    def test_one_person_ends_by_features_where_there_are_any(self) -> None:
        assert default_assumption(GUIDED, one_person=True) == "features"
        assert default_assumption(PLAIN, one_person=True) == "winner"

    def test_without_features_both_claims_are_proved_by_winner(self) -> None:
        assert isinstance(policy_for(GUIDED, "features", delta=0.1), Exclusion)
        assert policy_for(PLAIN, "features", delta=0.1) == Winner(delta=0.1)
        with pytest.raises(InvalidInput, match="assume must be one of"):
            policy_for(PLAIN, "magic")  # type: ignore[arg-type]  # what a caller may pass by mistake


class TestPopulation:
    def test_the_other_claims_follow_a_search_for_a_person_of_a_population(self) -> None:
        verdict = find_best(GUIDED, drawn, assume="population", delta=0.1, budget=200)
        assert [claim.assume for claim in verdict.claims] == ["winner", "features", "population"]
        ends = verdict.claims[2]
        assert ends.ends_search
        assert ends.reached
        assert ends.best == verdict.best == "a"
        assert verdict.policy == "posterior"
        assert "drawn from the stated population" in ends.assumption

    def test_a_population_is_known_to_the_claims_that_use_it(self) -> None:
        population = Population.usual(GUIDED)
        assert policy_for(GUIDED, "population", population=population).population is population  # type: ignore[union-attr]  # it is Posterior
        assert policy_for(GUIDED, "winner", population=population).population is population  # type: ignore[union-attr]  # it is Winner
        with pytest.raises(InvalidInput, match="assume='features' ends the search"):
            policy_for(GUIDED, "features", population=population)
        planning = Posterior(population=population)
        follower = next(one for one in Ladder.of(GUIDED, planning).followers if one.assume == "winner")
        assert follower.policy.population is population  # type: ignore[union-attr]  # it is Winner


class TestClaims:
    def test_a_claim_that_follows_forgets_what_only_certificates_need(self) -> None:
        session = answered(Session(GUIDED, Winner(delta=1e-6), seed=1), 60)
        stages = [StageRecord(one.plan, one.pulls, one.wins, closed=True) for one in session.progress()[1]]
        (follower,) = Ladder.of(GUIDED, Winner(delta=1e-6)).after(stages).followers
        assert follower.state.evaluated_stages == len(stages) == 60
        assert len(follower.state.process.rivals)
        assert all(memo.factors is None for memo in follower.state.memos)

    @pytest.mark.parametrize("policy", [Winner(delta=0.1), Anytime(delta=0.1)])
    def test_a_search_lists_all_claims_the_weakest_assumption_first(self, policy: Winner | Anytime) -> None:
        session = answered(Session(GUIDED, policy, seed=1), 40)
        claims = session.verdict().claims
        assert [claim.assume for claim in claims] == ["winner", "features"]
        assert [claim.ends_search for claim in claims] == [policy.name == "winner", policy.name == "anytime"]
        assert all(set(claim.surviving) <= set(SCORES) and len(claim.rivals) == 5 for claim in claims)

    def test_the_claim_that_follows_equals_a_search_that_asked_the_same(self) -> None:
        # Winner follows Anytime's stages; the same evidence comes from a Winner that is given them one by one.
        session = answered(Session(GUIDED, Anytime(delta=0.1), seed=2), 60)
        followed = session.verdict().claims[0]
        winner = Winner(delta=0.1)
        state = winner.start(GUIDED)
        for stage in session.progress()[1]:
            if stage.left.any():
                break
            counts = np.zeros(len(GUIDED.measurements), dtype=np.int64)
            counts[stage.plan.measurements] = stage.plan.pulls
            plan = winner.stage_of(state, counts)
            state = winner.update(winner.apply(state, plan), plan.stage, plan.tally(GUIDED, stage.wins, stage.pulls))
        assert followed.rivals == winner.verdict(state).rivals

    def test_reading_claims_often_or_once_is_the_same(self) -> None:
        often, once = Session(GUIDED, Winner(delta=0.1), seed=3), Session(GUIDED, Winner(delta=0.1), seed=3)
        for most in range(5, 61, 5):
            assert answered(often, most).verdict().claims
        assert often.verdict().claims == answered(once, 60).verdict().claims

    def test_final_claims_are_in_the_log(self) -> None:
        session = Session(GUIDED, Winner(delta=0.1), seed=1)
        verdict = answered(session, 10**4).verdict()
        assert verdict.status is Status.CERTAIN
        assert verdict.claims[0].reached
        again = Session.replay(session.to_lines()).verdict()
        assert again.claims == verdict.claims
        assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))).to_json() == verdict.to_json()

    def test_without_features_there_is_one_claim_and_other_policies_have_none(self) -> None:
        assert [claim.assume for claim in Session(PLAIN).verdict().claims] == ["winner"]
        assert Session(GUIDED, RageGlm(delta=0.1)).verdict().claims == ()

    def test_an_open_claim_has_a_forecast(self) -> None:
        claim = answered(Session(GUIDED, Winner(delta=0.1), seed=1), 20).verdict().claims[1]
        assert claim.forecast is not None
        assert claim.forecast.further > 0

    def test_features_that_mislead_fail_one_claim_and_not_the_other(self) -> None:
        # "a" is the best, and its feature says that it is in the middle.
        misleading = Problem.from_pairs({name: [-0.3 if name == "a" else score] for name, score in SCORES.items()})
        verdict = find_best(misleading, drawn, delta=0.05, seed=5)
        assert (verdict.best, verdict.status, verdict.guarantee) == ("a", Status.CERTAIN, Guarantee.PROVED)
        assert verdict.claims[1].best != "a" or verdict.claims[1].refuted_by


class TestAlarms:
    def test_an_alarm_takes_the_proof_away_and_names_the_claim_that_does_not_need_it(self) -> None:
        session = Session(GUIDED, Anytime(delta=0.1), seed=1)
        verdict = replace(answered(session, 10**4).verdict(), refuted_by=())
        assert verdict.status is Status.CERTAIN
        doubted = questioned(verdict, [alarm("misfit", "features")])
        assert doubted.status is Status.CERTAIN
        assert not doubted.stands
        assert (doubted.guarantee, doubted.refuted_by) == (Guarantee.HEURISTIC, ("misfit",))
        assert "contradict" in doubted.reason
        assert "'winner'" in doubted.reason or "(winner)" in doubted.reason
        assert doubted.claims[0].guarantee is Guarantee.PROVED
        assert not doubted.claims[1].reached

    def test_an_alarm_about_another_claim_leaves_the_verdict(self) -> None:
        verdict = answered(Session(GUIDED, Winner(delta=0.1), seed=1), 10**4).verdict()
        doubted = questioned(verdict, [alarm("misfit", "features")])
        assert doubted.stands
        assert doubted.guarantee is Guarantee.PROVED
        assert doubted.claims[1].refuted_by == ("misfit",)
