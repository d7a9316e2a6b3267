"""From the bytes of a JPEG to the batches of a backbone: decoders, the cost of each part, several backbones.

Images are mosaics of the mini suite's pictures, of 500 x 375 pixels, quality 90 and all three chroma
subsamplings in turn, so that they are the same anywhere. Decoders that are not installed are named in the
note.
"""

import io
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from layerboard.benchmark.passes.loading import KEPT_BYTES, KeptViews, Loader
from layerboard.mini.packs import packaged_pictures
from layerboard.tasks.datasets.base import PhotoSample
from layerboard.tasks.framework.base import Group, Source
from layerboard.zoo.view.photos import as_seen, open_file
from layerboard.zoo.view.views import FastResized, ResizeCrop, View, to_tensor
from workshop.perf.measuring import Budget, Row, Setting, processors, take_turns

Decoder = Callable[[bytes], NDArray[np.uint8]]  # bytes of a JPEG to RGB [height width 3]

SIZE = (500, 375)
VIEW = ResizeCrop(256, 224)
FAST = FastResized(VIEW)
OURS = "Pillow (ours)"
OTHERS = ("simplejpeg", "OpenCV", "pyvips", "torchcodec")


def decode_rows(setting: Setting) -> Iterator[Row]:
    """The package's decoder against others, the parts of a view, threads, and backbones that share views."""
    with TemporaryDirectory() as folder:
        paths = write_jpegs(Path(folder), 2 if setting.quick else 32)
        yield decoder_row(setting, [path.read_bytes() for path in paths])
        yield parts_row(setting, paths)
        yield threads_row(setting, paths)
        yield backbones_row(setting, paths)


