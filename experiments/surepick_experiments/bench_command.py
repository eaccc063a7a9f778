"""`surepick bench NAME`: speed side by side with what a user would pick instead, in one run, as ratios."""

from typing import Annotated

import typer

from surepick.cli.output import print_json, print_table


def bench(
    name: Annotated[str, typer.Argument(help="Which bench; `list` names them all.")],
    quick: Annotated[bool, typer.Option("--quick", help="Small cases only.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure speed against rivals in the same run."""
    from rich.console import Console

    from surepick.errors import InvalidInput
    from surepick_experiments.benches import BENCHES

    if name == "list":
        for bench_name in sorted(BENCHES):
            print(bench_name)
        return
    if name not in BENCHES:
        raise InvalidInput(f"There is no bench {name!r}; there are {', '.join(sorted(BENCHES))}.")
    with Console(stderr=True).status(f"bench {name}") as status:
        rows = BENCHES[name](quick=quick, progress=lambda text: status.update(f"bench {name}: {text}"))
    if json:
        print_json({"bench": name, "rows": rows})
    else:
        main = ("case", "ours_seconds", "peer", "peer_seconds", "ratio")
        shown = [{field: row.get(field) for field in main} for row in rows]
        print_table(f"bench {name} (ratio: our seconds over the peer's; --json has more)", shown)
