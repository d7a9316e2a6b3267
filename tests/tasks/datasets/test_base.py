import ast
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from layerboard.tasks.datasets.base import Count, Coverage, FileSample
from layerboard.tasks.datasets.hub import TableSample
from layerboard.tasks.datasets.reading.files import image_size
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.zoo.errors import UnreadableImageError
from tests.fakes import fake_image

ROOT = Path(__file__).parents[3]
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(x) print\n%%EOF\n"


@pytest.fixture
def picture() -> Image.Image:
    return fake_image(1, (40, 32), np.random.default_rng(0))[0]


@pytest.mark.parametrize("cut", [600, -200])
def test_truncated_jpeg_is_named(tmp_path: Path, picture: Image.Image, cut: int) -> None:
    path = tmp_path / "cut.jpg"
    picture.save(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(UnreadableImageError, match=r"cannot decode image .*cut\.jpg: .*[Tt]runcated"):
        FileSample("cut", str(path)).open()


@pytest.mark.parametrize("content", [b"", b"GIF?", b"<html>404</html>"])
def test_foreign_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "page.jpg").write_bytes(content)
    with pytest.raises(UnreadableImageError, match=r"page\.jpg"):
        FileSample("page", str(tmp_path / "page.jpg")).open()


READERS: dict[str, Callable[[Path], object]] = {
    "image": lambda path: FileSample("a", str(path)).open(),
    "header": image_size,
    "mask": read_mask,
    "table": lambda path: TableSample("a", 0, "image", "", [{"image": {"bytes": path.read_bytes()}}]).open(),
    "table of paths": lambda path: TableSample("a", 0, "image", "", [{"image": {"path": str(path)}}]).open(),
}


@pytest.mark.parametrize("reader", READERS)
def test_postscript_of_another_name_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    ghostscript, ran = tmp_path / "gs", tmp_path / "ran"
    ghostscript.write_text(f"#!/bin/sh\ntouch {ran}\n")
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    (tmp_path / "photo.jpg").write_bytes(POSTSCRIPT)
    with pytest.raises(UnreadableImageError, match="cannot identify image file"):
        READERS[reader](tmp_path / "photo.jpg")
    assert not ran.exists()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM", "JPEG2000"])
def test_formats_are_told_by_their_bytes(tmp_path: Path, picture: Image.Image, kind: str) -> None:
    picture.save(tmp_path / "a.jpg", format=kind)
    assert FileSample("a", str(tmp_path / "a.jpg")).open().size == image_size(tmp_path / "a.jpg") == (40, 32)


def test_every_image_is_opened_with_a_list_of_formats() -> None:
    files = (
        path
        for part in ("zoo", "tasks", "leaderboards", "benchmark")
        for path in ROOT.glob(f"{part}/**/*.py")
    )
    calls = [
        (path.name, node)
        for path in files
        if "Image.open" in path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Image.open"
    ]
    assert calls
    assert [name for name, call in calls if "formats" not in {word.arg for word in call.keywords}] == []


def test_missing_file_is_named(tmp_path: Path) -> None:
    sample = FileSample("gone", str(tmp_path / "gone.jpg"))
    with pytest.raises(UnreadableImageError, match=r"gone\.jpg"):
        sample.open()
    with pytest.raises(UnreadableImageError, match=r"gone\.jpg"):
        sample.signature()


def test_signature_changes_with_the_file(tmp_path: Path, picture: Image.Image) -> None:
    path = tmp_path / "a.png"
    picture.save(path)
    before = FileSample("a", str(path)).signature()
    picture.resize((20, 20)).save(path)
    assert FileSample("a", str(path)).signature() != before


def test_coverage_is_partial_for_counts_and_notes() -> None:
    assert not Coverage((Count("images", 3), Count("classes", 2, 2))).partial
    assert Coverage((Count("classes", 2, 3),)).partial
    assert Coverage((), ("replaced",)).partial
    assert str(Coverage((Count("images", 3, 5000),), ("why",))) == "3 of 5,000 images; why"