def write_jpegs(folder: Path, count: int) -> list[Path]:
    """Mosaics of the mini suite's pictures in ``count`` JPEG files, no two of them alike."""
    pictures = [picture.resize((50, 50)) for picture in packaged_pictures(24)]
    paths = [folder / f"{number}.jpg" for number in range(count)]
    for number, path in enumerate(paths):
        image = Image.new("RGB", SIZE)
        for tile, corner in enumerate(product(range(0, SIZE[0], 50), range(0, SIZE[1], 50))):
            image.paste(pictures[(tile * (1 + number // 24) + number) % 24], corner)
        image.save(path, quality=90, subsampling=number % 3)  # 4:4:4, 4:2:2, 4:2:0
    return paths


def decoders() -> Mapping[str, Decoder]:
    """The installed decoders by name; each with its defaults, on one thread."""
    installed: dict[str, Decoder] = {OURS: lambda data: np.asarray(_decoded(data))}
    with suppress(ImportError):
        import simplejpeg

        installed["simplejpeg"] = simplejpeg.decode_jpeg
    with suppress(ImportError):
        import cv2

        cv2.setNumThreads(1)
        installed["OpenCV"] = lambda data: cv2.cvtColor(
            cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB
        )
    with suppress(ImportError):
        import pyvips

        installed["pyvips"] = lambda data: pyvips.Image.new_from_buffer(data, "").numpy()
    # its wheels are for CUDA, and load beside its libraries
    with suppress(ImportError, OSError, RuntimeError):
        from torchcodec.decoders import decode_jpeg

        installed["torchcodec"] = lambda data: (
            decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8)).permute(1, 2, 0).numpy()
        )
    return installed


def decoder_row(setting: Setting, files: list[bytes]) -> Row:
    """The package's decoder over the fastest with the same pixels; all of them in milliseconds."""
    installed = decoders()
    expected = [installed[OURS](data) for data in files]
    apart = {
        name: max(
            int(np.abs(decode(data).astype(int) - pixels).max())
            for data, pixels in zip(files, expected, strict=True)
        )
        for name, decode in installed.items()
    }
    rounds = take_turns(setting, {name: partial(_each, decode, files) for name, decode in installed.items()})
    equal = [name for name, levels in apart.items() if not levels]
    best = min(equal, key=rounds.milliseconds)
    said = [f"{len(files)} images, one thread", f"the fastest of the same pixels is {best}"]
    said += [
        f"{name} is up to {levels} grey levels apart" for name, levels in apart.items() if name not in equal
    ]
    said += [f"{name} is not here" for name in OTHERS if name not in installed]
    note = "; ".join(said)
    return rounds.row(
        "decoding a JPEG, over the fastest that keeps its pixels", (OURS, best), Budget(1.5), note
    )


def _decoded(data: bytes) -> Image.Image:
    return as_seen(open_file(io.BytesIO(data)))


def _each(function: Callable[[bytes], object], files: list[bytes]) -> None:
    for data in files:
        function(data)


def parts_row(setting: Setting, paths: list[Path]) -> Row:
    """Separate costs of reading, decoding, resizing and normalising; the value is the total of an image."""
    files = [path.read_bytes() for path in paths]
    images = [_decoded(data) for data in files]
    pixels = torch.stack([VIEW.render(image) for image in images])
    sizes = [tuple(round(side * 256 / min(image.size)) for side in image.size) for image in images]

    def whole(image: Image.Image, size: tuple[int, ...]) -> torch.Tensor:
        return to_tensor(image.resize((size[0], size[1]), Image.Resampling.BICUBIC))

    fast = torch.stack([FAST.render(image) for image in images])
    apart = int((pixels.int() - fast.int()).abs().max())
    parts = {
        "all": lambda: [_rendered(path) for path in paths],
        "all, resized by torch": lambda: [_rendered(path, FAST) for path in paths],
        "read": lambda: [path.read_bytes() for path in paths],
        "decode": lambda: [_decoded(data) for data in files],
        "resize and crop": lambda: [VIEW.render(image) for image in images],
        "the same by torch": lambda: [FAST.render(image) for image in images],
        "resize of the whole": lambda: [*map(whole, images, sizes)],
        "normalise, once a batch": lambda: (pixels / 255 - 0.45) / 0.225,
    }
    rounds = take_turns(setting, parts)
    figures = {name: rounds.milliseconds(name) / len(paths) for name in parts}
    note = f"an image of {SIZE[0]} x {SIZE[1]} to 224 x 224; torch's pixels differ by at most {apart} of 255"
    return Row(
        "from a JPEG file to the pixels of a view", figures.pop("all"), "ms", figures=figures, note=note
    )


def _rendered(path: Path, view: View = VIEW) -> torch.Tensor:
    with open_file(path) as image:
        return view.render(as_seen(image))


def threads_row(setting: Setting, paths: list[Path]) -> Row:
    """Speed-up of two and four threads over one."""

    def with_threads(count: int) -> None:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(_rendered, paths))

    rounds = take_turns(setting, {f"{count} threads": partial(with_threads, count) for count in (1, 2, 4)})
    note = f"{len(paths)} JPEG files to views, on {processors()} processors"
    budget = Budget(1.6, at_least=True) if processors() > 1 and not setting.quick else None
    return rounds.row("two threads, over one", ("1 threads", "2 threads"), budget, note)


def backbones_row(setting: Setting, paths: list[Path]) -> Row:
    """Batches for three backbones of one view, over decoding every image for each."""
    groups = tuple(Group(path.name, (PhotoSample(path.name, str(path)),)) for path in paths)
    source, backbones = Source("images", groups, VIEW, len(groups)), 3

    def each_decodes() -> None:
        for _ in range(backbones):
            list(Loader(processors()).batches(source, [0], setting.batch, VIEW.crop))

    def decoded_once() -> None:
        loader = Loader(processors(), KeptViews(KEPT_BYTES).render)
        for _ in range(backbones):
            list(loader.batches(source, [0], setting.batch, VIEW.crop))

    rounds = take_turns(setting, {"each decodes": each_decodes, "decoded once": decoded_once})
    note = f"{len(paths)} JPEG files, equal batches"
    budget = None if setting.quick else Budget(0.5)
    names = ("decoded once", "each decodes")
    return rounds.row("batches for three backbones of one view, over decoding for each", names, budget, note)
