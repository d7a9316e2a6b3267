"""Which networks a claim is about: by what the registry says of their form and training, never by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Literal

from layerboard.zoo.spec import BackboneSpec

Method = Literal["labels", "texts", "contrast", "reconstruction", "other"]

# families that learn from images alone, by what they learn to do
CONTRAST = frozenset(("DINO", "MoCo", "DINOv2", "DINOv3", "iBOT", "MSN", "Franca"))
RECONSTRUCTION = frozenset(("MAE", "BEiT", "Hiera", "Pixio"))


@dataclass(frozen=True)
class KnownNetwork:
    """A trained backbone of a board that the registry knows, shown at its usual size and format."""

    spec: BackboneSpec
    label: str

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def depth(self) -> int:
        return self.spec.depth

    @property
    def is_vit(self) -> bool:
        """Whether it is a plain ViT: with attention, and one grid in all blocks."""
        return self.spec.heads is not None and len(self.spec.stages) == 1

    @property
    def is_convnet(self) -> bool:
        return self.spec.heads is None

    @cached_property
    def method(self) -> Method:
        """What it was trained by at last: labels, texts, contrast of views, or reconstruction."""
        words = self.spec.supervision
        if "labels" in words:
            return "labels"
        if "image-text" in words:
            return "texts"
        if self.spec.family in CONTRAST:
            return "contrast"
        return "reconstruction" if self.spec.family in RECONSTRUCTION else "other"

    @property
    def training(self) -> tuple[str, str, str, str]:
        """What two sizes of one method share."""
        return self.spec.family, self.spec.supervision, self.spec.data, self.spec.network


Group = tuple[KnownNetwork, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """Networks that a claim needs: in words, and how they are found among those of a board.

    Each group that is found has the same number of networks: one, or a pair.
    """

    words: str
    find: Callable[[Sequence[KnownNetwork]], list[Group]]


def _each(words: str, fits: Callable[[KnownNetwork], bool], least: int = 1) -> Relation:
    def find(networks: Sequence[KnownNetwork]) -> list[Group]:
        fitting: list[Group] = [(network,) for network in networks if fits(network)]
        return fitting if len(fitting) >= least else []

    return Relation(words, find)


def _pair(words: str, fits: Callable[[KnownNetwork, KnownNetwork], bool]) -> Relation:
    def find(networks: Sequence[KnownNetwork]) -> list[Group]:
        return [pair for pair in permutations(networks, 2) if fits(*pair)]

    return Relation(words, find)


def _is_larger(small: KnownNetwork, large: KnownNetwork) -> bool:
    shared = small.training == large.training and small.is_vit and large.is_vit
    sizes = [(each.depth, each.spec.width) for each in (small, large)]
    near = 2 * small.spec.patch_size < 3 * large.spec.patch_size < 5 * small.spec.patch_size
    return shared and near and sizes[0] != sizes[1] and all(a <= b for a, b in zip(*sizes, strict=True))


def _is_finer(coarse: KnownNetwork, fine: KnownNetwork) -> bool:
    same = coarse.training == fine.training and coarse.is_vit and fine.is_vit
    same = same and (coarse.depth, coarse.spec.width) == (fine.depth, fine.spec.width)
    return same and coarse.spec.patch_size > fine.spec.patch_size


def _change(first: KnownNetwork, second: KnownNetwork) -> str:
    """How the second, another training of the first, differs from it; "" for any other."""
    again = second.spec.retrained
    return again.change if again is not None and again.reference == first.name else ""


def _has_less_data(full: KnownNetwork, part: KnownNetwork) -> bool:
    return _change(full, part).endswith("% of the data")


def removed_block(full: KnownNetwork, cut: KnownNetwork) -> int:
    """The block, from 1, whose skips the second lacks while the rest of its training is the first's, or 0."""
    again = cut.spec.retrained
    return again.without_skips if again is not None and again.reference == full.name else 0


def _is_averaged(cls: KnownNetwork, mean: KnownNetwork) -> bool:
    convnet = mean.is_convnet and (mean.spec.supervision, mean.spec.data) == (
        cls.spec.supervision,
        cls.spec.data,
    )
    averaged = convnet or "mean" in _change(cls, mean)
    return cls.is_vit and cls.spec.has_cls and cls.method == "labels" and averaged


def of_method(*methods: Method, least: int = 1) -> Relation:
    """ViTs that were trained by one of some methods, at least so many."""
    count = {1: "a ViT", 2: "two ViTs"}[least]
    words = f"{count} trained by {' or '.join(methods)}"
    return _each(words, lambda network: network.is_vit and network.method in methods, least)


def size_pairs(*methods: Method, family: str = "") -> Relation:
    """A smaller and a larger ViT of one training, which is by one of some methods if any are given."""

    def fits(small: KnownNetwork, large: KnownNetwork) -> bool:
        wanted = (not methods or small.method in methods) and family in ("", small.spec.family)
        return wanted and _is_larger(small, large)

    which = family or (" or ".join(methods) and f"one method ({' or '.join(methods)})") or "one method"
    return _pair(f"two sizes of {which}", fits)


VITS = _each("a ViT", lambda network: network.is_vit)
CLASS_VITS = _each("a ViT with a class token", lambda network: network.is_vit and network.spec.has_cls)
SUPERVISED = of_method("labels", "texts")
CONVNETS = _each("a ConvNet", lambda network: network.is_convnet)
ANY = _each("two backbones", lambda _: True, least=2)
PATCHES = _pair("two patch sizes of one method and size", _is_finer)
SHARES = _pair("a training on all data and on a part of them", _has_less_data)
SKIPLESS = _pair(
    "a training with all skips and one without those of a block", lambda *two: bool(removed_block(*two))
)
AVERAGED = _pair("a ViT by labels on the class token, and a ConvNet or its twin on the mean", _is_averaged)


def crossed(first: Sequence[Group], second: Sequence[Group]) -> list[Group]:
    """Every group of the first with every one of the second."""
    return [(*left, *right) for left, right in product(first, second)]
