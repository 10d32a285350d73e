"""Inputs made from good ones by damage: bits, slices, words in wrong places, two inputs spliced."""

import random
from collections.abc import Callable, Iterator, Sequence

_MOST_BYTES = 4096
_ODD = (
    b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f\x94\xa5", b"\xe2\x80\xae", b"\n", b"\r\n", b'"', b"'", b"\\",
    b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b"[[[[[[[[", b",", b":", b"=", b"#", b"&a", b"*a", b"!!", b"null",
    b"true", b"NaN", b"-Infinity", b"1e999", b"-0", b"1e-400", b"9223372036854775808", b"18446744073709551616", b"0x7f",
    b"1_000",
)  # fmt: skip
"""What trips readers of JSON, TOML, YAML and labels."""


def inputs(corpus: Sequence[bytes], words: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Yield damaged inputs without end, the same for the same arguments; one in fifty is undamaged."""
    draw = random.Random(seed)
    words = (*words, *_ODD)
    while True:
        data = draw.choice(corpus)
        for _ in range(draw.choice((0, *range(1, 50)) if draw.random() < 0.02 else (1, 1, 1, 2, 2, 3, 5, 9))):
            data = draw.choice(_DAMAGES)(data, draw, corpus, words)
        yield data[:_MOST_BYTES]


_Damage = Callable[[bytes, random.Random, Sequence[bytes], Sequence[bytes]], bytes]


def _slice(data: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randint(0, len(data))
    return start, min(len(data), start + draw.choice((0, 1, 1, 2, 4, 8, 32, 200)))


def _flip(data: bytes, draw: random.Random, _corpus: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    if not data:
        return data
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]


def _cut(data: bytes, draw: random.Random, _corpus: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    start, end = _slice(data, draw)
    return data[:start] + data[end:]


def _end(data: bytes, draw: random.Random, _corpus: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    return data[: draw.randint(0, len(data))]


def _repeat(data: bytes, draw: random.Random, _corpus: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    start, end = _slice(data, draw)
    return data[:end] + data[start:end] * draw.choice((1, 1, 2, 50)) + data[end:]


def _insert(data: bytes, draw: random.Random, _corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    start, end = _slice(data, draw)
    return data[:start] + draw.choice(words) + data[draw.choice((start, end)) :]


def _noise(data: bytes, draw: random.Random, _corpus: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    start, end = _slice(data, draw)
    return data[:start] + draw.randbytes(draw.choice((1, 2, 8))) + data[end:]


def _digit(data: bytes, draw: random.Random, _corpus: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    places = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return data
    place = draw.choice(places)
    return data[:place] + draw.choice((b"-", b"0", b"9", b"99999999", b".", b"e30")) + data[place + 1 :]


def _splice(data: bytes, draw: random.Random, corpus: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    other = draw.choice(corpus)
    return data[: draw.randint(0, len(data))] + other[draw.randint(0, len(other)) :]


_DAMAGES: tuple[_Damage, ...] = (_flip, _cut, _end, _repeat, _insert, _insert, _noise, _digit, _digit, _splice)
