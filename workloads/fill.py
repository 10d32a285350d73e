"""Memory fill: write patterns to nearly all free device memory, read them back, compare on the device.

Memory is taken by many plain allocations. Every pattern is written to all of them before any is read, so that no cache
can answer. ``address`` gives each 8-byte word its own number, which finds lines that select the wrong place; the others
drive all bits, and neighbouring bits against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, List, Tuple

import numpy as np
import tensorflow as tf

from workloads import failure
from workloads.context import Context
from workloads.emit import Result
from workloads.untyped import Array, Tensor

METHOD_VERSION = 1
PATTERNS: Tuple[Tuple[str, int], ...] = (
    ("zeros", 0),
    ("ones", -1),
    ("0x55", 0x5555555555555555),
    ("0xaa", 0x5555555555555555 ^ -1),
)
WORD_BYTES = 8
ROW_WORDS = 4096
GPU_SHARE = 0.93
LEAST_SHARE = 0.9
LARGEST_CHUNK_BYTES, SMALLEST_CHUNK_BYTES = 2**30, 2**20
WORKING_CHUNKS = 2.5
"""Chunks' worth of memory that comparing one chunk takes besides."""
CPU_BYTES = 2**27


@dataclass(frozen=True)
class Layout:
    """How the memory is divided: ``count`` chunks of ``rows`` rows of 4096 words."""

    rows: int
    count: int

    @property
    def chunk_bytes(self) -> int:
        """Bytes of one chunk."""
        return self.rows * ROW_WORDS * WORD_BYTES


