"""Fingerprints of features: a few numbers by which a network is known to be the one that its name says.

A fixed set of drawn images is shown, at the backbone's own size and at a larger one, where its position
embeddings are resized. Of a layer in the middle, of the last block and of the final norm twelve numbers are
kept. Another file, mean, deviation, size, activation or interpolation changes some of them by far more than
the rounding of another machine does. They are in ``zoo/fingerprints/``, one file for each backbone.
"""

import json
import re
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from importlib.metadata import version
from math import isfinite
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from layerboard.zoo.atomic import write_whole
from layerboard.zoo.entries import SPECS
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.reading import read_as
from layerboard.zoo.spec import FINGERPRINTS, BackboneSpec, Layer
from layerboard.zoo.view.geometry import nearest_multiple
from layerboard.zoo.view.views import ResizeCrop, View

VERSION = 1  # of the images and of what is computed: raise it when either changes
VIEW = ResizeCrop(256, 224)  # as k-NN shows images
SIZES = ((200, 150), (150, 240), (320, 213), (97, 97))  # of the images, width and height in pixels
LARGER = 1.25  # the second size, by the first
GROUPS = 6  # of channels, so that a few large channels hide none of the others
# Largest difference of a number by the norm of its group of channels. Float32 rounds those of the packaged
# backbones by up to 2e-6 (against float64, and without oneDNN); GELU by its tanh formula moves them by 2.6e-4
# and more, and every other activation, another mean or another rule of interpolation by 1e-2.
TOLERANCE = 1e-4

_ENTRIES = {spec.name: spec for spec in SPECS}
_COMPARED: set[tuple[str, str, str]] = set()  # names, weights and devices that were compared in this process

Numbers = dict[str, list[float]]  # by size and layer: of each group its norm, then a random projection


@dataclass(frozen=True, slots=True)
class FeatureFingerprint:
    """The numbers of one backbone, and the weights and libraries with which they were computed."""

    backbone: str  # name of its entry
    revision: str
    sha256: str  # see `zoo.load.checkpoint.weights_sha256`
    version: int
    made_with: str
    numbers: Numbers

    def write(self, path: Path) -> None:
        """Write it as JSON, one line for each layer."""
        text = json.dumps(asdict(self), indent=1)
        write_whole(path, re.sub(r"\[[^\]]*\]", lambda row: " ".join(row[0].split()), text) + "\n")


def stored_fingerprint(name: str, folder: Path = FINGERPRINTS) -> FeatureFingerprint | None:
    """The stored fingerprint of an entry; None if nobody has computed it, InputError if it is damaged."""
    path = folder / f"{name}.json"
    return read_as(FeatureFingerprint, path) if path.exists() else None


