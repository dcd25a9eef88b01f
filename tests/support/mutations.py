"""Random damage to files, and the parameters of tests of it."""

import os
import random
import re

import pytest

FIRST_SEED = int(os.environ.get("HYBRIDSIM_FIRST_SEED", "0"))
"""First seed; another one makes another campaign."""
NUMBERS = (b"nan", b"inf", b"-1", b"0", b"1e400", b"1e30", b"1e-320", b"9" * 400, b"0x10", b"1_0", b"", b"1,5")
NUMBERS = (*NUMBERS, "١٢".encode())
"""Replacements of numbers."""
BYTES = (b"\0", b"\xff", b"\x1b[2J", b"\r", b"<", b">", b'"', b"[", b"{", b"=", b",", b"\n", "\u202e".encode())
"""Inserted bytes."""


def mutate(data: bytes, rng: random.Random) -> bytes:
    """A copy with one to three pieces of damage; most of them leave the syntax of text intact."""
    gentle = (_replace_number, _replace_word, _remove_line, _exchange_lines)
    rough = (_flip, _truncate, _remove, _duplicate, _exchange, _insert)
    for _ in range(rng.randint(1, 3)):
        data = rng.choice(gentle if rng.random() < 0.8 else rough)(data, rng)
    return data


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(start + rng.choice((1, 2, 8, 64, 512)), len(data))


def _flip(data: bytes, rng: random.Random) -> bytes:
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 10)) if data else 0):
        result[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(result)


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _remove(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def _duplicate(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 3, 50)) + data[end:]


def _exchange(data: bytes, rng: random.Random) -> bytes:
    (a, b), (c, d) = sorted((_span(data, rng), _span(data, rng)))
    return data if b > c else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _insert(data: bytes, rng: random.Random) -> bytes:
    start, _ = _span(data, rng)
    return data[:start] + rng.choice((*BYTES, rng.randbytes(8))) + data[start:]


def _replace_word(data: bytes, rng: random.Random) -> bytes:
    words = list(re.finditer(rb"[A-Za-z_][A-Za-z_0-9]*", data))
    if not words:
        return data
    old, new = rng.choice(words), rng.choice(words)
    return data[: old.start()] + new.group() + data[old.end() :]


def _remove_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def _exchange_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def _replace_number(data: bytes, rng: random.Random) -> bytes:
    digits = [k for k, byte in enumerate(data) if 48 <= byte <= 57]
    if not digits:
        return data
    start = end = rng.choice(digits)
    while end < len(data) and data[end : end + 1] in b"0123456789.e-":
        end += 1
    return data[:start] + rng.choice(NUMBERS) + data[end:]


def seeds(count: int, *, fast: int = 6):
    """Seeds as test parameters: the first few run by default, all of them with `pytest -m faults`."""
    marks = (pytest.mark.faults, pytest.mark.slow)
    return [pytest.param(FIRST_SEED + k, marks=marks[: 1 if k < fast else 2]) for k in range(count)]
