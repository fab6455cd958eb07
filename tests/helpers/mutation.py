"""Random damage to files, the same for the same seed."""

from __future__ import annotations

import random

INTERESTING = (
    b"\x00",
    b"\xff",
    b"{",
    b"}",
    b"[",
    b'"',
    b":",
    b"-1",
    b"NaN",
    b"1e999",
    b"null",
    b"\xed\xa0\x80",
)


def mutate(content: bytes, rng: random.Random, start: int = 0, end: int | None = None) -> bytes:
    """Change one to four places between two offsets: flip, overwrite, insert, delete, repeat or cut."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        limit = len(data) if end is None else min(end, len(data))
        if limit <= start:
            break
        where, length = rng.randrange(start, limit), rng.randint(1, 16)
        kind = rng.randrange(6)
        if kind == 0:
            data[where] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[where : where + length] = rng.randbytes(length)
        elif kind == 2:
            data[where:where] = rng.choice(INTERESTING)
        elif kind == 3:
            del data[where : where + length]
        elif kind == 4:
            data[where:where] = data[where : where + length] * rng.choice((1, 2, 100))
        else:
            del data[where:]
    return bytes(data)
