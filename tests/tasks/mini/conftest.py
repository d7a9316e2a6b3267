"""The mini datasets, rendered once and in this process, for all tests of the folder."""

from pathlib import Path

import pytest

from tasks.mini.writers import WRITERS

IMAGENET_CLASSES = 2
"""All datasets are written whole but the first, which would take most of the time."""


@pytest.fixture(scope="session")
def mini_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mini") / "data"
    for writer in WRITERS:
        units = range(2 * IMAGENET_CLASSES if writer.name == "imagenet" else len(writer.images))
        writer.finish(root, [writer.render(root, unit) for unit in units])
    return root
