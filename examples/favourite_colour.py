"""The demonstration of `make demo`: a simulated person's favourite among sixty colours, found by asking A or B."""

import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from surepick.io.items import read_items

HERE = Path(__file__).parent
COMMAND = ["find", "examples/colours.csv", "--simulate", "--seed", "8", "--compare"]
COMMAND += ["--report", "out/demo.html", "--certificate", "out/demo.certificate.json"]


def main() -> None:
    """Say what will happen, run the command anybody could type, and say what happened."""
    console = Console()
    items = read_items(HERE / "colours.csv")
    console.print()
    console.print("[bold]Somebody has a favourite among these 60 colours.[/bold] Which one?")
    console.print(Text("").join(Text("  ", style=f"on {items.colour(name)}") for name in items.names))
    console.print(
        "We may only show two of them and ask: this one or that one? People waver, so the same question may get "
        "another answer tomorrow. surepick chooses what to ask, learns from every answer, and stops as soon as it can "
        "prove which colour is the favourite, with at most 5% risk of being wrong. The person here is simulated; "
        "nobody tells surepick the taste.\n"
    )
    program = Path(sys.executable).with_name("surepick")
    console.print(Text(f"$ surepick {' '.join(COMMAND)}", style="dim"))
    subprocess.run([program, *COMMAND], cwd=HERE.parent, check=True)
    console.print()
    console.print(
        "[bold]Read on[/bold]: open out/demo.html: how the evidence grew, where all colours stand, what was asked."
    )
    console.print("[bold]Check it[/bold]: .venv/bin/surepick verify-certificate out/demo.certificate.json")
    console.print(
        "[bold]Your turn[/bold]: .venv/bin/surepick ask examples/colours.csv   (you answer; stop at any time)"
    )


if __name__ == "__main__":
    main()
