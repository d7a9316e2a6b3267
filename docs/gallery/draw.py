"""Draw the gallery of the mini datasets: ``python docs/gallery/draw.py`` writes the pictures beside it.

The datasets are rendered into the cache as far as they are not there.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from benchmark.engines.progress import Silent
from benchmark.plan.mini_data import mini_data
from benchmark.plan.suites import MINI_SUITE
from benchmark.request import Request
from tasks.datasets.coco import RegionImage
from tasks.datasets.masks import read_mask, voc_palette

DATA = MINI_SUITE.catalogue
GAP = 6

Picture = Image.Image


def fitted(image: Picture, height: int = 110) -> Picture:
    """The picture at that height."""
    return image.resize((round(image.width * height / image.height), height), Image.Resampling.BICUBIC)


def joined(pictures: Sequence[Picture], axis: int) -> Picture:
    """Pictures side by side (axis 0), or one under the other (axis 1)."""
    starts = np.cumsum([0, *(picture.size[axis] + GAP for picture in pictures)]).tolist()
    size = [max(picture.size[side] for picture in pictures) for side in range(2)]
    size[axis] = starts[-1] - GAP
    sheet = Image.new("RGB", (size[0], size[1]), "white")
    for picture, start in zip(pictures, starts, strict=False):
        sheet.paste(picture, (0, start) if axis else (start, 0))
    return sheet


def tinted(image: Picture, mask: NDArray[np.uint8]) -> Picture:
    """The picture with regions in the colours of their numbers; 0 is none."""
    colours = voc_palette().reshape(-1, 3)[mask].astype(np.float32)
    share = np.where(mask[..., None] > 0, 0.55, 0.0)
    return Image.fromarray((np.asarray(image, np.float32) * (1 - share) + colours * share).astype(np.uint8))


def imagenet(data: Path) -> Picture:
    """Two training images and one validation image of each class, a class a column."""
    images = DATA.classification.read(data)
    columns = []
    for label in range(len(images.train.classes)):
        taken = [
            ImageOps.fit(part.samples[index].open(), (80, 80), Image.Resampling.BICUBIC)
            for part, count in ((images.train, 2), (images.val, 1))
            for index in np.flatnonzero(part.labels == label)[:count]
        ]
        columns.append(joined(taken, 1))
    half = len(columns) // 2
    return joined([joined(columns[:half], 0), joined(columns[half:], 0)], 1)


def retrieval(data: Path) -> Picture:
    """Queries with their boxes, each beside easy and hard positives in frames and something else."""
    dataset = DATA.retrieval[0].read(data)
    rows = []
    for start in range(0, len(dataset.queries), max(1, len(dataset.queries) // 4))[:4]:
        query, easy, hard = dataset.queries[start], dataset.easy[start], dataset.hard[start]
        image = query.open()
        if query.box is not None:
            ImageDraw.Draw(image).rectangle(tuple(query.box), outline="white", width=3)
        row = [fitted(image)]
        for indices, colour in ((easy, "#0072b2"), (hard, "#e69f00")):
            for index in indices[:2]:
                positive = fitted(dataset.database[int(index)].open())
                row.append(ImageOps.expand(ImageOps.crop(positive, 3), 3, colour))
        positives = {*map(int, [*easy, *hard, *dataset.junk[start]])}
        other = next(index for index in range(17, len(dataset.database)) if index not in positives)
        rows.append(joined([*row, fitted(dataset.database[other].open())], 0))
    return joined(rows, 1)


def davis(data: Path) -> Picture:
    """Frames of three videos, annotated objects in colour."""
    videos = DATA.videos.read(data).videos
    rows = []
    for video in videos[:: max(1, len(videos) // 3)][:3]:
        places = np.linspace(0, len(video.frames) - 1, 5).round().astype(int)
        pictures = [tinted(video.frames[index].open(), read_mask(video.masks[index])) for index in places]
        rows.append(joined([fitted(picture) for picture in pictures], 0))
    return joined(rows, 1)


def spair(data: Path) -> Picture:
    """Pairs of images, lines from each keypoint to where it is in the other image."""
    dataset = DATA.keypoints.read(data)
    pictures = []
    for pair in dataset.pairs[:: max(1, len(dataset.pairs) // 6)][:6]:
        sides = [dataset.samples[index].open() for index in (pair.source, pair.target)]
        left, right = (fitted(side, 150) for side in sides)
        both = joined([left, right], 0)
        draw = ImageDraw.Draw(both)
        sources, targets = (
            points * (150 / side.height)
            for points, side in zip((pair.source_points, pair.target_points), sides, strict=True)
        )
        targets[:, 0] += left.width + GAP
        for source, target in zip(sources, targets, strict=True):
            draw.line((*source, *target), fill="white", width=1)
            for centre in (source, target):
                draw.circle(tuple(centre), 3, fill="#d55e00", outline="white")
        pictures.append(both)
    return joined([joined(pictures[first : first + 2], 0) for first in range(0, len(pictures), 2)], 1)


def regions(images: Sequence[RegionImage]) -> Picture:
    """Images, and below each the same with its annotated objects or parts in colour."""
    pictures = []
    for annotated in images[:: max(1, len(images) // 6)][:6]:
        image, numbers = annotated.sample.open(), np.zeros(annotated.size[::-1], np.uint8)
        for number, region in enumerate(annotated.regions, 1):
            numbers[region.mask() > 0] = number
        pictures.append(joined([fitted(image), fitted(tinted(image, numbers))], 1))
    return joined(pictures, 0)


SHEETS: dict[str, Callable[[Path], Picture]] = {
    "imagenet": imagenet,
    "oxford": retrieval,
    "davis": davis,
    "spair": spair,
    "coco": lambda data: regions(DATA.objects.read(data).images),
    "partimagenet": lambda data: regions(DATA.parts.read(data).images),
}

if __name__ == "__main__":
    request = Request()
    folder = mini_data(request.cache, request.workers, Silent())
    for name, draw in SHEETS.items():
        draw(folder).save(Path(__file__).with_name(f"{name}.webp"), quality=82, method=6)
