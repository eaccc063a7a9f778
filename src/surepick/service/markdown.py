"""Texts of items, inputs and instructions as safe HTML.

Markdown is rendered with raw HTML switched off, so tags in a text are shown as text. The result has only elements that
Markdown itself makes; links lead to web and mail addresses only, and nothing is loaded from anywhere.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

KEPT = 2_000
"""Rendered texts kept in memory."""


class _Renderer(RendererHTML):
    """HTML in which a link opens a page of its own, so that nobody loses the question they were reading."""

    def link_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """The tag that begins a link."""
        tokens[place].attrSet("target", "_blank")
        tokens[place].attrSet("rel", "noopener noreferrer")
        return self.renderToken(tokens, place, options, env)


def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    made.enable(["table", "strikethrough"])
    made.disable(["image", "html_block", "html_inline"])
    made.validateLink = _is_harmless  # type: ignore[method-assign]  # this is how the library is configured
    return made


def _is_harmless(url: str) -> bool:
    return url.lower().startswith(("http://", "https://", "mailto:"))


_PARSER = _parser()


@lru_cache(maxsize=KEPT)
def render(text: str) -> str:
    """Markdown as HTML; line breaks stay line breaks. Takes about a millisecond for a page of text."""
    return str(_PARSER.render(text)).strip() if text else ""
