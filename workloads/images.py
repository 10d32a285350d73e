"""JPEG files for the pipeline probe, and the page cache under them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import List, Sequence

import numpy as np
import tensorflow as tf

SUFFIXES = (".jpg", ".jpeg")
HEIGHT, WIDTH, QUALITY = 375, 500, 90
MADE_IMAGES = 64
"""Different images made; further files are copies of them."""
PAGE_BYTES = 4096
SAMPLED_PAGES = 16


def make(directory: str, count: int, seed: int) -> List[str]:
    """Write ``count`` JPEG files, smooth colours under noise as photographs have, and return their paths."""
    generator = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    paths = []
    with tf.device("/CPU:0"):
        for index in range(min(count, MADE_IMAGES)):
            phases, waves = generator.uniform(0, 6.3, 3), generator.uniform(0.01, 0.06, (3, 2))
            smooth = [np.sin(waves[c, 0] * rows + waves[c, 1] * columns + phases[c]) for c in range(3)]
            pixels = 128 + 80 * np.stack(smooth, axis=-1) + generator.normal(0, 12, (HEIGHT, WIDTH, 1))
            encoded = tf.io.encode_jpeg(np.clip(pixels, 0, 255).astype(np.uint8), quality=QUALITY)
            paths.append(str(Path(directory) / ("%05d.jpg" % index)))
            Path(paths[-1]).write_bytes(encoded.numpy())
    for index in range(MADE_IMAGES, count):
        paths.append(str(Path(directory) / ("%05d.jpg" % index)))
        shutil.copyfile(paths[index % MADE_IMAGES], paths[-1])
    return paths


def find(directory: str, most: int) -> List[str]:
    """Return the first ``most`` JPEG files below ``directory``, in the order of their names."""
    found: List[str] = []
    for parent, folders, names in os.walk(directory):
        folders.sort()
        found.extend(str(Path(parent) / name) for name in sorted(names) if name.lower().endswith(SUFFIXES))
        if len(found) >= most:
            break
    return found[:most]


def drop_from_cache(paths: Sequence[str]) -> None:
    """Write the files through to their storage and ask the kernel to forget their pages."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cached_share(paths: Sequence[str]) -> float:
    """Return which share of the files' pages, sampled, is in the page cache; 1 where the filesystem cannot tell."""
    asked, cached = 0, 0
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            for offset in range(0, size, max(PAGE_BYTES, size // SAMPLED_PAGES // PAGE_BYTES * PAGE_BYTES)):
                asked += 1
                cached += _is_cached(descriptor, offset)
        finally:
            os.close(descriptor)
    return cached / asked if asked else 1.0


def _is_cached(descriptor: int, offset: int) -> bool:
    try:
        return os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False
    except OSError:
        return True
