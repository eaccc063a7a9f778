"""Lines that are packed are the same lines, however they are read."""

import tracemalloc

import pytest

from surepick.identify.packed_lines import BLOCK, PackedLines


def packed(lines: list[str]) -> PackedLines:
    result = PackedLines()
    for line in lines:
        result.append(line)
    return result


LINES = [f"{number} " + "é" * (number % 700) for number in range(0, 1000, 5)]


def test_packed_lines_are_a_sequence() -> None:
    lines = packed(LINES)
    assert sum(map(len, LINES)) > 3 * BLOCK
    assert len(lines) == len(LINES)
    assert list(lines) == LINES
    assert [lines[place] for place in (0, 1, 99, 199, -1, -200)] == [
        LINES[place] for place in (0, 1, 99, 199, -1, -200)
    ]
    for part in (slice(3, 9), slice(40, 160), slice(-5, None), slice(None, 4), slice(None, None, 30), slice(9, 3)):
        assert lines[part] == LINES[part]
    assert list(lines.since(150)) == LINES[150:]
    assert list(lines.since(200)) == []
    with pytest.raises(IndexError):
        lines[200]


@pytest.mark.parametrize("count", [0, 1, 77, 150, 199, 200])
def test_copies_go_on_in_their_own_way(count: int) -> None:
    lines = packed(LINES)
    copy = lines.copy(count)
    for _ in range(300):
        copy.append("x" * 100)
    assert list(copy) == [*LINES[:count], *["x" * 100] * 300]
    assert list(lines) == LINES


def test_a_reader_sees_what_there_was_when_it_began() -> None:
    lines = packed(LINES[:20])
    reading = lines.since(0)
    first = next(reading)
    for line in LINES[20:]:
        lines.append(line)  # packs what was not packed when the reader began
    assert [first, *reading][:20] == LINES[:20]


def test_packed_lines_take_a_fraction_of_their_length() -> None:
    tracemalloc.start()
    try:
        lines = packed([f'{{"event": "answer", "id": {number}, "judge": "ann"}}' for number in range(20_000)])
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 0.2 * sum(map(len, lines))
