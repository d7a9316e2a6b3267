"""All six mini datasets, written by a few processes and moved into place when complete."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tasks.mini.counts import TOTAL_IMAGES
from tasks.mini.seeds import MINI_VERSION
from tasks.mini.writers import WRITERS
from tasks.mini.writers.base import Note
from zoo.errors import InputError

MARKER = "mini-version.txt"
"""File in a complete folder of mini datasets that holds their version."""

_Task = tuple[int, int]
"""Index of a writer and of its unit."""


def write_mini_datasets(
    root: Path, *, workers: int = 2, progress: Callable[[int, int], None] | None = None
) -> None:
    """Write the six mini datasets into ``root``, unless this version of them is there already.

    They are rendered into a sibling folder that takes root's place when it is complete, so that nobody sees a
    half-written one. Two processes may do this at the same time: the first to finish wins, and their bytes
    are equal.

    Args:
        root: Folder that will hold ``imagenet``, ``roxford5k``, ``DAVIS``, ``SPair-71k``, ``coco`` and
            ``PartImageNet``.
        workers: Processes that render; 0 renders in this one.
        progress: Called with images done and images in all, in this process.

    Raises:
        InputError: Something else is at ``root``.
    """
    if is_complete(root):
        if progress is not None:
            progress(TOTAL_IMAGES, TOTAL_IMAGES)
        return
    if root.exists() and not ((root / MARKER).is_file() or (root.is_dir() and not any(root.iterdir()))):
        raise InputError(
            f"expected an empty or no folder at {root} for the mini datasets, found other files there"
        )
    root.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
    try:
        partial.chmod(0o755)
        _fill(partial, workers, progress)
        (partial / MARKER).write_text(f"{MINI_VERSION}\n", encoding="utf-8")
        _move_into_place(partial, root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_complete(root: Path) -> bool:
    """Whether this version of the mini datasets is at ``root``."""
    try:
        return (root / MARKER).read_text(encoding="utf-8").strip() == MINI_VERSION
    except (OSError, UnicodeDecodeError):
        return False


def render_unit(root: Path, task: _Task) -> list[Note]:
    """Render one unit of one writer; at module level, so that a spawned process finds it."""
    writer, unit = task
    return WRITERS[writer].render(root, unit)


def _fill(root: Path, workers: int, progress: Callable[[int, int], None] | None) -> None:
    notes: list[list[list[Note]]] = [[[] for _ in writer.images] for writer in WRITERS]
    done = 0
    for (writer, unit), found in _render_all(root, workers):
        notes[writer][unit] = found
        done += WRITERS[writer].images[unit]
        if progress is not None:
            progress(done, TOTAL_IMAGES)
    for writer_notes, each in zip(notes, WRITERS, strict=True):
        each.finish(root, writer_notes)


def _render_all(root: Path, workers: int) -> Iterator[tuple[_Task, list[Note]]]:
    """Every unit's notes as they come; large units first, so that the processes end together."""
    tasks = [(i, unit) for i, writer in enumerate(WRITERS) for unit in range(len(writer.images))]
    tasks.sort(key=lambda task: -WRITERS[task[0]].images[task[1]])
    if workers <= 0:
        for task in tasks:
            yield task, render_unit(root, task)
        return
    # Spawned, not forked: the caller may have threads of torch or OpenMP running.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(render_unit, root, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _move_into_place(partial: Path, root: Path) -> None:
    """Put a complete folder at ``root``; an older version makes way, an equal one stays."""
    try:
        os.replace(partial, root)
        return
    except OSError:
        if is_complete(root):
            return
        if not (root / MARKER).is_file():
            raise
    old = Path(tempfile.mkdtemp(prefix=f".{root.name}-old-", dir=root.parent))
    try:
        os.replace(root, old)
        os.replace(partial, root)
    except OSError:
        # Another process made the same exchange in between.
        if not is_complete(root):
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
