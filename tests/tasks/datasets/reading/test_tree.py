import os
import sys
from pathlib import Path

import pytest

from layerboard.tasks.datasets.folder import read_folder
from layerboard.tasks.datasets.reading.tree import read_tree
from layerboard.zoo.errors import InputError


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_what_is_an_image_and_what_is_not(tmp_path: Path) -> None:
    names = ("b/IMG.JPEG", "a.png", "a/猫 1.jpg", "b/c/x.WebP", "notes.txt", "b/Thumbs.db", "a.jpg.part")
    touch(*(tmp_path / name for name in (*names, ".hidden.jpg", ".git/a.jpg", "b/._a.jpg")))
    (tmp_path / "empty").mkdir()
    tree = read_tree(tmp_path)
    assert tree.images == ("a.png", "a/猫 1.jpg", "b/IMG.JPEG", "b/c/x.WebP")
    assert tree.others == ("a.jpg.part", "b/Thumbs.db", "notes.txt")
    assert tree.remarks == (
        "3 other files ignored (1 .db, 1 .part, 1 .txt)",
        "1 empty folder ignored (empty/)",
    )
    assert read_tree(tmp_path / "a").remarks == ()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links(tmp_path: Path) -> None:
    touch(tmp_path / "data" / "a" / "1.jpg", tmp_path / "elsewhere" / "2.jpg")
    (tmp_path / "data" / "b").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "data" / "a" / "gone.jpg").symlink_to(tmp_path / "nowhere")
    (tmp_path / "data" / "a" / "self.jpg").symlink_to("self.jpg")
    tree = read_tree(tmp_path / "data")
    assert tree.images == ("a/1.jpg", "b/2.jpg")
    assert tree.others == ("a/gone.jpg", "a/self.jpg")
    (tmp_path / "data" / "a" / "loop").symlink_to(tmp_path / "data", target_is_directory=True)
    with pytest.raises(
        InputError, match=r"found the link .*/a/loop, which leads back to a folder that holds it"
    ):
        read_tree(tmp_path / "data")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    touch(tmp_path / "a" / "1.jpg")
    (tmp_path / "a").chmod(0)
    with pytest.raises(InputError, match=r"expected a readable folder at .*/a: Permission denied"):
        read_tree(tmp_path)
    (tmp_path / "a").chmod(0o755)


@pytest.mark.parametrize(
    ("image", "other", "twin"),
    [
        ("{}.jpg", "{}_mask.png", True),
        ("{}.jpg", "{}.seg.png", True),
        ("{}.jpg", "{}.png", True),
        ("{}.jpg", "{}_gtFine_labelIds.png", True),
        ("{}_rgb.png", "{}_gt.png", True),
        ("{}.jpg", "mask_{}.PNG", True),
        ("{}.jpg", "{}_1.jpg", False),
        ("{}_left.jpg", "{}_right.jpg", False),
    ],
)
def test_masks_beside_images_are_refused(tmp_path: Path, image: str, other: str, twin: bool) -> None:
    names = [text.format(number) for number in range(3) for text in (image, other)]
    touch(*(tmp_path / "cat" / name for name in names))
    assert len(read_tree(tmp_path).twins) == 3 * twin
    if twin:
        with pytest.raises(InputError, match="3 of 6 files that look like masks of images beside them"):
            read_folder(tmp_path)
