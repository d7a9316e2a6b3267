"""The examples in the documentation of the public functions, run as they stand."""

import doctest
from collections.abc import Iterator

import pytest

import layerboard
from layerboard.benchmark import look
from tests import fakes

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NAMES = [*(name for name in layerboard.__all__ if name[0].islower()), "LayerEncoder", "Callback"]


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A working folder with photos, and results, whose pages no example reads."""
    folder = tmp_path_factory.mktemp("examples")
    fakes.write_fake_imagenet(folder)
    (folder / "imagenet").rename(folder / "photos")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(look, "CELLS", (0,))  # pictures at the size of other commands take a tenth of the time
        patch.setattr("layerboard.benchmark.api.write_changed", lambda *_: ([], False))
        options = {"images": "photos", "floor": False, "workers": 1}
        layerboard.run(["mini-dino", "mini-resnet"], ["knn", "cka"], **options)  # type: ignore[arg-type]
        yield


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
