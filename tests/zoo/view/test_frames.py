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
from layerboard.zoo.view.frames import frames_of, spaced_indices

SHADES = (10, 80, 150, 220, 250)


def test_few_things_are_all_taken_and_many_evenly() -> None:
    assert spaced_indices(3, 8) == [0, 1, 2]
    assert spaced_indices(9, 3) == [0, 4, 8]
    assert spaced_indices(9, 1) == [0]
    assert spaced_indices(0, 5) == []


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


LISTS = {
    "ffconcat": "ffconcat version 1.0\nfile real.mp4\n",
    "HLS": "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nreal.mp4\n#EXT-X-ENDLIST\n",
    "SDP": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n",
    "subtitles": "1\n00:00:01,000 --> 00:00:02,000\nwords\n",
}
"""Files that FFmpeg would read under any name, some of which refer to other files."""


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("ending", ["mp4", "mkv", "mpg"])
def test_a_list_of_files_is_no_video(tmp_path: Path, kind: str, ending: str) -> None:
    write_video(tmp_path / "real.mp4", [Image.new("RGB", (64, 48))])
    assert len(frames_of(tmp_path / "real.mp4", 3)) == 1
    path = tmp_path / f"list.{ending}"
    path.write_text(LISTS[kind])
    with pytest.raises(InputError, match=r"cannot decode video .*list.*: it is damaged, or no video of"):
        frames_of(path, 3)


@pytest.mark.parametrize("ending", ["mp4", "mov", "m4v", "mkv", "avi", "mpeg"])
def test_videos_of_every_kind_are_read(tmp_path: Path, ending: str) -> None:
    write_video(tmp_path / f"a.{ending}", [Image.new("RGB", (64, 48), (shade,) * 3) for shade in SHADES])
    found = frames_of(tmp_path / f"a.{ending}", 3)
    assert [name for name, _ in found] == [f"a.{ending} frame {index}" for index in (0, 2, 4)]
    assert [round(np.asarray(image).mean(), -1) for _, image in found] == [10, 150, 250]
    (tmp_path / f"a.{ending}").write_bytes(b"words")
    with pytest.raises(InputError, match=rf"cannot decode video .*a\.{ending}: "):
        frames_of(tmp_path / f"a.{ending}", 3)


def test_all_frames_together_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = [Image.new("RGB", (64, 48), (shade,) * 3) for shade in SHADES]
    images[0].save(tmp_path / "a.gif", save_all=True, append_images=images[1:])
    write_video(tmp_path / "a.mp4", images)
    monkeypatch.setattr("layerboard.zoo.view.photos.MOST_PIXELS", 3 * 64 * 48)
    few = "4 frames of it have 12,288 pixels, of at most 9,216; take fewer --frames, or make it smaller"
    for name in ("a.gif", "a.mp4"):
        assert len(frames_of(tmp_path / name, 3)) == 3
        with pytest.raises(InputError, match=re.escape(few)):
            frames_of(tmp_path / name, 4)


def test_a_small_file_of_large_frames_takes_little_memory(tmp_path: Path) -> None:
    """Half a GiB of pixels is the most that is decoded at once, whatever the file."""
    resource = pytest.importorskip("resource")
    (tmp_path / "a.gif").write_bytes(transparent_gif(8000, 8000, 40))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ((_, image),) = frames_of(tmp_path / "a.gif", 1)
    assert image.size == (8000, 8000)
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert taken < 1.8 * 4 * 8000**2  # one picture, and its indices
    with pytest.raises(InputError, match=r"8 frames of it have 512,000,000 pixels"):
        frames_of(tmp_path / "a.gif", 8)
    (tmp_path / "a.gif").write_bytes(transparent_gif(4000, 4000, 135))
    with pytest.raises(InputError, match=r"135 frames of 4000 x 4000 pixels take too long to decode"):
        frames_of(tmp_path / "a.gif", 8)


def transparent_gif(width: int, height: int, frames: int) -> bytes:
    """An animation of single pixels on a large canvas."""
    frame = b"!\xf9\x04\x05\x0a\0\0\0," + struct.pack("<4HB", 0, 0, 1, 1, 0) + b"\x02\x02D\x01\0"
    return (
        b"GIF89a"
        + struct.pack("<2H3B", width, height, 128, 0, 0)
        + b"\0\0\0\xff\xff\xff"
        + frame * frames
        + b";"
    )


def test_transparent_pixels_become_white_in_every_row() -> None:
    generator = np.random.default_rng(0)
    image = Image.fromarray(generator.integers(0, 256, (600, 7, 4), np.uint8), "RGBA")
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image)
    np.testing.assert_array_equal(np.asarray(photos.as_seen(image)), np.asarray(white))
