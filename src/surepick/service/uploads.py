"""Checks what people upload: items from JSON, CSV or Parquet, and pictures. Nothing is fetched, nothing unpacked."""

import base64
import binascii
import hashlib
import io
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from surepick.errors import BadRows, InvalidInput
from surepick.identify import Problem
from surepick.io.items import DISPLAYED, Preparation, read_items
from surepick.io.systems import read_systems
from surepick.io.tables import JSON_LINES, SEPARATORS, read_table
from surepick.service.models import ItemIn, JudgeIn, Name, StudySettings, Text
from surepick.service.settings import Settings
from surepick.store.studies import Image, Item, StudyOptions
from surepick.store.systems import Input, SystemOutputs

CELL_BYTES = 100_000
"""Longest cell of an uploaded table."""

MOST_SENTENCES = 20
"""Rows of an upload that are reported one by one as left out."""

_NAME: TypeAdapter[str] = TypeAdapter(Name)
_LONG_TEXT: TypeAdapter[str] = TypeAdapter(Annotated[Text, Field(max_length=CELL_BYTES)])

MOST_INVITED = 1_000
"""Judges invited by one file."""

# The content decides what an image is, not its name or declared type: a file that a browser would take for a page or a
# script must not be served from this address. SVG is refused because it can hold scripts.
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": ("image/png", "png"),
    b"\xff\xd8\xff": ("image/jpeg", "jpg"),
    b"GIF87a": ("image/gif", "gif"),
    b"GIF89a": ("image/gif", "gif"),
}


_SAME = ("title", "kind", "assume", "repeats", "lease", "seed", "show", "answer", "instructions")
"""Settings that the store takes as they are."""


def study_options(given: StudySettings, *, systems: bool = False) -> StudyOptions:
    """The settings as the store takes them: a policy by name, with delta, epsilon and budget among its options."""
    policy: dict[str, Any] = {"delta": given.delta, "epsilon": given.epsilon, **given.options}
    if given.policy is not None:
        policy["name"] = given.policy
    if given.budget is not None:
        policy["budget"] = given.budget
    chosen = {name: getattr(given, name) for name in _SAME}
    return StudyOptions(
        policy=policy,
        blind=systems if given.blind is None else given.blind,
        population=tuple(given.population),
        **chosen,
    )


def items_from_json(
    given: Sequence[ItemIn], limits: Settings, files: Mapping[str, bytes] | None = None
) -> tuple[list[Item], list[Image]]:
    """Items and their pictures; an item's image is a data URI or the name of one of the files."""
    if len(given) > limits.items:
        raise InvalidInput(f"A study may have at most {limits.items:,} items, got {len(given):,}.")
    items, images = [], {}
    for one in given:
        if one.features is not None and len(one.features) > limits.features:
            raise InvalidInput(f"An item may have at most {limits.features:,} features, got {len(one.features):,}.")
        picture = _picture(one.image, limits, files or {})
        if picture is not None:
            images[picture.name] = picture
        items.append(
            Item(
                one.name,
                one.label,
                one.text,
                one.colour,
                "" if picture is None else picture.name,
                None if one.features is None else tuple(one.features),
            )
        )
    name, times = Counter(item.name for item in items).most_common(1)[0] if items else ("", 1)
    if times > 1:
        raise InvalidInput(f"Names of items must differ, got {name!r} more than once; rename one of them.")
    return items, list(images.values())


