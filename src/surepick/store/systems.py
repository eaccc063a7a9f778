"""Studies of systems: the inputs of a test set, and what each system wrote for each of them.

Every question shows the outputs of two systems for one input that the session draws (docs/systems.md).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from surepick.store.schema import inputs, outputs


@dataclass(frozen=True)
class Input:
    """An input of a test set: what systems were given."""

    name: str
    text: str
    weight: float | None = None
    """How often it is drawn, relative to the others; None where all are equally likely."""


@dataclass(frozen=True)
class SystemOutputs:
    """All inputs, and what every system wrote for each of them, by system and input."""

    inputs: tuple[Input, ...]
    outputs: Mapping[tuple[str, str], str]


def keep(connection: sa.Connection, study: str, systems: Collection[str], given: SystemOutputs) -> None:
    """Store the inputs and outputs of a new study."""
    connection.execute(
        sa.insert(inputs),
        [
            {"study": study, "place": place, "name": one.name, "text": one.text, "weight": one.weight}
            for place, one in enumerate(given.inputs)
        ],
    )
    connection.execute(
        sa.insert(outputs),
        [
            {"study": study, "item": system, "input": one.name, "text": given.outputs[system, one.name]}
            for system in systems
            for one in given.inputs
        ],
    )


def inputs_of(connection: sa.Connection, study: str) -> list[Input]:
    """The inputs of a study in their order; none where it is not about systems."""
    wanted = sa.select(inputs).where(inputs.c.study == study).order_by(inputs.c.place)
    return [Input(row.name, row.text, row.weight) for row in connection.execute(wanted)]


def count(connection: sa.Connection, study: str) -> int:
    """How many inputs a study has."""
    return int(connection.execute(sa.select(sa.func.count()).where(inputs.c.study == study)).scalar_one())


def texts_shown(connection: sa.Connection, study: str, names: Sequence[str]) -> SystemOutputs:
    """These inputs and all outputs for them, to show in questions."""
    wanted = sa.select(inputs).where(inputs.c.study == study, inputs.c.name.in_(names))
    written = sa.select(outputs).where(outputs.c.study == study, outputs.c.input.in_(names))
    return SystemOutputs(
        tuple(Input(row.name, row.text, row.weight) for row in connection.execute(wanted)),
        {(row.item, row.input): row.text for row in connection.execute(written)},
    )
