"""`surepick verify URL`, `verify LOG` and `verify-certificate FILE`: check what is claimed by deriving it again."""

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.output import print_json


def verify(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL|LOG", help="Database of a service, such as sqlite:///surepick.db, or the log of a search."
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a service's studies and streams against their logs, or the links of one log. Exit code 1 if one is wrong.

    A log is the file of find --state.
    """
    if "://" in url:
        _verify_database(url, json=json)
    else:
        _verify_log(Path(url), json=json)


def _verify_database(url: str, *, json: bool) -> None:
    """Replay every study and stream, and compare."""
    from dataclasses import asdict

    from surepick.certificate import ORDER_ONLY
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
                f"{report.waiting} waiting, verdict {report.verdict}, {report.chain}"
            )
            for sentence in report.wrong:
                typer.echo(f"  {sentence}")
        wrong = sum(bool(report.wrong) for report in reports)
        typer.echo(f"{len(reports)} studies and streams, {wrong} of them wrong.")
        typer.echo(ORDER_ONLY)
    if any(report.wrong for report in reports):
        raise typer.Exit(1)


def _verify_log(path: Path, *, json: bool) -> None:
    """Replay a log, and compute its links again."""
    from surepick.certificate import ORDER_ONLY
    from surepick.errors import InvalidInput
    from surepick.session import Session
    from surepick.session.journal import read_journal

    try:
        session = Session.replay(read_journal(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as a log ({error}).") from None
    chain = session.chain
    verdict = "open" if session.final is None else str(session.final.status)
    if json:
        last = chain.links[-1] if chain.state == "chained" else None
        print_json(
            {
                "valid": chain.broken is None,
                "events": len(session.log),
                "answers": session.answered,
                "verdict": verdict,
                "chain": chain.state,
                "link": last,
                "limits": ORDER_ONLY,
            }
        )
    else:
        state = "ok" if chain.broken is None else "WRONG"
        typer.echo(f"{state}: {len(session.log):,} events, {session.answered:,} answers, verdict {verdict}")
        typer.echo(f"{chain}\n{ORDER_ONLY}")
    if chain.broken is not None:
        raise typer.Exit(1)


def verify_certificate(
    file: Annotated[Path, typer.Argument(help="A certificate as JSON, as Session.certificate() gives it.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a certificate by proving its claim again from its counts and predictions. Exit code 1 if it does not hold.

    It says what the claim assumes. A certificate does not show whether the predictions were made before the answers,
    except to those who kept one of its links.
    """
    from surepick import certificate
    from surepick.errors import InvalidInput

    try:
        content = json_module.loads(file.read_text(encoding="utf-8"))
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
                "claim": checked.claim,
                "assumed": checked.assumed,
                "best": checked.best,
                "delta": checked.delta,
                "epsilon": checked.epsilon,
                "answers": checked.answers,
                "nats": dict(checked.nats),
                "link": checked.link,
                "limits": certificate.ARITHMETIC_ONLY,
            }
        )
    else:
        typer.echo(f"Valid: {checked}")
        typer.echo(certificate.ARITHMETIC_ONLY)
        typer.echo(checked.chained if checked.link is None else f"{checked.chained} {certificate.ORDER_ONLY}")
