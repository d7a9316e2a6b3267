"""Settings of keypoint correspondence: one field for each choice in which released evaluations differ."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from layerboard.tasks.datasets.spair import KeypointPair
from layerboard.tasks.keypoints.correspondence import SoftArgmax
from layerboard.zoo.view.released import CornerSquare, OfTokens
from layerboard.zoo.view.views import Letterbox, Stretch, View

Pairs = Mapping[str, tuple[KeypointPair, ...]]  # of each category


@dataclass(frozen=True, slots=True)
class PairDraw:
    """Pairs drawn with replacement, category by category in sorted order, from NumPy's legacy generator."""

    per_category: int
    seed: int

    def taken(self, pairs: Pairs) -> dict[str, tuple[KeypointPair, ...]]:
        """The drawn pairs of each category, in the given order of categories."""
        legacy = np.random.RandomState(self.seed)
        return _taken(pairs, lambda count: legacy.choice(count, self.per_category))


@dataclass(frozen=True, slots=True)
class PairSample:
    """At most ``most`` pairs of each category, drawn without replacement by Python's generator.

    Source: probe3d (El Banani et al., CVPR 2024; commit a1f1464). Its listing of files is not sorted; here it
    is, so the pairs differ from those of its paper.
    """

    most: int
    seed: int

    def taken(self, pairs: Pairs) -> dict[str, tuple[KeypointPair, ...]]:
        generator = random.Random(self.seed)  # noqa: S311 - the generator of the released code
        return _taken(pairs, lambda count: generator.sample(range(count), min(self.most, count)))


def _taken(pairs: Pairs, rows: Callable[[int], Iterable[int]]) -> dict[str, tuple[KeypointPair, ...]]:
    """Pairs of each category at the indices that ``rows`` returns for their number, sorted by key."""
    ordered = {name: sorted(every, key=lambda pair: pair.key) for name, every in pairs.items()}
    return {name: tuple(every[row] for row in rows(len(every))) for name, every in ordered.items()}


@dataclass(frozen=True, slots=True)
class KeypointConfig:
    """Rule by which points are matched, and by which a match is correct.

    A place is a pixel or a token; tokens are the cells of a grid that covers the view.

    Attributes:
        view: View of the images.
        points: Rounding of annotated points: ``exact``, none; ``view pixel``, to a pixel of the view (column
            truncated, row rounded half to even, in single precision, clipped to the last pixel), while true
            points stay exact; ``truncated``, truncated to whole pixels of the view, also for true points;
            ``image pixel``, truncated to whole pixels of the image, also for true points.
        source: Sampling of a point's vector: ``bilinear``, between token centres; ``corners``, between tokens
            with the outermost ones on the corners of the view; ``token below``, the token that contains the
            point; ``nearest token``, the token whose corner is nearest (halves to even).
        unit: Normalisation to length 1: ``tokens``; ``both``, tokens, then vectors and upsampled tokens;
            ``samples``, only vectors and upsampled tokens.
        search: Searched places: ``pixels``, the view's pixels inside the image, with upsampled tokens; ``all
            pixels`` of the view, including the padding; ``image pixels``, of the image itself; ``tokens``.
        soft: Soft arg-max over tokens instead of the best place, for any search; None for the best place.
        said: Position of a place in its cell: its ``centre``; its upper left ``corner``; or the ``middle
            pixel``, half a pixel before the centre.
        alphas: PCK thresholds as shares of the longer side of the target's box, the primary one first.
        inclusive: Whether a distance of exactly that share is a hit.
        draw: Draw of pairs; None for all pairs.
        average: What the primary metric averages: each ``category``'s share of points, each ``image`` pair's
            share of points, or all ``keypoints``.
    """

    view: View
    points: Literal["exact", "view pixel", "truncated", "image pixel"]
    source: Literal["bilinear", "corners", "token below", "nearest token"]
    unit: Literal["tokens", "both", "samples"]
    search: Literal["pixels", "all pixels", "image pixels", "tokens"]
    soft: SoftArgmax | None
    said: Literal["centre", "corner", "middle pixel"]
    alphas: tuple[float, ...]
    inclusive: bool
    draw: PairDraw | PairSample | None
    average: Literal["category", "image", "keypoint"]

    @property
    def primary(self) -> str:
        endings = {"category": "", "image": " per image", "keypoint": " per keypoint"}
        return f"PCK@{self.alphas[0]:g}{endings[self.average]}"

    @property
    def upsampled(self) -> bool:
        """Whether pixels are searched."""
        return self.soft is None and self.search != "tokens"

    @property
    def in_image(self) -> bool:
        """Whether the pixels of the image itself, not of the view, are searched."""
        return self.upsampled and self.search == "image pixels"


_STANDARD = KeypointConfig(
    view=Letterbox(side=224),
    points="exact",
    source="bilinear",
    unit="both",
    search="pixels",
    soft=None,
    said="centre",
    alphas=(0.1, 0.05, 0.01),
    inclusive=False,
    draw=None,
    average="category",
)
_TOKENS = replace(_STANDARD, unit="tokens", search="tokens", said="corner")
_GEOAWARE = replace(
    _TOKENS,
    view=OfTokens(Letterbox(side=840, lanczos=True), tokens=60),
    source="token below",
    soft=SoftArgmax(beta=0.02, window=5),
    said="centre",
    average="image",
)
_PROBE3D = replace(
    _TOKENS,
    view=CornerSquare(side=800),
    points="truncated",
    source="corners",
    alphas=(0.1,),
    draw=PairSample(most=200, seed=20),
)

CONFIGS = {
    "standard": _STANDARD,
    "paper": replace(
        _TOKENS,
        view=Letterbox(side=224, lanczos=True),
        points="view pixel",
        search="all pixels",
        draw=PairDraw(per_category=20, seed=42),
    ),
    "probe3d": _PROBE3D,
    "dinov3": replace(_PROBE3D, view=OfTokens(CornerSquare(side=1024), tokens=64)),
    "geoaware": _GEOAWARE,
    "sd-dino": replace(_GEOAWARE, soft=None, said="middle pixel", average="category"),
    "insid3": replace(
        _TOKENS,
        view=OfTokens(Stretch(side=768, bilinear=True), tokens=48),
        source="nearest token",
        soft=SoftArgmax(beta=0.04, sigma=7.0),
        alphas=(0.1, 0.05, 0.15, 0.2),
        inclusive=True,
        average="image",
    ),
    "dift": replace(
        _TOKENS,
        view=OfTokens(Stretch(side=768), tokens=48),
        points="image pixel",
        unit="samples",
        search="image pixels",
        alphas=(0.1,),
        inclusive=True,
        average="image",
    ),
}
