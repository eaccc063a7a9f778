"""The public names: imported when used, the same for readers of the source as for programs."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import surepick

SOURCES = Path(surepick.__file__).parent
TRANSLATED = {
    "validate.py": {"TypeError"},  # caught below, as what NumPy raises for the same reason
    "io/exports.py": {"ValueError"},  # caught where the file is read, which knows the line
    "io/items.py": {"ValueError"},  # the same for int()
    "service/models.py": {"ValueError"},  # what pydantic asks of a validator
    "design/interior_point.py": {"LinAlgError"},  # a start that does not span; its callers see to it
    "identify/simulation.py": {"AssertionError"},  # a policy that breaks its contract
    "testing.py": {"AssertionError"},  # the same, told by pytest
    "__init__.py": {"AttributeError"},  # what Python asks of a module
    "session/columns.py": {"KeyError"},  # what Python asks of a mapping
    "session/repeats.py": {"KeyError"},  # the same
    "store/log.py": {"SessionBroken"},  # caught by the planner, which replays the log
    "store/planner.py": {"Overtaken"},  # caught by the round that it ends
}
"""Exceptions raised for somebody else to catch, never for users."""
EDGES = {"HTTPException", "Exit", "SystemExit"}
"""How web servers and command lines end a request."""


def imports_shown_to_type_checkers() -> dict[str, str]:
    """Public name and the module it is imported from, as the source says."""
    source = ast.parse(Path(surepick.__file__).read_text(encoding="utf-8"))
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


def descendants(root: type) -> set[str]:
    return {root.__name__}.union(*map(descendants, root.__subclasses__()))


def test_whatever_is_raised_to_users_has_one_root():
    for name in ("surepick.client", "surepick.judges.program", "surepick.store", "surepick_experiments.studies.engine"):
        import_module(name)  # where subclasses live that `import surepick` does not know
    ours = descendants(surepick.SurepickError)
    for path in SOURCES.rglob("*.py"):
        place = path.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None:
                called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                name = called.attr if isinstance(called, ast.Attribute) else called.id
                is_class = name[0].isupper()  # others are variables, functions, and private classes caught nearby
                assert not is_class or name in ours | EDGES | TRANSLATED.get(place, set()), f"{place} raises {name}"