def feature_fingerprint(backbone: Backbone, view: View = VIEW) -> FeatureFingerprint:
    """The fingerprint of a loaded backbone, which should run in float32."""
    spec, numbers = backbone.spec, Numbers()
    layers = [Layer(max(1, spec.depth // 2)), Layer(spec.depth)]
    layers += [Layer(spec.depth, "final")] if spec.has_final else []
    for side, count in _shown(spec).items():
        scaled = view.scaled(side, spec.patch_size)
        pixels = torch.cat([scaled.render(probe_image(number)) for number in range(count)])

        def note(features: LayerFeatures, side: int = side) -> None:
            numbers[f"{side} px, layer {features.layer}"] = _summary(features)

        backbone.visit(pixels, note, layers)  # type: ignore[arg-type]  # no layer of probabilities is asked
    libraries = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    made_with = f"{libraries}, {backbone.device.type}"
    return FeatureFingerprint(spec.entry, backbone.revision, backbone.sha256, VERSION, made_with, numbers)


def require_stored_features(backbone: Backbone) -> None:
    """Raise InputError if a backbone of the registry, run as its entry says, has not its stored features.

    Each is compared once in a process. Weights that the user gave, and those of another commit, are not.
    """
    spec = backbone.spec
    known = _ENTRIES.get(spec.name)
    if known is None or replace(spec, revision=known.revision) != known:
        return
    compared = spec.name, backbone.sha256, str(backbone.device)
    if compared not in _COMPARED and (stored := stored_fingerprint(spec.name)) is not None:
        require_same_features(feature_fingerprint(backbone), stored)
    _COMPARED.add(compared)


def require_same_features(now: FeatureFingerprint, stored: FeatureFingerprint) -> None:
    """Raise InputError if two fingerprints are not of one network, shown the same images in the same way."""
    if stored.version != now.version:
        raise InputError(
            f"the stored fingerprint of {now.backbone} is of version {stored.version}, this is {now.version}"
        )
    if now.numbers.keys() != stored.numbers.keys():
        names = ["; ".join(sorted(each.numbers)) for each in (stored, now)]
        raise InputError(f"{now.backbone} should show {names[0]}, and shows {names[1]}")
    gaps = {where: _gap(now.numbers[where], row) for where, row in stored.numbers.items()}
    wrong = [where for where, gap in gaps.items() if gap > TOLERANCE]
    if not wrong:
        return
    other = "" if stored.sha256 == now.sha256 else f"; its weights have the SHA-256 {now.sha256}"
    raise InputError(
        f"the features of {now.backbone} are not those of its fingerprint: at {wrong[0]} they differ by "
        f"{gaps[wrong[0]]:.2g} of their norm, of at most {TOLERANCE:g}{other}"
    )


@cache
def probe_image(number: int) -> Image.Image:
    """One of the images: triangular waves, blocks and noise, by arithmetic of whole numbers alone."""
    width, height = SIZES[number]
    y, x, channel = np.indices((height, width, 3), dtype=np.int64)
    waves = 3 * _wave((3 + number) * x + (5 + 2 * channel) * y + 97 * channel)
    waves += 2 * _wave((11 + 2 * number) * x - (7 + channel) * y + 31 * number)
    cell = (x // (2 + number) * 73856093) ^ (y // (2 + number) * 19349663) ^ (channel * 83492791 + number)
    noise = cell * 2654435761 % 2**32 >> 24
    blocks = (x // (17 + 5 * number) + y // (23 + 3 * number) + channel) % 3 == 0
    return Image.fromarray(np.minimum((waves + 2 * noise + 384 * blocks) // 10, 255).astype(np.uint8))


def _wave(phase: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.abs(phase % 512 - 256)


def _shown(spec: BackboneSpec) -> dict[int, int]:
    """Sizes in pixels at which a backbone is shown images, and how many of these."""
    larger = max(spec.patch_size, nearest_multiple(spec.input_size * (LARGER - 1), spec.patch_size))
    return {spec.input_size: len(SIZES)} | ({} if spec.fixed_size else {spec.input_size + larger: 2})


def _summary(features: LayerFeatures) -> list[float]:
    """Norm and random projection of each group of channels, over all images and tokens, in float64."""
    tokens = features.grid.flatten(1, 2).cpu().double()
    if features.cls is not None:
        tokens = torch.cat([features.cls.cpu().double()[:, None], tokens], dim=1)
    squares, products = tokens.square().sum((0, 1)), (tokens * _signs(tuple(tokens.shape))).sum((0, 1))
    parts = [(squares[group::GROUPS].sum().sqrt(), products[group::GROUPS].sum()) for group in range(GROUPS)]
    return [float(f"{float(number):.9g}") for part in parts for number in part]


@lru_cache(maxsize=4)
def _signs(shape: tuple[int, ...]) -> Tensor:
    """Signs -1 and 1 for tokens [images tokens dim], int8, by a hash of their places."""
    bits = np.arange(np.prod(shape), dtype=np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):  # the finalizer of MurmurHash3
        bits = (bits ^ bits >> np.uint64(33)) * np.uint64(factor)
    return torch.from_numpy((bits >> np.uint64(63)).astype(np.int8) * 2 - 1).view(shape)


def _gap(now: list[float], stored: list[float]) -> float:
    """Largest difference of two rows of numbers, by the norm of the group; infinite for another length."""
    if len(now) != len(stored) or not all(map(isfinite, (*now, *stored))):
        return float("inf")
    norms = [max(norm, 1e-12) for norm in stored[::2] for _ in range(2)]
    return max(abs(new - old) / norm for new, old, norm in zip(now, stored, norms, strict=True))
