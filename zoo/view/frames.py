"""Pictures of a file: one of an image, evenly spaced ones of an animation or a video."""

from pathlib import Path

import numpy as np
from PIL import Image

from layerboard.zoo.errors import InputError
from layerboard.zoo.libraries import optional
from layerboard.zoo.reading import require_regular
from layerboard.zoo.view.photos import as_seen, decoding, open_file, require_few_pixels

VIDEOS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".mpg", ".mpeg")  # extensions, in any case
MOST_DECODED = 2**31  # pixels of an animation, decoded up to the last chosen frame: some seconds
# names of the demuxers of FFmpeg that read such files
VIDEO_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v"
ANIMATED = ("GIF", "WEBP", "PNG", "AVIF")  # formats whose further pictures are later frames


def spaced_indices(count: int, most: int) -> list[int]:
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
        chosen = spaced_indices(count, most)
        require_few_pixels(opened.size, len(chosen))
        if opened.width * opened.height * (chosen[-1] + 1) > MOST_DECODED:
            raise InputError(
                f"{count:,} frames of {opened.width} x {opened.height} pixels take too long to decode; give "
                "a folder of some of them"
            )
        images = []
        for index in chosen:
            opened.seek(index)
            seen = as_seen(opened)
            images.append((f"{path.name} frame {index}", seen.copy() if seen is opened else seen))
        return images


def _of_video(path: Path, most: int) -> list[tuple[int, Image.Image]]:
    advice = "pip install 'layerboard[video]', or give a folder of its frames"
    av = optional("av", f"{path} is a video, which PyAV reads: {advice}")
    with decoding(f"cannot decode video {path}"):
        require_regular(path)
        # so its contents cannot refer to another file or URL: a list of files is of another format
        only = {"protocol_whitelist": "file", "format_whitelist": VIDEO_FORMATS}
        try:
            opened = av.open(str(path), options=only)
        except av.FFmpegError as error:
            kinds = "MP4, MOV, MKV, WebM, AVI or MPEG"
            raise InputError(f"it is damaged, or no video of the kinds {kinds}") from error
        with opened as file:
            stream = file.streams.video[0]
            chosen = spaced_indices(sum(packet.size > 0 for packet in file.demux(stream)), most)
            require_few_pixels((stream.width, stream.height), len(chosen))
            file.seek(0)
            pictures = []
            for index, frame in enumerate(file.decode(stream)):
                if index in chosen:
                    require_few_pixels((frame.width, frame.height), len(chosen))  # it may change within
                    picture = frame.to_image()
                    pictures.append((index, picture.rotate(frame.rotation, expand=True)))
            return pictures
