"""The numbers of keypoint correspondence: one field for each choice in which released evaluations differ."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from layerboard.tasks.datasets.spair import KeypointPair
from layerboard.tasks.metrics.correspondence import SoftArgmax
from layerboard.zoo.view.released import CornerSquare, OfTokens
from layerboard.zoo.view.views import Letterbox, Stretch, View

Pairs = Mapping[str, tuple[KeypointPair, ...]]  # of each category


@dataclass(frozen=True, slots=True)
class PairDraw:
    """Pairs drawn with replacement, category by category in sorted order, from NumPy's legacy generator."""

    per_category: int
    seed: int

    def taken(self, pairs: Pairs) -> dict[str, tuple[KeypointPair, ...]]:
        """Pairs that are taken of each category, categories in the order in which they are given."""
        legacy = np.random.RandomState(self.seed)
        return _taken(pairs, lambda count: legacy.choice(count, self.per_category))


@dataclass(frozen=True, slots=True)
class PairSample:
    """At most so many pairs of each category, drawn without replacement from Python's generator.

    Source: probe3d (El Banani et al., CVPR 2024; commit a1f1464), whose listing of files is not sorted: here
    it is, so the pairs are others than those of its paper.
    """

    most: int
    seed: int

    def taken(self, pairs: Pairs) -> dict[str, tuple[KeypointPair, ...]]:
        generator = random.Random(self.seed)  # noqa: S311 - the generator of the released code
        return _taken(pairs, lambda count: generator.sample(range(count), min(self.most, count)))


def _taken(pairs: Pairs, rows: Callable[[int], Iterable[int]]) -> dict[str, tuple[KeypointPair, ...]]:
    """Pairs in those of so many rows, category by category; rows are of pairs in the order of their keys."""
    ordered = {name: sorted(every, key=lambda pair: pair.key) for name, every in pairs.items()}
    return {name: tuple(every[row] for row in rows(len(every))) for name, every in ordered.items()}


@dataclass(frozen=True, slots=True)
class KeypointConfig:
    """How points are found again, and when a match is right.

    A place is a pixel or a token; tokens are cells of a grid that covers the view.

    Attributes:
        view: How images are shown.
        points: What becomes of annotated points: ``exact`` as they are; ``view pixel`` the view's pixel whose
            column is truncated and whose row is rounded half to even, after single precision, moved to the
            last one if outside, while true points stay exact; ``truncated`` truncated to whole pixels of the
            view, true ones, too; ``image pixel`` truncated to whole pixels of the image, true ones, too.
        source: Where the vector of a point is taken: ``bilinear`` between the centres of tokens; ``corners``
            between tokens of which the outermost lie on the corners of the view; ``token below`` that of the
            token which the point lies in; ``nearest token`` that of the token whose corner is nearest (halves
            to even).
        unit: What has length 1: ``tokens``; ``both`` tokens, and vectors and upsampled tokens again;
            ``samples`` only vectors and upsampled tokens.
        search: What is searched: ``pixels`` of the view that show the image, by upsampled tokens; ``all
            pixels`` of the view, the padding, too; ``image pixels``, of the image itself; ``tokens``.
        soft: The expected token in place of the best place, whatever is searched; None for the best one.
        said: Where in its cell a place is: in its ``centre``; in its ``corner``, upper left; or in the
            ``middle pixel``, half a pixel before the centre.
        alphas: Shares of the longer side of the target's box, the primary one first.
        inclusive: Whether a distance of exactly that share is a hit.
        draw: Which pairs are taken; None for all.
        average: What the primary metric is the mean of: each ``category``'s share of points, each ``image``
            pair's share of points, or all ``keypoints``.
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
        """Whether pixels of the images themselves are searched."""
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

CONFIGS = {
    "standard": _STANDARD,
    "paper": replace(
        _TOKENS,
        view=Letterbox(side=224, lanczos=True),
        points="view pixel",
        search="all pixels",
        draw=PairDraw(per_category=20, seed=42),
    ),
    "probe3d": replace(
        _TOKENS,
        view=CornerSquare(side=800),
        points="truncated",
        source="corners",
        alphas=(0.1,),
        draw=PairSample(most=200, seed=20),
    ),
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
