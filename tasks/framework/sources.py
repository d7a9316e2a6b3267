"""Sources of a classification dataset, shared by k-NN, image clustering and CKA.

The training images form two sources: the probe subset (for clustering and CKA) in CKA's batches, and the
rest. Both have the same view, so their vectors together are the k-NN bank, and no image goes through a
backbone twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import exp, log, sqrt
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from layerboard.tasks.datasets.base import Count, Coverage, Sample
from layerboard.tasks.datasets.classes import Classification, ProbeSubset, Unlabelled
from layerboard.tasks.framework.base import Group, Source
from layerboard.tasks.metrics.cell_labels import generator_of
from layerboard.zoo.view.geometry import Box
from layerboard.zoo.view.views import Mirrored, ResizeCrop, Stretch, View

ANY_SIZE = (256, 256)  # dummy image size: views of a classification dataset give all images one size
CHUNK = 512  # images of a classification dataset whose vectors are stored together
JOINT = 256  # images that go through a backbone together where CKA's batches are smaller
RATIO = (3 / 4, 4 / 3)  # usual width of a crop over its height
TRIES = 10  # usual number of random crops tried until one fits

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Batches:
    """Split of the probe subset into batches; a remainder forms a smaller batch."""

    size: int  # images of a batch
    # seed of the image order, the same for all backbones; None for dataset order, in which most small batches
    # contain a single class
    seed: int | None

    def order(self, count: int) -> NDArray[np.int64]:
        """Image indices from 0 to ``count`` - 1, in the order in which they are split into batches."""
        if self.seed is None:
            return np.arange(count, dtype=np.int64)
        return np.random.Generator(np.random.PCG64(self.seed)).permutation(count)


@dataclass(frozen=True, slots=True)
class ImagesConfig:
    """View and batches of classification images (for k-NN, image clustering, CKA and analyses)."""

    view: View
    batches: Batches  # of the probe subset
    own_probe: int  # probe images per class, if the dataset has no list of its own
    own_unlabelled: int  # most images that are used if they have no classes
    # training images of all classes, drawn by the seed of the batches, in place of the probe subset; 0: none
    drawn: int = 0
    # share of the area of one random crop of each training image, as a square; None: images as in the view
    crops: tuple[float, float] | None = None


_STANDARD = ImagesConfig(
    ResizeCrop(short=256, crop=224), Batches(size=256, seed=0), own_probe=100, own_unlabelled=5000
)

IMAGES = {  # by protocol name
    "standard": _STANDARD,
    "paper": replace(_STANDARD, view=ResizeCrop(short=224, crop=224), batches=Batches(size=8, seed=None)),
    "vtab": replace(_STANDARD, view=Stretch(side=224, bilinear=True)),
    "raghu": replace(_STANDARD, batches=Batches(size=1024, seed=0), own_unlabelled=10_240, drawn=10_240),
    "omniprobe": replace(_STANDARD, crops=(0.2, 1.0)),
}


def batch_slices(positions: Sequence[int], size: int, least: int) -> list[slice]:
    """Batches of the readable images of a group, at these ascending positions, as slices of ``positions``.

    Unreadable images make their batch smaller; a batch with fewer than ``least`` images is left out.
    """
    numbers = np.asarray(positions, np.int64) // size
    stops = [*np.flatnonzero(np.diff(numbers)) + 1, len(numbers)]
    batches = (slice(int(start), int(stop)) for start, stop in zip([0, *stops[:-1]], stops, strict=True))
    return [batch for batch in batches if batch.stop - batch.start >= least]


@dataclass(frozen=True)
class ProbedImages:
    """Images, with or without classes, and the probe subset that CKA and analyses use."""

    images: Classification | Unlabelled
    coverage: Coverage  # coverage of the probe subset and of the whole dataset
    probe: Source  # the probe images, split into batches; a group has one or several whole batches
    probe_order: NDArray[np.int64]  # index of each probe image among all images, in source order
    batches: Batches
    split: ClassVar[str] = "images"  # name of the probe subset in records

    @property
    def name(self) -> str:
        return self.images.name

    def named(self, name: str) -> Self:
        """The dataset under another name; its sources keep theirs, as fingerprints tell images apart."""
        return replace(self, images=self.images.named(name))


@dataclass(frozen=True)
class ProbedClasses(ProbedImages):
    """A classification dataset and its probe subset, which is a part of the training images."""

    images: Classification
    labels: NDArray[np.int64]  # class of each probe image, in source order
    rest: Source | None  # the other training images; None if there are none
    rest_order: NDArray[np.int64]  # index of each of them among all training images
    val: Source | None  # the test images; None if the training images are tested
    split = "train-probe"

    @property
    def sources(self) -> tuple[Source, ...]:
        """Sources of all images, each once."""
        return tuple(source for source in (self.probe, self.rest, self.val) if source is not None)


def consecutive_groups(samples: Sequence[Sample], size: int) -> tuple[Group, ...]:
    """Groups of ``size`` consecutive images, named by the index of the first; the last may be smaller."""
    starts = range(0, len(samples), size)
    return tuple(Group(f"{start:08d}", tuple(samples[start : start + size])) for start in starts)


def probed(data: Classification | Unlabelled, config: ImagesConfig) -> ProbedImages:
    """A dataset with its probe subset and its sources, which all tasks on its images share."""
    if isinstance(data, Unlabelled):
        return probed_images(data, config)
    subset = data.probe or ProbeSubset(None, config.own_probe)
    if config.drawn:  # at random
        probe = config.batches.order(len(data.train.samples))[: config.drawn]
        coverage = Coverage((Count("probe images", len(probe), config.drawn),))
    else:
        probe, coverage = probe_subset(data, subset)
    return probed_classes(data, probe, coverage, config)


def probe_subset(data: Classification, subset: ProbeSubset) -> tuple[NDArray[np.int64], Coverage]:
    """Indices of the images of a probe subset in a training set, by class, then by key.

    If a class is missing, the first classes in sorted order are used instead, as many as requested, and the
    coverage has a note.
    """
    wanted, per_class = subset
    present = data.train.classes
    chosen, notes = present if wanted is None else tuple(sorted(wanted)), []
    if missing := len({*chosen} - {*present}):
        chosen = present[: len(chosen)]
        notes.append(
            f"{missing} of the {len(wanted or ())} classes of the probe subset are missing: "
            f"the first {len(chosen)} classes of those present are used instead"
        )
    # keys are sorted, so the first indices of a class are its first file names
    positions = [np.flatnonzero(data.train.labels == present.index(name))[:per_class] for name in chosen]
    indices = np.concatenate([np.empty(0, np.int64), *positions]).astype(np.int64)
    counts = (
        Count("probe classes", len(chosen), len(chosen if wanted is None else wanted)),
        Count("probe images", len(indices), None if wanted is None else len(wanted) * per_class),
    )
    return indices, Coverage(counts, tuple(notes))


def probed_classes(
    data: Classification, probe: NDArray[np.int64], coverage: Coverage, config: ImagesConfig
) -> ProbedClasses:
    """A dataset whose probe subset has the indices ``probe`` in ``data.train``, with its coverage."""
    order, val, view = np.sort(probe)[config.batches.order(len(probe))], data.val, config.view
    train = data.train.samples
    if (crops := config.crops) is not None:
        config = replace(config, view=Stretch(side=224))
        train = tuple(CroppedSample(sample, crops) for sample in train)
    rest = np.setdiff1d(np.arange(len(data.train.samples), dtype=np.int64), probe)
    part = f"-{config.drawn}" if config.drawn else ""  # other images than those of the usual subset
    return ProbedClasses(
        images=data,
        coverage=replace(data.coverage, counts=()).joined(coverage),
        probe=_batched(f"{data.name}/train-probe{part}", train, order, config),
        probe_order=order,
        batches=config.batches,
        labels=data.train.labels[order],
        rest=_stored(f"{data.name}/train-rest{part}", train, rest, config.view) if len(rest) else None,
        rest_order=rest,
        val=_stored(f"{data.name}/val", val.samples, np.arange(len(val.samples)), view) if val else None,
    )


def probed_images(data: Unlabelled, config: ImagesConfig) -> ProbedImages:
    """Images without classes; of more than the config allows, those with the lowest key hashes are used."""
    chosen, most = np.arange(len(data.samples), dtype=np.int64), config.own_unlabelled
    if len(chosen) > most:
        hashes = [blake2b(sample.key.encode(), digest_size=8).digest() for sample in data.samples]
        chosen = np.sort(np.array(sorted(chosen, key=lambda index: hashes[index])[:most], np.int64))
    order = chosen[config.batches.order(len(chosen))]
    probe = _batched(f"{data.name}/images", data.samples, order, config)
    coverage = replace(data.coverage, counts=(Count("images", len(order)),))
    return ProbedImages(data, coverage, probe, order, config.batches)


def random_crop(
    random: np.random.Generator, size: tuple[int, int], area: Bounds, ratio: Bounds, tries: int
) -> Box:
    """A random part of an image of that (width, height), as torchvision's ``RandomResizedCrop`` takes it.

    It is of whole pixels. ``area`` bounds its share of the image's area, of which shares above 1 never fit,
    and ``ratio`` its width over its height. If no try fits, it is the central part with a ratio in the range.
    """
    for _ in range(tries):
        pixels = size[0] * size[1] * random.uniform(*area)
        shape = exp(random.uniform(log(ratio[0]), log(ratio[1])))
        width, height = round(sqrt(pixels * shape)), round(sqrt(pixels / shape))
        if 0 < width <= size[0] and 0 < height <= size[1]:
            left = int(random.integers(size[0] - width + 1))
            top = int(random.integers(size[1] - height + 1))
            return left, top, left + width, top + height
    width = min(size[0], round(size[1] * ratio[1]))
    height = min(size[1], round(size[0] / ratio[0]))
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return left, top, left + width, top + height


@dataclass(frozen=True, slots=True)
class CroppedSample:
    """One random crop of an image, mirrored in half of the cases; both depend on its name alone."""

    sample: Sample
    area: Bounds  # of the crop, as a share of the image's
    box: Box | None = None

    @property
    def key(self) -> str:
        return self.sample.key

    @property
    def made(self) -> str:
        """Identity among the images that are made of one."""
        return f"crop {self.area}"

    def open(self) -> Image.Image:
        """The crop; raises UnreadableImageError."""
        image, random = self.sample.open(), generator_of("cropped", self.key)
        part = image.crop(random_crop(random, image.size, self.area, RATIO, TRIES))
        return ImageOps.mirror(part) if random.random() < 0.5 else part

    def signature(self) -> str:
        return f"{self.sample.signature()}|{self.made}"


def mirrored(source: Source) -> Source:
    """A source with the mirrored images of a source."""
    return replace(source, name=f"{source.name}-mirrored", view=Mirrored(source.view), joint=False)


def _batched(name: str, samples: Sequence[Sample], order: NDArray[np.int64], config: ImagesConfig) -> Source:
    """A source of images in batch order, with whole batches in each group."""
    joint = config.batches.size * max(1, JOINT // config.batches.size)
    groups = consecutive_groups([samples[row] for row in order], joint)
    named = (replace(group, key=f"batch-{number:04d}") for number, group in enumerate(groups))
    return Source(name, tuple(named), config.view, joint=True, skip_unreadable=True)


def _stored(name: str, samples: Sequence[Sample], rows: NDArray[np.int64], view: View) -> Source:
    return Source(name, consecutive_groups([samples[row] for row in rows], CHUNK), view, skip_unreadable=True)