def items_from_table(filename: str, content: bytes, limits: Settings) -> tuple[list[ItemIn], Preparation]:
    """Items of a CSV or Parquet file, and what was done to them; see `surepick.io.items`.

    A row that cannot be used is refused, not left out: whoever uploads the file can correct it.
    """
    name = Path(filename).name
    suffix = Path(filename).suffix.lower()
    if content[:4] == b"PAR1":  # what the file is, whatever its name says
        suffix = ".parquet"
        _refuse_large_parquet(content, limits)
    elif suffix in (".parquet", ".pq"):
        raise InvalidInput(f"{name!r} is not a Parquet file; its first bytes are {content[:4]!r}.")
    elif content[:2] == b"PK" or (b"\x00" in content[:1000] and content[:2] not in (b"\xff\xfe", b"\xfe\xff")):
        raise InvalidInput(f"{name!r} is neither CSV nor Parquet; export the table as one of them.")
    else:
        suffix = ".csv"
        rows = max(content.count(b"\n"), content.count(b"\r"))  # some programs end lines with CR alone
        if rows > limits.items + 1:
            raise InvalidInput(f"A study may have at most {limits.items:,} items, the file has {rows:,} lines.")
        first = re.split(rb"[\r\n]", content, maxsplit=1)[0]
        columns = max(first.count(separator.encode()) for separator in SEPARATORS) + 1
        if columns > limits.features + len(DISPLAYED) + 1:
            raise InvalidInput(
                f"An item may have at most {limits.features:,} features, the file has {columns:,} columns."
            )
    with _as_file(name, suffix, content) as path:
        table = read_items(path)
    if not table.bare and table.features.shape[1] > limits.features:
        raise InvalidInput(f"An item may have at most {limits.features:,} features, got {table.features.shape[1]:,}.")
    result = []
    for row, item in enumerate(table.names):
        shown = {column: cells[row] for column, cells in table.shown.items()}
        try:
            features = None if table.bare else table.features[row].tolist()
            result.append(ItemIn(name=item, features=features, **shown))
        except ValidationError as error:
            first = error.errors()[0]
            raise InvalidInput(f"{name}, item {item!r}: {first['loc'][0]} cannot be used ({first['msg']}).") from None
    return result, table.prepared(table.problem())


def preparation(items: Sequence[Item], problem: Problem) -> Preparation:
    """What was done to items that were given one by one: those with equal features are one item to every question."""
    return Preparation(len(items), merged=tuple(names for names in problem.aliases if len(names) > 1))


def systems_from_tables(
    outputs: tuple[str, bytes], inputs: tuple[str, bytes] | None, limits: Settings
) -> tuple[list[Item], SystemOutputs, Preparation]:
    """Systems, their outputs for all inputs, and what was done to the tables; see `surepick.io.systems`.

    Each table is a file's name and content, CSV or JSON lines.
    """
    with ExitStack() as files:
        paths = [
            None if given is None else files.enter_context(_as_file(Path(given[0]).name, _text_suffix(given), given[1]))
            for given in (outputs, inputs)
        ]
        table = read_systems(*paths)
        left_out = [
            sentence.replace(str(path), Path(given[0]).name)
            for sentence in table.left_out
            for path, given in zip(paths, (outputs, inputs), strict=True)
            if given and str(path) in sentence
        ]
    for what, count in (("systems", len(table.names)), ("inputs", len(table.inputs))):
        if count > limits.items:
            raise InvalidInput(f"A study may have at most {limits.items:,} {what}, got {count:,}.")
    try:
        items = [Item(_NAME.validate_python(name)) for name in table.names]
        weights = [None] * len(table.inputs) if table.weights is None else table.weights.tolist()
        given_inputs = tuple(
            Input(_NAME.validate_python(name), _LONG_TEXT.validate_python(table.text(name)), weight)
            for name, weight in zip(table.inputs, weights, strict=True)
        )
        texts = {
            (system, name): _LONG_TEXT.validate_python(table.output(system, name))
            for system in table.names
            for name in table.inputs
        }
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(f"{repr(first['input'])[:60]} cannot be used ({first['msg']}).") from None
    more = len(left_out) - MOST_SENTENCES
    said = (*left_out[:MOST_SENTENCES], *((f"{more:,} more were left out.",) if more > 0 else ()))
    return items, SystemOutputs(given_inputs, texts), Preparation(len(items), table.steps, said)


def _text_suffix(given: tuple[str, bytes]) -> str:
    name, content = given
    if content[:4] == b"PAR1" or content[:2] == b"PK" or b"\x00" in content[:1000]:
        raise InvalidInput(f"{Path(name).name!r} is neither CSV nor JSON lines; export the table as one of them.")
    return ".jsonl" if Path(name).suffix.lower() in JSON_LINES else ".csv"


