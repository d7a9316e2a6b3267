"""Libraries that are missing or break when they are imported: one sentence with the reason."""

import pickle
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from layerboard.benchmark.passes.failures import failure
from layerboard.zoo.errors import InputError
from layerboard.zoo.libraries import BrokenLibraryError, explained, imports_explained, optional
from layerboard.zoo.references import find_object
from layerboard.zoo.view import photos

NMS = "raise RuntimeError('operator torchvision::nms does not exist')"


@pytest.fixture
def shadow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in front of all modules; what is imported from it is forgotten."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = dict(sys.modules)
    yield tmp_path
    sys.modules.clear()
    sys.modules.update(before)


def library(folder: Path, name: str, code: str, version: str = "") -> None:
    """A package of some code; with a version, its distribution, too."""
    sys.modules.pop(name, None)
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(code, encoding="utf-8")
    if version:
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        (info / "METADATA").write_text("\n".join(lines), encoding="utf-8")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n", encoding="utf-8")


def sentence(name: str) -> str:
    with pytest.raises(BrokenLibraryError) as told, imports_explained():
        import_module(name)
    assert told.value.library
    assert str(told.value).endswith("; `layerboard check` says which versions are needed")
    return str(told.value).removesuffix("; `layerboard check` says which versions are needed")


def test_the_cause_is_told_where_a_library_wraps_it(shadow: Path) -> None:
    library(shadow, "torchvision", NMS)
    wrapped = (
        "try:\n    import torchvision\nexcept Exception as error:\n    raise ImportError('Log it') from error"
    )
    library(shadow, "wrapping", wrapped, "1.0")
    told = sentence("wrapping")
    assert told.startswith("torchvision ")
    assert "nms does not exist" in told


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (NMS, "broken 3.2 cannot be imported (operator torchvision::nms does not exist)"),
        ("1 / 0", "cannot be imported (division by zero)"),
        ("def (", "cannot be imported (invalid syntax"),
        ("import torch; torch.nowhere", "cannot be imported (module 'torch' has no attribute 'nowhere')"),
        ("from torch import nowhere", "cannot be imported (cannot import name 'nowhere' from 'torch'"),
        ("raise OSError('libx.so.1: cannot open')", "cannot be imported (libx.so.1: cannot open)"),
        ("raise ImportError", "cannot be imported (import error)"),
        ("import no_such_module", "broken 3.2 cannot be imported (No module named 'no_such_module')"),
        ("raise DeprecationWarning('old')", "cannot be imported (old)"),
        ("from . import below", "cannot be imported (cannot import name 'below' from partially"),
    ],
)
def test_no_reason_is_lost(shadow: Path, code: str, told: str) -> None:
    library(shadow, "broken", code, "3.2")
    assert told in sentence("broken")
    assert "broken" in sentence("broken")


def test_only_a_library_that_is_absent_is_said_to_be_missing(shadow: Path) -> None:
    with pytest.raises(BrokenLibraryError, match=r"^get absent$"):
        optional("absent_library", "get absent")
    library(shadow, "timm", "import torchvision_of_nobody", "1.0.31")
    with pytest.raises(
        BrokenLibraryError,
        match=r"^timm 1\.0\.31 cannot be imported \(No module named 'torchvision_of_nobody'",
    ):
        optional("timm", "get timm")


def test_errors_of_no_import_pass(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), imports_explained():
        print(1 / 0)
    with pytest.raises(ModuleNotFoundError), imports_explained():
        import_module("layerboard.zoo.nowhere")  # a fault of ours
    assert explained(InputError("wrong")) is None


def test_a_backbone_fails_with_the_sentence(shadow: Path) -> None:
    library(shadow, "torchvision", NMS, "0.29.1")
    with pytest.raises(RuntimeError) as raised:
        import_module("torchvision")
    failed = failure(raised.value, "mini-dino")
    assert failed.bad_input
    assert failed.message.startswith("torchvision 0.29.1 cannot be imported (operator")
    told = explained(raised.value)
    assert told is not None
    assert str(pickle.loads(pickle.dumps(told))) == str(told)


def test_an_own_object_whose_library_breaks(shadow: Path) -> None:
    library(shadow, "torchvision", NMS, "0.29.1")
    library(shadow, "my_networks", "import torchvision")
    with pytest.raises(
        InputError, match=r"my_networks cannot be imported: torchvision 0\.29\.1 cannot be imported"
    ):
        find_object("my_networks:net")


def test_heic_that_is_installed_and_broken_is_not_said_to_be_missing(shadow: Path) -> None:
    library(shadow, "pillow_heif", "raise ImportError('libheif.so: cannot open')", "1.8.1")
    told = photos.heif_broken.__wrapped__()
    assert "pillow_heif 1.8.1 cannot be imported (libheif.so: cannot open)" in told
