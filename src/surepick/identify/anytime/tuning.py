"""All constants that tune Anytime, in one place; what was measured is in docs/anytime.md, section 9.

No choice of them can make a verdict wrong. Those of the first group are also written into the independent checker
(`surepick.certificate`): a change there is a change of the certificate's format. Constants that belong to a proof, such
as the order of a Taylor expansion and its remainder, stay at their formula.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Constants of the policy by what they tune. "Questions" without a case are those of a person with gap 1.5."""

    # The split of delta and the form of the bets: known to the checker.
    localiser_share: float = 0.3
    """delta_2/delta, spent by the plug-in process. 0.15: perhaps 5% fewer in many dimensions. A half: mean 178
    questions against 178 (50 seeds)."""
    largest_tilt: float = 0.3
    """Tilts c are cut here. 0.2 on Soare d=50: 1.2e4 to 2.6e4 questions; 0.5 for a person: 260 instead of 226."""
    bet_sizes: tuple[float, ...] = (0.25, 0.125, 0.0625)
    """Bets of fixed size, in units of the gap that `usual_nats` describes; one more bet follows the estimated gap. The
    estimate alone: 3 to 6 nats less after 5,000 questions. One more of twice the largest size: 0.2 nats less on the
    same answers."""

    # Bets: docs/anytime.md, section 2.
    usual_nats: float = 4.0
    """The unit of `bet_sizes` is the gap that `usual_answers`·d evenly spread answers show with this many nats:
    √(8·v_0) for four."""
    usual_answers: int = 10
    """Answers per dimension behind v_0, the variance of yᵀtheta after that many evenly spread ones."""
    catch_up: float = 5.0
    """R in D = [H_b + H_p/R]⁻¹(kap·y − G): how fast a stage makes up for lacking tilt. 3 to 10 make no difference."""
    memo_digits: int = 6
    """Decimals kept of shifts, logits and limits in a stage's memo: logs stay short, and a replay reads the same."""

    # When bets begin.
    bets_from: int = 5
    """Answers per dimension before the first bets. 1, 2, 3 and 8 make no difference beyond the noise of 20 runs."""
    contender_nats: float = 1.0
    """The leader is bet against, too, while another item is at most this far behind."""

    # Stage sizes and what counts as early: docs/anytime.md, section 7.
    growth: float = 0.05
    """A late stage is this share of all questions before it. Early it is one: 169 against 190 with 2% (60 seeds)."""
    dimensions_per_question: int = 10
    """A late stage has at least 1 + d/this questions."""
    early_questions: int = 30
    """Questions per dimension that may be early. 15; 60: one judge 173; 174 against 174, 50 judges 241; 205 against 205
    (20 seeds)."""
    first_early: int = 8
    """Questions per dimension that are early in any case where the dimensions are few."""
    early_dimensions: int = 12
    """In more dimensions nothing is early. Soare d=50 with the early form 1.46e4, without 1.20e4."""
    early_log_odds: float = 3.0
    """After `first_early` questions per dimension it is early only while some |xᵀθ| exceeds this: below it the
    quadratic approximation is good. Soare d=10 7,176 without this rule, 5,796 with it."""

    # What is asked.
    closest: int = 96
    """Closest rivals that are bet against, weighted by the sampler and used in estimates."""
    early_temperature: float = 1.0
    """A rival with this many nats more counts 1/e. 0.5; 2: 184; 182 against 190 questions, within the noise."""
    temperature: float = 3.0
    """The same in late stages."""
    least_weight: float = 1e-4
    """Rivals of smaller soft weight are left out: they change no choice and cost time."""
    spare_nats: float = 1.0
    """Nats beyond what passes a rival, after which it is no longer asked about. 0.3; 2: 185; 186 against 190."""
    ahead: float = 0.5
    """Standard errors by which a rival is ahead at the point a question is to refute. 0.05; 1: 184; 189 against 190."""
    old_information: float = 0.3
    """Share of the information so far that counts in late choices: below one, a stage makes up for old neglect."""
    picks: int = 48
    """Different choices made within a stage; a larger stage repeats each."""
    candidates: int = 256
    """Vectors among which the choices of a stage are made, by their gain before the first of them."""
    proof_share: int = 3
    """One in this many questions of a stage for what a proof lacks. Soare d=50: 16,126 to 8,984 (12 seeds)."""
    waiting_share: float = 0.3
    """With a larger share of questions unanswered, theta is drawn. 50 judges, from .1, .3, .5: means 299, 288, 318."""
    worst_proof: float = -50.0
    """Nats below which a failed proof weighs no more in the sampler."""

    # When a proof is tried.
    rehearsal_growth: float = 1.25
    """While some rival lacks evidence, proofs are tried at this many times the questions of the last time ..."""
    first_rehearsal: int = 20
    """... and at least this many per dimension ..."""
    rehearsed_rivals: int = 48
    """... of at most this many rivals."""
    few_rivals: int = 6
    """When nothing lacks by the estimates: rivals per portion, and a number of rivals always worth trying."""
    retry_gain: float = 0.5
    """A failed proof is repeated when its evidence grew by this share of what it lacked ..."""
    retry_growth: float = 1.6
    """... or the questions grew by this factor."""
    no_bound: float = 20.0
    """Nats that a proof is said to have lacked where it found no bound, or a worse one."""

    # How a directional bound is searched for: docs/anytime.md, section 3.
    ages: tuple[int, ...] = (0, 3, 5)
    """Shares of the restarts to try: 0, by their evidence; a > 0, nearly all on the last but a. Older restarts leave
    more room, but count answers to vectors not asked since: bounds of −5 and −14 nats became 4.5 and 7.6."""
    shared_alike: float = 0.03
    """Share that all restarts divide alike. Without it no bound for vectors only old restarts saw: runs of 4e4 to 9e4
    at d=50."""
    lam_margin: float = 1.1
    """lam in units of the least that makes L convex. 10% above is better than 30% or more."""
    wide_lam_margin: float = 1.2
    """The same for very wide boxes, in units of the least that leaves every vector curvature."""
    least_lam: float = 1e-3
    """Added to lam, so that L is strictly convex where nothing was tilted."""
    lam_steps: int = 4
    """Newton steps towards the least lam."""
    lam_trials: int = 9
    """Values of lam tried in a pass, to bring the least point to the border of the localiser."""
    lam_factor: float = 4.0
    """Factor between trials while the point is outside the localiser ..."""
    lam_precision: float = 1.3
    """... and the ratio of an upper and a lower lam at which trials end."""
    rho_share: float = 0.9
    """rho·T in units of the slope of F along y: below one, the multiplier of y stays above rho·T."""
    newton_steps: int = 8
    """Newton steps to the least point of L."""
    newton_tolerance: float = 1e-2
    """A step that changes no logit by more is the last: what is left is of the order of its square."""
    passes: int = 5
    """Passes, each with smaller boxes. They turn 2.5 proven nats into 3.9 where the true minimum is 6."""
    shrinkage: float = 0.97
    """A pass that leaves boxes larger than this share of those before is the last."""
    shared_again: int = 2
    """Times that shares of bets and restarts are chosen again, at the least point found. With it and older restarts
    tried however poor the first bound: synthetic catalogue 11,440 to 9,537 (geometric means, 30 seeds)."""
    hopeless: float = 6.0
    """A bound that lacks more nats than this is not pursued with the same restarts."""


TUNING = Tuning()
