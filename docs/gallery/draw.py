"""Draw the gallery of the mini datasets: ``python docs/gallery/draw.py`` writes the pictures beside it.

The datasets are rendered into the cache as far as they are not there.
"""

from collections.abc import Iterable, Sequence
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
HERE = Path(__file__).parent
GAP = 6
PAPER = (255, 255, 255)
QUALITY = 82

Picture = Image.Image


def fitted(image: Picture, height: int) -> Picture:
    """The picture at that height."""
    return image.resize((round(image.width * height / image.height), height), Image.Resampling.BICUBIC)


def squared(image: Picture, side: int) -> Picture:
    """The middle of the picture, a square."""
    return ImageOps.fit(image, (side, side), Image.Resampling.BICUBIC)


def beside(pictures: Sequence[Picture]) -> Picture:
    """Pictures of one height in a row."""
    width = sum(picture.width + GAP for picture in pictures) - GAP
    row = Image.new("RGB", (width, pictures[0].height), PAPER)
    left = 0
    for picture in pictures:
        row.paste(picture, (left, 0))
        left += picture.width + GAP
    return row


def below(rows: Sequence[Picture]) -> Picture:
    """Rows one under the other."""
    sheet = Image.new(
        "RGB", (max(row.width for row in rows), sum(row.height + GAP for row in rows) - GAP), PAPER
    )
    top = 0
    for row in rows:
        sheet.paste(row, (0, top))
        top += row.height + GAP
    return sheet


def tinted(image: Picture, mask: NDArray[np.uint8]) -> Picture:
    """The picture with regions in the colours of their numbers; 0 is none."""
    colours = voc_palette().reshape(-1, 3)[mask].astype(np.float32)
    pixels = np.asarray(image, np.float32)
    share = np.where(mask[..., None] > 0, 0.55, 0.0)
    return Image.fromarray((pixels * (1 - share) + colours * share).astype(np.uint8))


def framed(image: Picture, colour: str) -> Picture:
    """The picture with a frame."""
    framed = image.copy()
    ImageDraw.Draw(framed).rectangle((0, 0, image.width - 1, image.height - 1), outline=colour, width=3)
    return framed


def regions(masks: Iterable[NDArray[np.uint8]], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Numbers of the regions, from 1, where they are."""
    covered = np.zeros(size[::-1], np.uint8)
    for number, mask in enumerate(masks, start=1):
        covered[mask > 0] = number
    return covered


def imagenet(data: Path) -> Picture:
    """Two training images and one validation image of each class, a class a column."""
    images = DATA.classification.read(data)
    columns = []
    for label in range(len(images.train.classes)):
        taken = [images.train.samples[index] for index in np.flatnonzero(images.train.labels == label)[:2]]
        taken += [images.val.samples[index] for index in np.flatnonzero(images.val.labels == label)[:1]]
        columns.append([squared(sample.open(), 80) for sample in taken])
    half = len(columns) // 2
    rows = [[column[row] for column in part] for part in (columns[:half], columns[half:]) for row in range(3)]
    return below([beside(row) for row in rows])


def retrieval(data: Path) -> Picture:
    """Queries with their boxes, each beside easy and hard positives and something else."""
    dataset = DATA.retrieval[0].read(data)
    rows = []
    for start in range(0, len(dataset.queries), max(1, len(dataset.queries) // 4))[:4]:
        query = dataset.queries[start]
        image = query.open()
        if query.box is not None:
            ImageDraw.Draw(image).rectangle(tuple(query.box), outline="white", width=3)
        easy, hard = dataset.easy[start][:2], dataset.hard[start][:2]
        positive = {*map(int, [*dataset.easy[start], *dataset.hard[start], *dataset.junk[start]])}
        other = next(index for index in range(17, len(dataset.database)) if index not in positive)
        row = [fitted(image, 110)]
        row += [framed(fitted(dataset.database[int(index)].open(), 110), "#0072b2") for index in easy]
        row += [framed(fitted(dataset.database[int(index)].open(), 110), "#e69f00") for index in hard]
        rows.append(beside([*row, fitted(dataset.database[other].open(), 110)]))
    return below(rows)


def davis(data: Path) -> Picture:
    """Frames of three videos, annotated objects in colour."""
    videos = DATA.videos.read(data).videos
    rows = []
    for video in videos[:: max(1, len(videos) // 3)][:3]:
        places = np.linspace(0, len(video.frames) - 1, 5).round().astype(int)
        pictures = [tinted(video.frames[index].open(), read_mask(video.masks[index])) for index in places]
        rows.append(beside([fitted(picture, 110) for picture in pictures]))
    return below(rows)


def spair(data: Path) -> Picture:
    """Pairs of images, lines from each keypoint to where it is in the other image."""
    dataset = DATA.keypoints.read(data)
    pictures = []
    for pair in dataset.pairs[:: max(1, len(dataset.pairs) // 6)][:6]:
        sides = [dataset.samples[index].open() for index in (pair.source, pair.target)]
        scales = [150 / side.height for side in sides]
        both = beside([fitted(side, 150) for side in sides])
        start = round(sides[0].width * scales[0]) + GAP
        draw = ImageDraw.Draw(both)
        for (x, y), (u, v) in zip(
            pair.source_points * scales[0], pair.target_points * scales[1], strict=True
        ):
            draw.line((x, y, u + start, v), fill="white", width=1)
            for cx, cy in ((x, y), (u + start, v)):
                draw.ellipse((cx - 3, cy - 3, cx + 3, cy + 3), fill="#d55e00", outline="white")
        pictures.append(both)
    return below([beside(pictures[first : first + 2]) for first in range(0, len(pictures), 2)])


def objects(data: Path) -> Picture:
    """Images with their annotated objects."""
    return _regions(DATA.objects.read(data).images)


def parts(data: Path) -> Picture:
    """Images with their annotated parts."""
    return _regions(DATA.parts.read(data).images)


def _regions(images: Sequence[RegionImage]) -> Picture:
    pictures = []
    for annotated in images[:: max(1, len(images) // 6)][:6]:
        image = annotated.sample.open()
        mask = regions((region.mask() for region in annotated.regions), annotated.size)
        pictures.append(below([fitted(image, 110), fitted(tinted(image, mask), 110)]))
    return beside(pictures)


SHEETS = {
    "imagenet": imagenet,
    "oxford": retrieval,
    "davis": davis,
    "spair": spair,
    "coco": objects,
    "partimagenet": parts,
}


def main() -> None:
    """Write every sheet."""
    request = Request()
    data = mini_data(request.cache, request.workers, Silent())
    for name, draw in SHEETS.items():
        draw(data).save(HERE / f"{name}.webp", quality=QUALITY, method=6)


if __name__ == "__main__":
    main()
