"""Rendered mini datasets damaged file by file: the next run must render what is not as it was, by bytes."""

import random
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from layerboard.benchmark.engines.progress import Silent
from tests.faults.counts import Count
from tests.faults.damage import flip, remove, truncate
from workshop.render.packs import rendered_data
from workshop.render.writers import write

WAYS = (flip, flip, truncate, remove)
UNITS = 2
"""Of each dataset, that are rendered; all its files are alike."""


def damage_rendered(root: Path, times: int, seed: int = 0) -> list[Count]:
    """Damage images, annotation files and manifests so many times each, and look at the datasets again.

    What is wanted: every file as it was.
    """
    draw, counts = random.Random(seed), []
    few = tuple(replace(writer, images=writer.images[:UNITS]) for writer in write.WRITERS)
    with patch.object(write, "WRITERS", few):
        folder = rendered_data(root, 1, Silent())
        whole = _contents(folder)
        for kind, files in _kinds(whole).items():
            count = Count(f"damaged {kind} of the mini datasets")
            for _ in range(times):
                victim, way = draw.choice(files), draw.choice(WAYS)
                way(folder / victim, draw)
                count.note(f"{way.__name__} {victim}", _problem(root, whole))
            counts.append(count)
    return counts


def _kinds(whole: dict[str, bytes]) -> dict[str, list[str]]:
    """Files by kind."""
    manifests = [name for name in whole if name.startswith(write.MANIFESTS) or name == write.MARKER]
    images = [name for name in whole if name.lower().endswith((".jpg", ".jpeg", ".png"))]
    return {
        "images": images,
        "annotations": sorted({*whole} - {*images} - {*manifests}),
        "manifests": manifests,
    }


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _problem(root: Path, whole: dict[str, bytes]) -> str:
    try:
        found = _contents(rendered_data(root, 1, Silent()))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    other = sorted(name for name in {*found} | {*whole} if found.get(name) != whole.get(name))
    return f"not as it was: {', '.join(other)[:150]}" if other else ""
