"""Pictures of a file: one of an image, evenly spaced ones of an animation or a video."""

from pathlib import Path

import numpy as np
from PIL import Image

from layerboard.zoo.errors import InputError
from layerboard.zoo.libraries import optional
from layerboard.zoo.view.photos import MOST_PIXELS, as_seen, decoding, open_file

VIDEOS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".mpg", ".mpeg")  # extensions, in any case
ANIMATED = ("GIF", "WEBP", "PNG", "AVIF")  # formats whose further pictures are later frames


def spaced(count: int, most: int) -> list[int]:
    """At most ``most`` evenly spaced indices of ``count`` things, from the first to the last."""
    return sorted({*np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist()})


def frames_of(path: Path, most: int) -> list[tuple[str, Image.Image]]:
    """The RGB pictures of a file with their names: that of the file, followed by the number of a frame.

    Raises InputError if it is no image and no video, is damaged or huge, or if PyAV is missing for a video.
    """
    if path.suffix.lower() in VIDEOS:
        return [(f"{path.name} frame {index}", image) for index, image in _of_video(path, most)]
    with decoding(f"cannot decode image {path}"), open_file(path) as opened:
        count = getattr(opened, "n_frames", 1) if opened.format in ANIMATED else 1
        if count == 1:
            return [(path.name, as_seen(opened))]
        images = []
        for index in spaced(count, most):
            opened.seek(index)
            images.append((f"{path.name} frame {index}", as_seen(opened.copy())))
        return images


def _of_video(path: Path, most: int) -> list[tuple[int, Image.Image]]:
    av = optional(
        "av",
        f"{path} is a video, which PyAV reads: pip install 'layerboard[video]', or give a folder of its "
        "frames",
    )
    # its contents cannot refer to another file or URL
    with (
        decoding(f"cannot decode video {path}"),
        av.open(str(path), options={"protocol_whitelist": "file"}) as file,
    ):
        stream = file.streams.video[0]
        if stream.width * stream.height > MOST_PIXELS:
            raise InputError(f"its frames have more than {MOST_PIXELS:,} pixels; make it smaller")
        chosen = spaced(sum(packet.size > 0 for packet in file.demux(stream)), most)
        file.seek(0)
        frames = [(index, each) for index, each in enumerate(file.decode(stream)) if index in chosen]
        pictures = [(index, each.to_image(), each.rotation) for index, each in frames]
        return [(index, picture.rotate(turn, expand=True)) for index, picture, turn in pictures]
