"""`surepick verify-certificate FILE`: derive a verdict again from its certificate."""

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.output import print_json


def verify_certificate(
    file: Annotated[Path, typer.Argument(help="A certificate as JSON, as Session.certificate() gives it.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prove a certificate's claim again, from the tallies alone; exit code 1 where it does not hold."""
    from surepick import certificate
    from surepick.errors import InvalidInput

    try:
        content = json_module.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read as JSON ({error}).") from None
    try:
        checked = certificate.verify_certificate(content)
    except certificate.CertificateRefused as refused:
        if json:
            print_json({"valid": False, "reason": str(refused)})
        else:
            typer.echo(f"Refused: {refused}")
        raise typer.Exit(1) from None
    if json:
        print_json(
            {
                "valid": True,
                "best": checked.best,
                "delta": checked.delta,
                "epsilon": checked.epsilon,
                "answers": checked.answers,
                "nats": dict(checked.nats),
            }
        )
    else:
        typer.echo(f"Valid: {checked}")
