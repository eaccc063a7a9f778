"""Write docs/openapi.json: the description of the service's API, as the service itself has it at /openapi.json."""

import json
import tempfile
from pathlib import Path

from surepick.service.app import create_app
from surepick.service.settings import Settings

TARGET = Path(__file__).parent / "openapi.json"


def described() -> str:
    """The document as text, the same on every machine."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(database=f"sqlite:///{folder}/studies.db"))
        text = json.dumps(app.openapi(), indent=1, sort_keys=True) + "\n"
        app.state.service.group_commit.close()
        app.state.service.database.close()
    return text


if __name__ == "__main__":
    TARGET.write_text(described(), encoding="utf-8")
