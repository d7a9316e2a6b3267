"""Rendering of what is missing, and packs of what was rendered."""

from pathlib import Path

import pytest

from layerboard.benchmark.engines.progress import Silent
from layerboard.mini.packs import DATA, packaged_data
from layerboard.tasks.datasets.packs.pack import read_shard
from layerboard.tasks.datasets.reading.files import read_bytes
from layerboard.zoo.errors import InputError
from workshop.render import packs as rendering
from workshop.render.__main__ import require_same_bytes
from workshop.render.packs import pack_data
from workshop.render.writers.write import Piece, missing_pieces

PIECES = (Piece("davis", 1, 8), Piece("coco", 2, 8))
"""Small ones."""


def test_rendered_pieces_are_whole(tmp_path: Path) -> None:
    rendering.render_pieces(tmp_path / "data", PIECES, 1, Silent())
    assert not set(missing_pieces(tmp_path / "data")) & set(PIECES)


def test_only_what_is_missing_is_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Piece] = []
    monkeypatch.setattr(rendering, "missing_pieces", lambda root: PIECES)
    monkeypatch.setattr(rendering, "_render", lambda root, piece, report: given.append(piece))
    monkeypatch.setattr(rendering, "finish", lambda root: None)
    root = rendering.rendered_data(tmp_path, 1, Silent())
    assert (root.parent, tuple(given)) == (tmp_path / "mini-data", PIECES)
    monkeypatch.setattr(rendering, "missing_pieces", lambda root: ())
    rendering.rendered_data(tmp_path, 1, Silent())
    assert tuple(given) == PIECES


def test_packs_of_the_same_files_have_the_same_bytes(tmp_path: Path) -> None:
    """The packaged ones, written again from their own files."""
    root, copy = packaged_data(), tmp_path / "rendered"
    shards = [read_shard(path) for path in DATA.rglob("*.arrow")]
    for path in (path for shard in shards for path in shard["path"].to_pylist()):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(read_bytes(root / path))
    pack_data(copy, tmp_path / "packs")
    require_same_bytes(tmp_path / "packs", DATA)
    (tmp_path / "packs" / "more.txt").write_text("more")
    with pytest.raises(InputError, match=r"expected the same files in .*, found others: more.txt"):
        require_same_bytes(tmp_path / "packs", DATA)
