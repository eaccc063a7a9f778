"""Checks what people upload: items from JSON, CSV or Parquet, and pictures. Nothing is fetched, nothing unpacked."""

import base64
import binascii
import hashlib
import io
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from surepick.errors import InvalidInput
from surepick.io.items import DISPLAYED, read_items
from surepick.service.models import ItemIn, StudySettings
from surepick.service.settings import Settings
from surepick.store.studies import Image, Item, StudyOptions

CELL_BYTES = 100_000
"""Longest cell of an uploaded table."""

# The content decides what an image is, not its name or declared type: a file that a browser would take for a page or a
# script must not be served from this address. SVG is refused because it can hold scripts.
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": ("image/png", "png"),
    b"\xff\xd8\xff": ("image/jpeg", "jpg"),
    b"GIF87a": ("image/gif", "gif"),
    b"GIF89a": ("image/gif", "gif"),
}


def study_options(given: StudySettings) -> StudyOptions:
    """The settings as the store takes them: a policy by name, with delta, epsilon and budget among its options."""
    policy: dict[str, Any] = {"delta": given.delta, "epsilon": given.epsilon, **given.options}
    if given.policy is not None:
        policy["name"] = given.policy
    if given.budget is not None:
        policy["budget"] = given.budget
    return StudyOptions(given.title, given.kind, policy, given.assume, given.repeats, given.lease, given.seed)


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


def items_from_table(filename: str, content: bytes, limits: Settings) -> tuple[list[ItemIn], tuple[str, ...]]:
    """Items of a CSV or Parquet file, and in sentences how its columns became features; see `surepick.io.items`.

    A row that cannot be used is refused, not left out: whoever uploads the file can correct it.
    """
    name = Path(filename).name
    suffix = Path(filename).suffix.lower()
    if content[:4] == b"PAR1":  # what the file is, whatever its name says
        suffix = ".parquet"
        _refuse_large_parquet(content, limits)
    elif suffix in (".parquet", ".pq"):
        raise InvalidInput(f"{name!r} is not a Parquet file; its first bytes are {content[:4]!r}.")
    elif content[:2] == b"PK" or b"\x00" in content[:1000]:
        raise InvalidInput(f"{name!r} is neither CSV nor Parquet; export the table as one of them.")
    else:
        suffix = ".csv"
        rows = max(content.count(b"\n"), content.count(b"\r"))  # some programs end lines with CR alone
        if rows > limits.items + 1:
            raise InvalidInput(f"A study may have at most {limits.items:,} items, the file has {rows:,} lines.")
        columns = re.split(rb"[\r\n]", content, maxsplit=1)[0].count(b",") + 1
        if columns > limits.features + len(DISPLAYED) + 1:
            raise InvalidInput(
                f"An item may have at most {limits.features:,} features, the file has {columns:,} columns."
            )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"items{suffix}"
        path.write_bytes(content)
        try:
            table = read_items(path)
        except InvalidInput as error:  # messages name the file as the user does
            raise InvalidInput(str(error).replace(str(path), name)) from None
    if table.left_out:
        raise InvalidInput(table.left_out[0].replace(str(path), name))
    if table.features.shape[1] > limits.features:
        raise InvalidInput(f"An item may have at most {limits.features:,} features, got {table.features.shape[1]:,}.")
    result = []
    for row, item in enumerate(table.names):
        shown = {column: cells[row] for column, cells in table.shown.items()}
        try:
            result.append(ItemIn(name=item, features=table.features[row].tolist(), **shown))
        except ValidationError as error:
            first = error.errors()[0]
            raise InvalidInput(f"{name}, item {item!r}: {first['loc'][0]} cannot be used ({first['msg']}).") from None
    return result, table.steps


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
