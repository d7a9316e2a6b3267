"""Pictures of images, animations and videos."""

import re
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from layerboard.zoo.errors import InputError
from layerboard.zoo.view import photos
from layerboard.zoo.view.frames import frames_of, spaced

SHADES = (10, 80, 150, 220, 250)


def test_few_things_are_all_taken_and_many_evenly() -> None:
    assert spaced(3, 8) == [0, 1, 2]
    assert spaced(9, 3) == [0, 4, 8]
    assert spaced(9, 1) == [0]
    assert spaced(0, 5) == []


@pytest.mark.parametrize(("ending", "lossless"), [("gif", {}), ("webp", {"lossless": True}), ("png", {})])
def test_an_animation_gives_evenly_spaced_pictures(tmp_path: Path, ending: str, lossless: Any) -> None:
    images = [Image.new("RGB", (12, 8), (shade,) * 3) for shade in SHADES]
    path = tmp_path / f"a.{ending}"
    images[0].save(path, save_all=True, append_images=images[1:], **lossless)
    found = frames_of(path, 3)
    assert [name for name, _ in found] == [f"a.{ending} frame {index}" for index in (0, 2, 4)]
    assert [image.mode for _, image in found] == ["RGB"] * 3
    shades = [int(np.asarray(image).mean()) for _, image in found]
    assert np.abs(np.array(shades) - [SHADES[index] for index in (0, 2, 4)]).max() <= 2


def test_pages_of_a_document_are_no_frames(tmp_path: Path) -> None:
    pages = [Image.new("RGB", (4, 4)), Image.new("RGB", (4, 4), "red")]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    assert [name for name, _ in frames_of(tmp_path / "a.tif", 5)] == ["a.tif"]


def test_what_is_no_picture_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("words")
    with pytest.raises(InputError, match=r"cannot decode image .*a\.txt: cannot identify image file"):
        frames_of(tmp_path / "a.txt", 1)
    Image.new("RGB", (30, 20)).save(tmp_path / "a.png")
    monkeypatch.setattr("layerboard.zoo.view.photos.MOST_PIXELS", 500)
    with pytest.raises(InputError, match=re.escape("it has 600 pixels, of at most 500; make it smaller")):
        frames_of(tmp_path / "a.png", 1)
    assert photos.MOST_PIXELS == 500


def test_a_video_needs_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(InputError, match=r"clip\.MP4 is a video, .*'layerboard\[video\]', or give a folder"):
        frames_of(tmp_path / "clip.MP4", 3)


def write_video(path: Path, images: Sequence[Image.Image]) -> None:
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=5)
        (stream.width, stream.height), stream.pix_fmt = images[0].size, "yuv420p"
        for image in images:
            file.mux(stream.encode(av.VideoFrame.from_image(image)))
        file.mux(stream.encode())


def test_a_video_of_a_turned_telephone_is_turned(tmp_path: Path) -> None:
    image = Image.new("RGB", (64, 48))
    image.paste("white", (0, 0, 32, 24))  # the upper left
    path = tmp_path / "clip.mov"
    write_video(path, [image])
    content = bytearray(path.read_bytes())
    matrix = content.index(b"tkhd") + 4 + 40  # of the track's header, ISO/IEC 14496-12
    content[matrix : matrix + 36] = struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 0, 0, 1 << 30)
    path.write_bytes(content)
    ((_, found),) = frames_of(path, 1)
    assert found.size == (48, 64)
    assert [found.getpixel(place)[0] > 128 for place in ((40, 8), (8, 8), (40, 56))] == [True, False, False]


def test_a_video_gives_evenly_spaced_pictures(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    write_video(path, [Image.new("RGB", (64, 48), (shade,) * 3) for shade in SHADES])
    found = frames_of(path, 3)
    assert [name for name, _ in found] == [f"clip.mp4 frame {index}" for index in (0, 2, 4)]
    shades = [int(np.asarray(image).mean()) for _, image in found]
    assert np.abs(np.array(shades) - [SHADES[index] for index in (0, 2, 4)]).max() <= 12
    path.write_bytes(b"words")
    with pytest.raises(InputError, match=r"cannot decode video .*clip\.mp4: "):
        frames_of(path, 3)
