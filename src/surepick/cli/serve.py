"""`surepick serve [URL]`: the live service."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def serve(
    url: Annotated[
        str, typer.Argument(help="Database: sqlite:///FILE or postgresql://USER@HOST/NAME.", envvar="SUREPICK_DATABASE")
    ] = "sqlite:///surepick.db",
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; any other than loopback requires a token, and TLS or --plain-http."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    token: Annotated[
        str,
        typer.Option(
            help="The admin's token; on loopback one is generated and printed if omitted.", envvar="SUREPICK_TOKEN"
        ),
    ] = "",
    public_url: Annotated[
        str,
        typer.Option(
            help="Where judges reach the service: the https address of the proxy in front.",
            envvar="SUREPICK_PUBLIC_URL",
        ),
    ] = "",
    plain_http: Annotated[
        bool,
        typer.Option("--plain-http", help="Allow other machines to connect without TLS.", envvar="SUREPICK_PLAIN_HTTP"),
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes that answer requests.", min=1, max=64)] = 1,
    items: Annotated[
        Path | None,
        typer.Option(help="Create a study of these items (CSV or Parquet) and print a link that anybody can join by."),
    ] = None,
    question: Annotated[str, typer.Option(help="What judges are asked about them: 'Which shoe would you buy?'.")] = "",
    images: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the pictures that the column image names, or that are called like the items; without "
            "--items every picture is an item."
        ),
    ] = None,
    assume: Annotated[
        Literal["winner", "features"] | None,
        typer.Option(
            help="The claim that ends this study: winner (one item wins its comparisons, the default) or features "
            "(these explain every answer). The other one is shown beside it.",
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Allowed probability of naming the wrong item; a larger one takes fewer judges.")
    ] = 0.05,
) -> None:
    """Run the service until interrupted: judges answer questions, the admin watches and reads the verdict."""
    from surepick.errors import InvalidInput, MissingExtra

    try:
        from surepick.service.first_study import FirstStudy
        from surepick.service.serve import run
    except ImportError as error:
        raise MissingExtra(f"The service needs {error.name}; install surepick[service].") from None
    if question and items is None and images is None:
        raise InvalidInput("--question needs something to ask about; give --items FILE or --images FOLDER.")
    first = FirstStudy(items, images, question, assume, delta) if items is not None or images is not None else None
    run(
        url,
        host=host,
        port=port,
        token=token,
        workers=workers,
        first=first,
        tell=typer.echo,
        public_url=public_url,
        plain_http=plain_http,
    )
