"""`surepick study NAME`: simulated studies with tidy rows, a summary and figures."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from surepick.cli.output import print_json, print_table

Engine = Literal["local", "ray", "dask"]
Profile = Literal["small", "full"]


def study(
    name: Annotated[str, typer.Argument(help="Name of the study; `list` prints all names.")],
    runs: Annotated[int | None, typer.Option(help="Runs of every setting; each study has its own default.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same rows.")] = 0,
    dims: Annotated[str, typer.Option(help="Dimensions, comma-separated, e.g. 10,20.")] = "",
    policies: Annotated[str, typer.Option(help="Policies or methods, comma-separated.")] = "",
    items: Annotated[int | None, typer.Option(help="Number of items.")] = None,
    gap: Annotated[float | None, typer.Option(help="Gap between best and second, in log-odds.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Number of steps.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the UT-Zap50K files (zappos, insight) or of recorded votes (guess, benchmark)."),
    ] = None,
    profile: Annotated[Profile | None, typer.Option(help="How much of the benchmark; small by default.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    engine: Annotated[Engine, typer.Option(help="local processes, or a ray or dask cluster.")] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="Address of the cluster; without it, a cluster of --jobs processes is started here."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for rows, summary and figures.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a simulated study; an interrupted study resumes where it stopped."""
    from rich.console import Console
    from rich.progress import Progress

    from surepick import __version__
    from surepick.errors import InvalidInput
    from surepick_experiments.studies import MODULES, Options, find_study, run_study

    console = Console()
    if name == "list":
        for study_name in sorted(MODULES):
            console.print(f"[bold]{study_name}[/bold]  {find_study(study_name).about}")
        return
    chosen = find_study(name)
    try:
        numbers = tuple(int(word) for word in dims.split(",") if word)
    except ValueError:
        raise InvalidInput(f"--dims takes whole numbers separated by commas, got {dims!r}.") from None
    options = Options(
        runs=runs,
        seed=seed,
        dims=numbers or None,
        policies=tuple(word for word in policies.split(",") if word) or None,
        items=items,
        gap=gap,
        horizon=horizon,
        data=None if data is None else str(data.resolve()),
        profile=profile,
    )
    folder = out or Path("out") / name
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"study {name}")
        rows, summary = run_study(
            chosen,
            options,
            out=folder,
            jobs=jobs,
            engine=engine,
            address=address,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    figures = chosen.draw(rows, summary, folder)
    if json:
        print_json({"study": name, "version": __version__, "seed": seed, "runs": rows, "summary": summary})
        return
    for title, table in chosen.tables(summary):
        print_table(title, table)
    console.print(f"{len(rows):,} rows and summary.json in {folder}/; figures: {', '.join(p.name for p in figures)}.")