def judges_from_table(filename: str, content: bytes) -> list[str]:
    """The names of judges to invite, from the column `name` of a CSV file."""
    with _as_file(Path(filename).name, ".csv", content) as path:
        table = read_table(path)
        names = table.text("name")
        if len(names) > MOST_INVITED:
            raise InvalidInput(f"At most {MOST_INVITED:,} judges can be invited at once, got {len(names):,}.")
        for row, given in enumerate(names):
            try:
                JudgeIn(name=given)
            except ValidationError as error:
                raise table.refusal(row, f"the name cannot be used ({error.errors()[0]['msg']})") from None
    return names


@contextmanager
def _as_file(name: str, suffix: str, content: bytes) -> Iterator[Path]:
    """The content as a file that readers of tables take; their messages name it as the user does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{suffix}"
        path.write_bytes(content)
        try:
            yield path
        except InvalidInput as error:
            said = f"{error.said} Correct the file." if isinstance(error, BadRows) else str(error)
            raise InvalidInput(said.replace(str(path), name)) from None


def _refuse_large_parquet(content: bytes, limits: Settings) -> None:
    """Refuse what would be large when read: few bytes can stand for many rows, or for one long text many times."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    most = 4 * limits.upload_bytes
    try:
        # From the cheapest check to the dearest: the footer first, then text columns as dictionaries, which hold a
        # repeated text once. Only what passes is read as a table.
        meta = pq.read_metadata(io.BytesIO(content))
        schema = pq.read_schema(io.BytesIO(content))
        groups = [meta.row_group(number) for number in range(meta.num_row_groups)]
        large = sum(
            group.column(column).total_uncompressed_size for group in groups for column in range(meta.num_columns)
        )
        if meta.num_rows > limits.items or meta.num_columns > limits.features + len(DISPLAYED) + 1:
            raise InvalidInput(
                f"A table of items may have {limits.items:,} rows and {limits.features:,} features, this one has "
                f"{meta.num_rows:,} rows and {meta.num_columns:,} columns."
            )
        if large > most:
            raise InvalidInput(f"The file unpacks to {large:,} bytes, {most:,} are allowed.")
        simple = (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_integer,
            pa.types.is_floating,
            pa.types.is_boolean,
            pa.types.is_null,
        )
        for field in schema:
            if not any(test(field.type) for test in simple):
                raise InvalidInput(f"Column {field.name!r} must hold text or numbers, got {field.type}.")
        texts = [
            field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        kept = pq.read_table(io.BytesIO(content), columns=texts, read_dictionary=texts)
        written_out = 0
        for name in texts:
            for chunk in kept.column(name).chunks:
                lengths = pc.take(pc.binary_length(chunk.dictionary), chunk.indices)
                if (pc.max(lengths).as_py() or 0) > CELL_BYTES:
                    raise InvalidInput(f"Column {name!r} has a cell of more than {CELL_BYTES:,} bytes.")
                written_out += pc.sum(lengths).as_py() or 0
        # A text that is stored once and used in every row is small in the file and large in the table.
        if written_out > most:
            raise InvalidInput(f"The texts of the table have {written_out:,} bytes, {most:,} are allowed.")
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"This is not a Parquet file that can be read ({error}).") from None


def _picture(given: str, limits: Settings, files: Mapping[str, bytes]) -> Image | None:
    if not given:
        return None
    if given in files:
        content = files[given]
    elif given.startswith("data:"):
        _, _, coded = given.partition(";base64,")
        try:
            content = base64.b64decode(coded, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput("An image must be data:image/…;base64,… with valid base64.") from None
    else:
        raise InvalidInput(
            f"An image must be a data: URI or the name of an uploaded file, got {given[:60]!r}; nothing is fetched "
            "from elsewhere."
        )
    if len(content) > limits.image_bytes:
        raise InvalidInput(f"An image may have at most {limits.image_bytes:,} bytes, got {len(content):,}.")
    known = [kind for signature, kind in _SIGNATURES.items() if content.startswith(signature)]
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        known = [("image/webp", "webp")]
    if not known:
        raise InvalidInput(f"An image must be PNG, JPEG, GIF or WebP; this one begins with {content[:8]!r}.")
    media_type, ending = known[0]
    # Named by its content: the same picture is stored once, and its address cannot be guessed.
    return Image(f"{hashlib.sha256(content).hexdigest()[:24]}.{ending}", media_type, content)
