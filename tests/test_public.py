"""The public names: imported when used, the same for readers of the source as for programs."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import surepick


def imports_shown_to_type_checkers() -> dict[str, str]:
    """Public name and the module it is imported from, as the source says."""
    source = ast.parse(Path(surepick.__file__).read_text())
    (block,) = (part for part in source.body if isinstance(part, ast.If))
    return {alias.name: part.module for part in block.body for alias in part.names}


@pytest.mark.parametrize("entrance", ["surepick", "surepick.cli"])
def test_the_door_opens_without_waiting_for_numerics(entrance):
    loaded = f"import sys, {entrance}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    modules = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()
    assert entrance.partition(".")[0] in modules
    assert not {"numpy", "scipy", "joblib", "threadpoolctl", "rich"} & set(modules)


def test_every_public_name_is_what_its_module_has():
    shown = imports_shown_to_type_checkers()
    assert sorted(shown) == sorted(surepick.__all__)
    for name, module in shown.items():
        home = import_module(f"surepick.{name}" if module == "surepick" else module)
        assert getattr(surepick, name) is (home if module == "surepick" else getattr(home, name))


def test_public_names_can_be_listed_and_others_do_not_exist():
    assert set(surepick.__all__) < set(dir(surepick))
    with pytest.raises(AttributeError, match="no attribute 'Taly'"):
        _ = surepick.Taly
