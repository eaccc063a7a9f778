"""The report of a search as one self-contained HTML file; figures are embedded and all text is escaped."""

import math
import tempfile
from collections.abc import Callable, Sequence
from html import escape
from os import PathLike
from pathlib import Path

import numpy as np

from surepick import __version__
from surepick.certificate import ARITHMETIC_ONLY
from surepick.identify.verdict import one_in
from surepick.io.items import ItemTable
from surepick.report.figures import draw_appearances, draw_evidence, draw_scores
from surepick.report.history import appearances, verdicts_over_time
from surepick.report.outcome import LEVEL, Outcome
from surepick.report.sentences import REFUTED, certainty, checks_note, claim, claim_result, equally_good
from surepick.session import Session

STYLE = """
body{font:16px/1.55 system-ui,sans-serif;color:#1c1c1e;max-width:54rem;margin:2.5rem auto;padding:0 1.2rem}
h1{font-size:1.7rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2.4rem}
.claim{font-size:1.15rem;border-left:.5rem solid #0b6e4f;padding:.7rem 1.1rem;background:#f2f7f5}
.claim.open{border-color:#b8860b;background:#fbf7ec}
table{border-collapse:collapse;margin:.6rem 0}td,th{padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
tr+tr td{border-top:1px solid #e6e6e6}
.swatch{display:inline-block;width:1.1em;height:1.1em;border-radius:.2em;border:1px solid #0003;vertical-align:-.2em;
margin-right:.4em}
code,pre{background:#f4f4f6;border-radius:.3em;padding:.1em .35em;font-size:.9em}
pre{padding:.8em;overflow-x:auto;white-space:pre-wrap}
svg{max-width:100%;height:auto}.note{color:#555;font-size:.92rem}li{margin:.15rem 0}
.alarm{color:#a4161a;font-weight:600}
"""

PLAIN_COLOUR = "#7aa6d6"
"""For items that have no colour of their own."""


def write_report(searched: Outcome | Session, path: str | PathLike[str], *, items: ItemTable | None = None) -> None:
    """Write the report of a search, or of a session as it stands, to an HTML file; figures need the extra `plots`.

    `items` are those of a session, with what is shown of them; by default the items of its problem, by name.
    """
    outcome = searched if isinstance(searched, Outcome) else Outcome.of(searched, items)
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(outcome), encoding="utf-8")


def page(outcome: Outcome) -> str:
    """The whole page as text."""
    parts = [
        _verdict(outcome),
        _ladder(outcome),
        _numbers(outcome),
        _course(outcome),
        _scores(outcome),
        _asked(outcome),
    ]
    parts += [_assumptions(outcome), _preparation(outcome), _again(outcome)]
    return whole_page(outcome.items.label(outcome.verdict.best), parts)


