"""A Sphinx extension: formulas as MathML, which browsers show without a script and without a connection."""

import re
import unicodedata
from contextlib import suppress
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

FUNCTIONS = re.compile(r"(<mi>(?:log|ln|exp|cos|sin|tanh|coth|sinh|max|min)</mi>)(?=<m[in])")
"""The name of a function directly before its argument, from which a thin space must keep it."""

LETTER = re.compile(r'<mi mathvariant="(double-struck|script)">([A-Z])</mi>')
"""A letter in an alphabet that browsers take from Unicode, not from the attribute."""

ALPHABETS = {"double-struck": "DOUBLE-STRUCK", "script": "SCRIPT"}


LONG = 30
"""Characters of LaTeX from which a formula in a line may be wider than a phone; it then scrolls (formulas.css)."""


def _inline(self: Any, node: nodes.math) -> None:
    text = node.astext()
    formula = _mathml(text, "inline")
    self.body.append(f'<span class="long-formula">{formula}</span>' if len(text) >= LONG else formula)
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    text = re.sub(r"\\tag\{([^}]*)\}", r"\\qquad(\1)", node.astext())
    if "\\\\" in text and r"\begin" not in text:  # lines without an environment, as Sphinx allows them
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    self.body.append(f'<div class="math-block">{_mathml(text, "block")}</div>')
    raise nodes.SkipNode


def _mathml(text: str, display: str) -> str:
    lettered = LETTER.sub(
        lambda match: f'<mi mathvariant="normal">{_letter(*match.groups())}</mi>', convert(text, display=display)
    )
    return FUNCTIONS.sub(r'\1<mspace width="0.17em"/>', lettered)


def _letter(alphabet: str, letter: str) -> str:
    """A capital of another alphabet. The oldest of them, such as ℝ, have names of their own."""
    kind = ALPHABETS[alphabet]
    for name in (f"{kind} CAPITAL {letter}", f"MATHEMATICAL {kind} CAPITAL {letter}"):
        with suppress(KeyError):
            return unicodedata.lookup(name)
    return letter


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
