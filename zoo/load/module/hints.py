"""What somebody says of a network of their own, and what the network says of its images itself."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from torch import nn

from zoo.architecture import Layout
from zoo.errors import InputError
from zoo.load.module.blocks import BlocksHint
from zoo.spec import IMAGENET, Normalisation
from zoo.view.geometry import nearest_multiple

USUAL_SIZE = 224  # side in pixels of images of a network that says nothing
USUAL_STRIDE = 32  # pixels of a cell of the coarsest grid of most networks whose grids change
Three = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleHints:
    """What somebody says of a network; None is read from it or found out by a trial forward."""

    name: str | None = None  # name in tables; that of the class if None
    family: str = "other"  # group in tables, any word
    supervision: str = "unknown"  # what it learned from, in a few words
    data: str = "unknown"  # what it was trained on
    licence: str = "unknown"  # licence of its weights
    blocks: BlocksHint | None = None  # its residual blocks, first to last
    final_norm: nn.Module | str | bool | None = None  # norm after the last block, or its path; False for none
    image_size: int | None = None  # side of its images in pixels
    mean: Three | None = None  # per-channel mean of its input, for pixels in [0, 1]
    std: Three | None = None  # standard deviation of the same
    layout: Layout | None = None  # how its blocks pass on features
    prefix_tokens: int | None = None  # tokens before the patches
    class_token: bool | None = None  # whether the first of them is a class token


@dataclass(frozen=True, slots=True)
class InputImages:
    """Side in pixels and normalisation of the images that a network takes, and where each is from."""

    size: int
    normalisation: Normalisation
    size_source: str
    normalisation_source: str

    def rounded(self) -> "InputImages":
        """The images at the next size that ConvNets have whole cells for; of such a size, itself."""
        size = nearest_multiple(self.size, USUAL_STRIDE)
        if size == self.size:
            return self
        return replace(self, size=size, size_source=f"{self.size_source}, {self.size}, in whole cells")


def images_of(net: nn.Module, hints: ModuleHints) -> InputImages:
    """What a network is shown, by what somebody says, or by its own configuration, or as is usual.

    timm's networks say all of it (``pretrained_cfg``), those of transformers the size (``config``).

    Raises:
        InputError: The size is no whole number from 1 on, or mean and std are not three numbers each.
    """
    configured, source = _configured(net)
    size, size_source = _first(
        (hints.image_size, "as told"),
        (configured.get("size"), source),
        (USUAL_SIZE, "assumed, since the network says none"),
    )
    (mean, mean_source), (std, std_source) = (
        _first((hint, "as told"), (configured.get(key), source), (usual, "assumed: ImageNet's"))
        for key, hint, usual in (("mean", hints.mean, IMAGENET.mean), ("std", hints.std, IMAGENET.std))
    )
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(
            f"image_size takes the side of square images in pixels, a whole number; found {size!r}"
        )
    if len(mean) != 3 or len(std) != 3:
        raise InputError(f"mean and std take three numbers each, red, green, blue; found {mean!r}, {std!r}")
    if not all(map(isfinite, (*mean, *std))) or min(std) <= 0:
        raise InputError(f"mean and std take finite numbers, std above 0; found {mean!r}, {std!r}")
    sources = mean_source if mean_source == std_source else f"{mean_source} and {std_source}"
    (red, green, blue), (of_red, of_green, of_blue) = map(float, mean), map(float, std)
    normalisation = Normalisation((red, green, blue), (of_red, of_green, of_blue))
    return InputImages(size, normalisation, size_source, sources)


def has_class_token(net: nn.Module, prefix: int, hints: ModuleHints) -> tuple[bool, str]:
    """Whether the first prefix token is a class token, and how that is known."""
    if hints.class_token is not None:
        return hints.class_token, "as told"
    names = ("cls_token", "class_token", "class_embedding")
    known = any(getattr(net, name, None) is not None for name in names)
    if prefix and not known and hasattr(net, names[0]):
        return False, "the network has no cls_token"
    return prefix > 0, "the network has one" if known else "taken to be the first token"


def _first(*candidates: tuple[Any, str]) -> tuple[Any, str]:
    return next(candidate for candidate in candidates if candidate[0] is not None)


def _configured(net: nn.Module) -> tuple[Mapping[str, Any], str]:
    """Size, mean and std that a network brings along, None where it does not, and where it says them."""
    timm = getattr(net, "pretrained_cfg", None) or getattr(net, "default_cfg", None)
    if not isinstance(timm, Mapping):
        return {"size": getattr(getattr(net, "config", None), "image_size", None)}, "from its config"
    sides = tuple(timm.get("input_size") or ())[1:]
    if len(set(sides)) > 1:
        raise InputError(
            f"{type(net).__name__} takes images of {sides[0]} x {sides[1]} px; only square ones are "
            "shown: give image_size="
        )
    size = sides[0] if sides else None
    return {"size": size, "mean": timm.get("mean"), "std": timm.get("std")}, "from its pretrained_cfg"