def whole_page(title: str, parts: Sequence[str]) -> str:
    """A self-contained page of parts that are HTML already."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>surepick: {escape(title)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _item(outcome: Outcome, name: str) -> str:
    colour = outcome.items.colour(name)
    patch = "" if colour is None else f'<span class="swatch" style="background:{colour}"></span>'
    return patch + escape(outcome.items.label(name))


def _verdict(outcome: Outcome) -> str:
    verdict, ended = outcome.verdict, outcome.ended or ""
    best = f"<strong>{_item(outcome, verdict.best)}</strong>"
    count = len(outcome.session.problem.names)
    doubt = "<strong>Not proved.</strong>" if verdict.refuted_by else ""
    sentences = [
        doubt,
        f"{claim(verdict.status, best, verdict.epsilon, count=count, why=escape(ended))}.",
        escape(certainty(verdict.status, verdict.delta, verdict.epsilon, verdict.guarantee, outcome.assumption)),
        outcome.on_average,
        escape(verdict.reason),
        equally_good([_item(outcome, name) for name in verdict.also]),
        outcome.about_advice,
    ]
    tone = "claim" if verdict.stands else "claim open"
    return (
        f'<h1>{_item(outcome, verdict.best)}</h1><p class="{tone}">{" ".join(filter(None, sentences))}</p>'
        f'<p class="note">Guarantee: {escape(str(verdict.guarantee))}. {escape(verdict.statement)}</p>'
    )


def _ladder(outcome: Outcome) -> str:
    """What is proved under which assumption, where there is more than one claim."""
    claims = outcome.verdict.claims
    if len(claims) < 2:
        return ""
    count = len(outcome.session.problem.names)
    rows = "".join(
        f"<tr><td>{escape(one.assume)}{' (ends the search)' if one.ends_search else ''}</td>"
        f"<td>{escape(one.assumption)}</td>"
        f'<td class="{"alarm" if one.refuted_by else ""}">'
        + escape(
            claim_result(
                one.status, outcome.items.label(one.best), len(one.surviving), count, refuted_by=one.refuted_by
            )
        )
        + "</td></tr>"
        for one in claims
    )
    return (
        "<h2>What is proved under which assumption</h2>"
        f"<table><tr><th>claim</th><th>if ...</th><th>then</th></tr>{rows}</table>"
        f'<p class="note">Each claim is wrong in at most {one_in(outcome.verdict.delta)} such searches, if its '
        "assumption holds.</p>"
    )


def _numbers(outcome: Outcome) -> str:
    verdict = outcome.verdict
    rows = [
        ("answers", escape(outcome.accounting)),
        ("policy", escape(verdict.policy)),
        ("delta, epsilon", f"{verdict.delta:g}, {verdict.epsilon:g}"),
    ]
    if outcome.seconds:
        rows.append(("time", f"{outcome.seconds:.1f} s"))
    if outcome.spent:
        rows.append(("cost", f"{outcome.spent:,.4g}"))
    if outcome.truth is not None:
        rows.append(("truth (hidden from the search)", _item(outcome, outcome.truth)))
    if outcome.comparison is not None:
        known = outcome.comparison
        if known.least is not None:
            rows.append(("no method asks fewer on average than", f"{known.least:,.0f}"))
        if known.printed is not None:
            rows.append(("RAGE-GLM as printed, told the true κ₀", f"{known.printed:,}"))
        rows.append(("every question once", f"{known.pairs:,}"))
    return "<table>" + "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows) + "</table>"


def _course(outcome: Outcome) -> str:
    curve = list(verdicts_over_time(outcome.session))
    if len(curve) < 2:
        return ""
    questions = [count for count, _ in curve]
    nats = [verdict.weakest for _, verdict in curve]
    alive = [len(verdict.surviving) for _, verdict in curve]
    needed = math.log(1 / outcome.verdict.delta)
    picture = picture_in_page("evidence", lambda path: draw_evidence(questions, nats, alive, needed, path))
    return (
        f"<h2>How it went</h2>{picture}"
        f'<p class="note">Evidence is the logarithm of odds: {needed:.1f} nats are odds of '
        f"{1 / outcome.verdict.delta:g} to 1 against every truth in which the closest rival is at least as good. Part "
        "of it pays for evaluating after every answer and for learning about the other items on the way.</p>"
    )


def _scores(outcome: Outcome) -> str:
    known = outcome.scores
    if known is None:
        return ""
    if known.refuted:
        return f'<h2>Where all items stand</h2><p class="alarm">{REFUTED}</p>'
    names = [outcome.session.problem.names[item] for item in known.items]
    ranks = [f"{low}–{high}" for low, high in zip(known.best_rank, known.worst_rank, strict=True)]
    picture = picture_in_page(
        "scores",
        lambda path: draw_scores(
            [outcome.items.label(name) for name in names],
            known.score,
            known.low,
            known.high,
            ranks,
            [outcome.items.colour(name) or PLAIN_COLOUR for name in names],
            path,
        ),
    )
    left = len(outcome.session.problem.names) - len(names)
    more = f" The {left} lowest are not drawn." if left else ""
    return (
        f"<h2>Where all items stand</h2>{picture}"
        f'<p class="note">{escape(known.note)} Intervals are wide for items that were soon excluded: no answers were '
        f"wasted on them.{more}</p>"
    )


def _asked(outcome: Outcome) -> str:
    counts = appearances(outcome.session)
    if not counts.any():
        return ""
    names = outcome.session.problem.names
    picture = picture_in_page(
        "appearances",
        lambda path: draw_appearances(
            [outcome.items.label(name) for name in names],
            counts.astype(np.float64),
            [outcome.items.colour(name) or PLAIN_COLOUR for name in names],
            path,
        ),
    )
    return f"<h2>What was asked about</h2>{picture}"


def _assumptions(outcome: Outcome) -> str:
    rows = "".join(
        f'<tr><td>{escape(check.name)}</td><td class="{"alarm" if check.alarm else ""}">'
        f"{'alarm' if check.alarm else 'no alarm'}</td><td>{escape(check.sentence)}</td></tr>"
        for check in outcome.checks
    )
    return (
        f"<h2>Assumptions and checks</h2>{sentence_list(outcome.verdict.assumptions)}<table>{rows}</table>"
        f'<p class="note">{checks_note(LEVEL)}</p>'
    )


def _preparation(outcome: Outcome) -> str:
    parts = ["<h2>Data preparation</h2>", sentence_list(outcome.prepared.sentences)]
    for title, sentences in (
        ("Rows that could not be used", outcome.left_out),
        ("Questions that the judges failed to answer", outcome.troubles),
    ):
        if sentences:
            parts.append(f"<p>{title} ({len(sentences)}):</p>{sentence_list(sentences[:200])}")
    return "".join(parts)


def _again(outcome: Outcome) -> str:
    command = f"<pre>{escape(outcome.command)}</pre>" if outcome.command else ""
    return (
        f"<h2>How to repeat this</h2>{command}"
        f'<p class="note">surepick {__version__}. With <code>--certificate FILE</code> the proof is written as '
        "data, and <code>surepick verify-certificate FILE</code> derives it again from its counts and predictions. "
        f"{escape(ARITHMETIC_ONLY)}</p>"
    )


def sentence_list(sentences: Sequence[str]) -> str:
    """Sentences as an escaped list."""
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def picture_in_page(name: str, draw: Callable[[Path], None]) -> str:
    """A figure as SVG inside the page."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.svg"
        draw(path)
        text = path.read_text(encoding="utf-8")
    return text[text.index("<svg") :]
