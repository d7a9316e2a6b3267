"""The examples in the documentation of the public functions, run as they stand."""

import doctest
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import layerboard
from tests import fakes

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NAMES = [name for name in layerboard.__all__ if name[0].islower()]


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A working folder with photos, and results."""
    folder, before = tmp_path_factory.mktemp("examples"), Path.cwd()
    fakes.write_fake_imagenet(folder)
    (folder / "imagenet").rename(folder / "photos")
    os.chdir(folder)
    options = {"images": "photos", "floor": False, "workers": 1}
    layerboard.run(["mini-dino", "mini-resnet"], ["knn", "cka"], **options)  # type: ignore[arg-type]
    yield
    os.chdir(before)


def results_of(name: str) -> doctest.TestResults:
    """Outcome of the examples of a function."""
    function = getattr(layerboard, name)
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    assert "+SKIP" not in (test.docstring or "")
    said: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    assert results.failed == 0, "".join(said)
    return results


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str) -> None:
    assert results_of(name).attempted >= 2
