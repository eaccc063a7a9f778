"""The command line: parse, call, render, translate errors. Commands import what they need when they run."""

import io
import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from surepick import __version__
from surepick.cli.ask import ask
from surepick.cli.design import design
from surepick.cli.find import find
from surepick.cli.interval import interval
from surepick.cli.limits import limits
from surepick.cli.rank import rank
from surepick.cli.serve import serve
from surepick.cli.verify import verify, verify_certificate
from surepick.errors import SurepickError

app = typer.Typer(
    name="surepick",
    help="Find the best item from yes/no or A-versus-B answers, and say how sure it is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(find)
app.command()(ask)
app.command()(design)
app.command()(interval)
app.command()(limits)
app.command()(rank)
app.command()(serve)
app.command()(verify)
app.command()(verify_certificate)
for command in entry_points(group="surepick.commands"):  # `study` and `bench`, where the experiments are installed
    app.command(command.name)(command.load())


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"surepick {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Keeps single commands addressable by name."""


def main() -> None:
    """Entry point: exit code 0 for success, 1 for a negative finding, 2 for input that cannot be used."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file or a pipe on Windows may have an old code page
            stream.reconfigure(errors="replace")
    try:
        app()
    except SurepickError as error:
        print(f"surepick: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("surepick: interrupted; finished work is kept.", file=sys.stderr)
        sys.exit(130)
