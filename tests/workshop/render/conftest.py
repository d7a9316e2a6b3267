"""The mini datasets, rendered once and in this process, for all tests of the folder."""

from pathlib import Path

import pytest

from workshop.render.writers import WRITERS
from workshop.render.writers.base import Note

IMAGENET_CLASSES = 2
"""All datasets are written whole but the first, which would take most of the time."""


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Note]]]:
    root = tmp_path_factory.mktemp("mini") / "data"
    notes = {}
    for writer in WRITERS:
        units = range(2 * IMAGENET_CLASSES if writer.name == "imagenet" else len(writer.images))
        notes[writer.name] = [note for unit in units for note in writer.render(root, unit)]
        writer.finish(root, notes[writer.name])
    return root, notes


@pytest.fixture(scope="session")
def mini_root(rendered: tuple[Path, dict[str, list[Note]]]) -> Path:
    return rendered[0]


@pytest.fixture(scope="session")
def mini_notes(rendered: tuple[Path, dict[str, list[Note]]]) -> dict[str, list[Note]]:
    """What each dataset's annotation files are made of."""
    return rendered[1]
