"""Random damage to files, the same for the same seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from fuzz.structure import structure_of

NUMBERS = (0, 1, 2, 7, 8, 16, 127, 128, 255, 256, 32767, 32768, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63)
WORDS = (
    *(
        b"",
        b"\x00",
        b"\xff",
        b" ",
        b"\n",
        b"\r",
        b"\t",
        b",",
        b";",
        b":",
        b"=",
        b"-",
        b"+",
        b".",
        b"/",
        b"..",
    ),
    *(b"{", b"}", b"[", b"]", b"(", b")", b"<", b">", b"</", b"/>", b'"', b"'", b"#", b"%", b"&", b"*", b"!"),
    *(b"0", b"-0", b"1", b"-1", b"2", b"3", b"64", b"65536", b"2147483648", b"9" * 30, b"1e9", b"1e308"),
    *(b"1e999", b"-1e-320", b"0.5", b"0x10", b"1_0", b"nan", b"NaN", b".Nan", b"inf", b"-Infinity", b".Inf"),
    *(b"null", b"true", b"false", b"None", b"True", b"[]", b"{}", b'""', b"[[", b"1979-05-27", b"\\u0000"),
    *(b'"\\ud800"', b"\xed\xa0\x80", b"\xc3\xa9", b"\xef\xbb\xbf", b"\xe2\x82", b"\xc2\xb2", b"<!--", b"!!"),
    *(
        b"9" * 5000,
        b"0x" + b"f" * 5000,
        b"[" * 300,
        b"[" * 3000,
        b"<a>" * 2000,
        b"{a: " * 2000,
        b" " * 20_000,
        b"\n" * 20_000,
        b"A" * 140_000,
    ),
)
_SHORT = tuple(word for word in WORDS if len(word) < 100)
_NUMBER = re.compile(rb"[-+]?[.\d]+(?:[eE][-+]?\d+)?")


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Damage a file: the parts of its structure, with lengths and checksums that fit, or bytes anywhere."""
    structure = structure_of(content)
    if structure is None or rng.random() < 0.25:
        return mutate_bytes(content, rng)
    parts = structure.split(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        parts = _mutate_parts(parts, rng)
    changed = structure.join(parts)
    return mutate_bytes(changed, rng) if rng.random() < 0.05 else changed


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Change one to four places: flip, overwrite, insert, delete, repeat, cut, or put a number."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        if not data:
            break
        # Headers decide more than what follows them.
        where = rng.randrange(min(len(data), rng.choice((16, 64, 512, len(data)))))
        _EDITS[rng.randrange(len(_EDITS))](data, where, rng)
    return bytes(data)


def _mutate_parts(parts: Sequence[bytes], rng: random.Random) -> list[bytes]:
    changed = list(parts)
    if not changed:
        return [rng.choice(_SHORT)]
    at, other, action = rng.randrange(len(changed)), rng.randrange(len(changed)), rng.randrange(9)
    numbers = [index for index, part in enumerate(changed) if _NUMBER.fullmatch(part)]
    if action == 0:
        del changed[at]
    elif action == 1:
        changed[at:at] = changed[other : other + rng.randint(1, 4)] * rng.choice((1, 1, 1, 2, 200))
    elif action == 2:
        changed[at], changed[other] = changed[other], changed[at]
    elif action == 3:
        changed[at] = rng.choice(WORDS)
    elif action == 4:
        changed.insert(at, rng.choice(WORDS))
    elif action == 5:
        del changed[at:]
    elif action < 8 and numbers:  # another number leads deeper than another word
        changed[rng.choice(numbers)] = rng.choice(
            (b"%d" % rng.choice(NUMBERS), b"%d" % rng.randint(-2, 99), b"%.4g" % rng.lognormvariate(3, 4))
        )
    else:
        changed[at] = mutate_bytes(changed[at], rng)
    return changed


def _flip(data: bytearray, where: int, rng: random.Random) -> None:
    data[where] ^= 1 << rng.randrange(8)


def _overwrite(data: bytearray, where: int, rng: random.Random) -> None:
    length = rng.randint(1, 16)
    data[where : where + length] = rng.randbytes(length)


def _insert(data: bytearray, where: int, rng: random.Random) -> None:
    data[where:where] = rng.choice(_SHORT)


def _delete(data: bytearray, where: int, rng: random.Random) -> None:
    del data[where : where + rng.randint(1, 16)]


def _repeat(data: bytearray, where: int, rng: random.Random) -> None:
    data[where:where] = data[where : where + rng.randint(1, 16)] * rng.choice((1, 2, 100))


def _cut(data: bytearray, where: int, _: random.Random) -> None:
    del data[where:]


def _put_number(data: bytearray, where: int, rng: random.Random) -> None:
    size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    number = rng.choice(NUMBERS) % 256**size
    data[where : where + size] = number.to_bytes(size, "big" if order == "big" else "little")


_EDITS: tuple[Callable[[bytearray, int, random.Random], None], ...] = (
    *(_flip, _overwrite, _insert, _delete, _repeat, _cut, _put_number, _put_number),
)
