"""The program behind `make demo`: find a simulated person's favourite of sixty colours by asking A or B."""

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
    """Explain the task, run the command, and say what to do next."""
    console = Console()
    items = read_items(HERE / "colours.csv")
    console.print()
    console.print("[bold]A person has a favourite among these 60 colours.[/bold] Which one is it?")
    console.print(Text("").join(Text("  ", style=f"on {items.colour(name)}") for name in items.names))
    console.print(
        "We may only show two colours at a time and ask: this one or that one? People are not consistent, so the same "
        "question may get a different answer next time. surepick chooses the questions, learns from every answer, and "
        "stops as soon as it can prove which colour is the favourite, with a risk of error of at most 5%. The person "
        "is simulated; surepick does not know their taste.\n"
    )
    program = Path(sys.executable).with_name("surepick")
    console.print(Text(f"$ surepick {' '.join(COMMAND)}", style="dim"))
    subprocess.run([program, *COMMAND], cwd=HERE.parent, check=True)
    console.print()
    console.print("The report shows the evidence over time, the scores of all colours and the questions.")
    console.print(
        "[bold]Verify the certificate[/bold]: .venv/bin/surepick verify-certificate out/demo.certificate.json"
    )
    console.print("[bold]Try it yourself[/bold]: .venv/bin/surepick ask examples/colours.csv   (stop at any time)")


if __name__ == "__main__":
    main()