def choose_layout(free_bytes: int, share: float) -> Layout:
    """Return chunks of at most 1 GiB that take ``share`` of the free memory and leave room to compare one."""
    target = int(free_bytes * share)
    chunk = max(SMALLEST_CHUNK_BYTES, min(LARGEST_CHUNK_BYTES, int((free_bytes - target) / WORKING_CHUNKS)))
    rows = max(1, chunk // (ROW_WORDS * WORD_BYTES))
    return Layout(rows, max(1, -(-target // (rows * ROW_WORDS * WORD_BYTES))))


class Memory:
    """The chunks held, and the words that belong in them."""

    def __init__(self, layout: Layout, device: str) -> None:
        self.layout = layout
        self._device = device
        self.chunks: List[Tensor] = []
        with tf.device(device):
            self._row_starts = tf.constant(np.arange(layout.rows, dtype=np.int64)[:, None] * ROW_WORDS)
            self._columns = tf.constant(np.arange(ROW_WORDS, dtype=np.int64)[None, :])

    def write(self, pattern: str, word: int) -> None:
        """Write one pattern to all memory, taking it on the first call.

        Raises:
            ResourceExhaustedError: a chunk cannot be had.
        """
        for index in range(self.layout.count):
            if index < len(self.chunks):
                self.chunks[index] = None
                self.chunks[index] = self._make(index, pattern, word)
            else:
                self.chunks.append(self._make(index, pattern, word))

    def differing_rows(self, index: int, pattern: str, word: int) -> List[int]:
        """Return the rows of one chunk that do not hold the pattern."""
        with tf.device(self._device):
            wanted = self._addresses(index) if pattern == "address" else tf.constant(word, tf.int64)
            wrong = tf.reduce_any(tf.not_equal(self.chunks[index], wanted), axis=1)
        return [int(row) for row in np.flatnonzero(wrong.numpy())]

    def row(self, index: int, row: int) -> Array:
        """Return one row of one chunk on the host."""
        return self.chunks[index][row].numpy()

    def wanted_row(self, index: int, row: int, pattern: str, word: int) -> Array:
        """Return what one row of one chunk should hold."""
        start = (index * self.layout.rows + row) * ROW_WORDS
        return np.arange(start, start + ROW_WORDS) if pattern == "address" else np.full(ROW_WORDS, word, np.int64)

    def flip(self, index: int, row: int, column: int) -> None:
        """Change the lowest bit of one word: what the comparison must find."""
        with tf.device(self._device):
            rows = tf.constant((np.arange(self.layout.rows) == row)[:, None].astype(np.int64))
            columns = tf.constant((np.arange(ROW_WORDS) == column)[None, :].astype(np.int64))
            self.chunks[index] = tf.bitwise.bitwise_xor(self.chunks[index], rows * columns)

    def _make(self, index: int, pattern: str, word: int) -> Tensor:
        with tf.device(self._device):
            if pattern == "address":
                return self._addresses(index)
            return tf.fill([self.layout.rows, ROW_WORDS], tf.constant(word, tf.int64))

    def _addresses(self, index: int) -> Tensor:
        return self._row_starts + tf.constant(index * self.layout.rows * ROW_WORDS, tf.int64) + self._columns


def run(context: Context) -> Iterator[Result]:
    """Fill, read back and compare each pattern; yields one result, the bytes that held all of them.

    Raises:
        ProbeFailure: a word differs, with how many and where; or less than 90 % of the free memory could be taken.
    """
    context.phase("build")
    free_bytes = context.free_bytes() if context.machine.on_gpu else min(CPU_BYTES, context.free_bytes())
    layout = choose_layout(free_bytes, GPU_SHARE)
    context.describe(shape="%dx%dx%d" % (layout.count, layout.rows, ROW_WORDS))
    _load_kernels(context.machine.device)
    memory = Memory(layout, context.machine.device)
    start_s = context.clock.monotonic_s()
    held_bytes = 0
    for pattern, word in (*PATTERNS, ("address", 0)):
        context.phase("write %s" % pattern)
        held_bytes = _write(memory, pattern, word, free_bytes)
        if context.request.flag("corrupt") and pattern == PATTERNS[-1][0]:
            memory.flip(len(memory.chunks) - 1, layout.rows // 2, ROW_WORDS // 3)
        context.phase("compare %s" % pattern)
        _compare(memory, pattern, word)
    yield context.result(
        METHOD_VERSION,
        float(held_bytes),
        "byte",
        figures={
            "share_of_free_memory": held_bytes / free_bytes,
            "patterns": len(PATTERNS) + 1.0,
            "elapsed_s": context.clock.monotonic_s() - start_s,
        },
    )


def _load_kernels(device: str) -> None:
    """Use every operation once while there is room: the driver loads code on first use, into the same memory."""
    memory = Memory(Layout(1, 1), device)
    for pattern, word in (*PATTERNS, ("address", 0)):
        memory.write(pattern, word)
        memory.flip(0, 0, 0)
        memory.differing_rows(0, pattern, word)
        memory.row(0, 0)


def _write(memory: Memory, pattern: str, word: int, free_bytes: int) -> int:
    """Write a pattern and return the bytes held; memory that ends early is accepted above 90 %."""
    try:
        memory.write(pattern, word)
    except tf.errors.ResourceExhaustedError as raised:
        memory.chunks = [chunk for chunk in memory.chunks if chunk is not None]
        if len(memory.chunks) * memory.layout.chunk_bytes < LEAST_SHARE * free_bytes:
            raise failure.classify(raised) from raised
        memory.layout = Layout(memory.layout.rows, len(memory.chunks))
    return len(memory.chunks) * memory.layout.chunk_bytes


def _compare(memory: Memory, pattern: str, word: int) -> None:
    wrong = [(index, row) for index in range(len(memory.chunks)) for row in memory.differing_rows(index, pattern, word)]
    if not wrong:
        return
    index, row = wrong[0]
    held, wanted = memory.row(index, row), memory.wanted_row(index, row, pattern, word)
    columns = np.flatnonzero(held != wanted)
    if not len(columns):
        where = "row %d of chunk %d, right when read again" % (row, index)
    else:
        column = int(columns[0])
        bits = int(held[column]) ^ int(wanted[column])
        where = "%d words of row %d of chunk %d, first word %d, bits %#x" % (
            len(columns), row, index, column, bits & (2**64 - 1),
        )  # fmt: skip
    raise failure.wrong_answer(failure.MEMORY_MISMATCH, "pattern %s: %d rows differ; %s" % (pattern, len(wrong), where))
