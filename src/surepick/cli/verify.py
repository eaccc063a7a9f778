"""`surepick verify URL` and `surepick verify-certificate FILE`: check what is claimed by deriving it again."""

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.output import print_json


def verify(
    url: Annotated[str, typer.Argument(help="Database of a service, such as sqlite:///surepick.db.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a service's studies and streams against their logs. Exit code 1 if one is wrong."""
    from dataclasses import asdict

    from surepick.errors import MissingExtra

    try:
        from surepick.store import open_database
        from surepick.store.verify import verify as verify_all
    except ImportError as error:
        raise MissingExtra(f"This needs {error.name}; install surepick[service].") from None

    database = open_database(url)
    reports = verify_all(database)
    database.close()
    if json:
        print_json(
            {"valid": not any(report.wrong for report in reports), "studies": [asdict(report) for report in reports]}
        )
    else:
        for report in reports:
            state = "ok" if not report.wrong else "WRONG"
            typer.echo(
                f"{state}: {report.study} {report.title!r}, {report.events:,} events, {report.answers:,} answers, "
                f"{report.waiting} waiting, verdict {report.verdict}"
            )
            for sentence in report.wrong:
                typer.echo(f"  {sentence}")
        wrong = sum(bool(report.wrong) for report in reports)
        typer.echo(f"{len(reports)} studies and streams, {wrong} of them wrong.")
    if any(report.wrong for report in reports):
        raise typer.Exit(1)


def verify_certificate(
    file: Annotated[Path, typer.Argument(help="A certificate as JSON, as Session.certificate() gives it.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a certificate by proving its claim again from its counts and predictions. Exit code 1 if it does not hold.

    It cannot be seen from a certificate whether the predictions were made before the answers.
    """
    from surepick import certificate
    from surepick.errors import InvalidInput

    try:
        content = json_module.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as error:
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
                "limits": certificate.ARITHMETIC_ONLY,
            }
        )
    else:
        typer.echo(f"Valid: {checked}")
        typer.echo(certificate.ARITHMETIC_ONLY)
