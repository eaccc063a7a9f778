"""A Sphinx directive that lists every command with its arguments and options, from the help texts."""

import re
from typing import Any

import click
import typer.main
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from surepick.cli import app


class CliReference(SphinxDirective):
    """One section per command: description, usage and options."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        group: Any = typer.main.get_command(app)
        context = click.Context(group, info_name="surepick")
        return [self._section(name, command, context) for name, command in sorted(group.commands.items())]

    def _section(self, name: str, command: Any, parent: click.Context) -> nodes.Node:
        section = nodes.section(ids=[f"surepick-{name}"], names=[f"surepick {name}"])
        section += nodes.title(text=f"surepick {name}")
        section += _paragraph(command.help or "")
        usage = command.get_usage(click.Context(command, info_name=name, parent=parent)).removeprefix("Usage: ")
        section += nodes.literal_block(usage, usage, language="text")
        section += _options(command.params)
        return section


def _paragraph(text: str) -> nodes.paragraph:
    """A help text, with options and what stands in backticks as code."""
    parts = re.split(r"`([^`]+)`|(?<![\w-])(--[a-z][a-z-]*)", text)
    words = [nodes.Text(parts[0])]
    for quoted, option, rest in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        words += [nodes.literal(text=quoted or option), nodes.Text(rest)]
    return nodes.paragraph("", "", *words)


def _options(parameters: list[Any]) -> nodes.Node:
    listed = nodes.definition_list()
    for parameter in parameters:
        words = parameter.opts + parameter.secondary_opts if parameter.param_type_name == "option" else None
        term = nodes.term("", "", nodes.literal(text=", ".join(words or [parameter.name.upper()])))
        said = getattr(parameter, "help", "") or ""
        usual = (
            "" if parameter.default in (None, False, "") or callable(parameter.default) else f" [{parameter.default}]"
        )
        listed += nodes.definition_list_item("", term, nodes.definition("", _paragraph(said + usual)))
    return listed


def setup(site: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    site.add_directive("cli-reference", CliReference)
    return {"parallel_read_safe": True}
