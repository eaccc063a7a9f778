"""Run the notebooks of the examples and keep their outputs: `make notebooks`."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"


def main() -> None:
    """Every notebook, in the folder of its files."""
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times of this run
        notebook.metadata["language_info"] = {"name": "python"}  # not the version of this machine
        nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    main()
