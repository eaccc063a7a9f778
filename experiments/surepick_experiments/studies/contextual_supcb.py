"""Study `supcb`: what is wrong with SupCB-GLM, made visible.

Two arms e₁ and e₂ of equal worth (θ* = 0), offered at every step. Level 1 may drop one of them; what is left goes to
level 2. A fixed-design bound for level 2 needs that, given the arms stored there, the rewards its estimate uses are
still fair coins. In SupCB-GLM that estimate uses the burn-in rewards by which level 1 dropped an arm, so they are not:
where level 2 stored only e₂, the burn-in rewards of e₁ were low. In SupLogistic every level has rewards of its own.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm, pearsonr

from surepick.baselines import SupCbGlm
from surepick.contextual import SupLogistic
from surepick.contextual.policy import AnyPolicy
from surepick.contextual.sup_levels import number_of_levels
from surepick.report.figures import figure
from surepick_experiments.studies.runner import Options, Params, Row, Study

HORIZON = 1000
EACH = 40
"""Burn-in rewards that a level's estimate uses."""
STORED = 12
"""How many arms stored at level 2 are examined."""
FALSE_ALARM = 1e-4


def policies() -> dict[str, AnyPolicy]:
    """Both with widths between the accuracies of level 1 and level 2 after the burn-in, so that both levels act."""
    dealt = EACH * (number_of_levels(HORIZON) + 1)
    return {
        "sup-cb-glm": SupCbGlm(HORIZON, 2, 1.0, alpha=1.5, burn_in=EACH),
        "sup-logistic": SupLogistic(HORIZON, alpha=0.6, burn_in=dealt),
    }


def tasks(options: Options) -> list[Params]:
    """Both policies, in portions of 50 runs."""
    portions = max(1, math.ceil((options.runs or 1000) / 50))
    return [{"policy": name, "portion": portion} for name in policies() for portion in range(portions)]


def run(task: Params, rng: np.random.Generator) -> list[Row]:
    """Fifty runs: what level 2 stored first, and the burn-in rewards that its estimate uses."""
    return [{"policy": task["policy"], **_one(policies()[task["policy"]], rng)} for _ in range(50)]


def _one(policy: AnyPolicy, rng: np.random.Generator) -> Row:
    arms = np.eye(2)
    state, own = policy.start(2), 0 if isinstance(policy, SupCbGlm) else 2
    rewards: dict[int, list[float]] = {0: [], 1: []}
    stored: list[int] = []
    for _ in range(HORIZON):
        burning = not state.burn_in_over
        choice = policy.choose(state, arms, rng)
        reward = float(rng.random() < 0.5)
        state = policy.learn(state, arms, choice, reward)
        if burning and choice.bucket == own:
            rewards[choice.index].append(reward)
        elif not burning and choice.bucket == 2:
            stored.append(choice.index)
            if len(stored) == STORED:
                break
    means = [float(np.mean(rewards[arm])) if rewards[arm] else 0.5 for arm in (0, 1)]
    return {
        "share_of_first_arm": float(np.mean(np.array(stored) == 0)) if stored else None,
        "burn_in_difference": means[0] - means[1],
    }


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Mean burn-in rewards given what level 2 stored, and whether they depend on it beyond doubt."""
    summary: dict[str, Any] = {"false_alarm_rate": FALSE_ALARM, "policies": []}
    for name in policies():
        chosen = [row for row in rows if row["policy"] == name and row["share_of_first_arm"] is not None]
        share = np.array([row["share_of_first_arm"] for row in chosen])
        difference = np.array([row["burn_in_difference"] for row in chosen])
        correlation = float(pearsonr(share, difference).statistic) if len(share) > 3 and share.std() > 0 else 0.0
        score = math.atanh(correlation) * math.sqrt(max(len(share) - 3, 1))
        summary["policies"].append(
            {
                "policy": name,
                "runs": len(chosen),
                "correlation": correlation,
                "p_value": float(2 * norm.sf(abs(score))),
                "depends": bool(2 * norm.sf(abs(score)) < FALSE_ALARM),
                **{
                    f"given_{label}": float(difference[inside].mean()) if inside.any() else None
                    for label, inside in (
                        ("only_second", share == 0),
                        ("both", (share > 0) & (share < 1)),
                        ("only_first", share == 1),
                    )
                },
            }
        )
    return summary


def draw(rows: list[Row], summary: dict[str, Any], folder: Path) -> list[Path]:
    """Conditional means with two standard errors."""
    path = folder / "supcb.png"
    with figure(path, columns=2, size=(9.0, 4.0)) as panels:
        for axes, name in zip(panels, policies(), strict=True):
            chosen = [row for row in rows if row["policy"] == name and row["share_of_first_arm"] is not None]
            for share in sorted({row["share_of_first_arm"] for row in chosen}):
                values = [row["burn_in_difference"] for row in chosen if row["share_of_first_arm"] == share]
                error = 2 * float(np.std(values)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
                axes.errorbar(share, float(np.mean(values)), yerr=error, fmt="o", ms=4, color="#1f5fa8")
            axes.axhline(0.0, color="black", lw=0.8)
            axes.set(title=name, xlabel="share of e₁ among the arms stored at level 2", ylim=(-0.4, 0.4))
        panels[0].set_ylabel("mean burn-in reward of e₁ minus e₂")
    return [path]


def tables(summary: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    """What the terminal shows."""
    title = (
        "Mean burn-in reward of e₁ minus e₂ given the arms stored at level 2 (0 if the design is independent of them)"
    )
    return [(title, summary["policies"])]


STUDY = Study("supcb", "Measures the dependence that invalidates SupCB-GLM.", tasks, run, summarise, draw, tables)
