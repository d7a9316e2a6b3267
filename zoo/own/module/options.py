"""What the user says about a network of their own, and what the network says about its images."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn

from layerboard.zoo.entries.architecture import Layout
from layerboard.zoo.errors import InputError, ensure
from layerboard.zoo.spec import IMAGENET, BackboneSpec, Normalisation

# A container, a dotted path in which ``*`` matches any name, or a list of modules or of such paths.
BlocksOption = nn.Module | str | Sequence[nn.Module | str]

# Input of a network that does not say, by the name of the option, and how that is known.
USUAL: Mapping[str, tuple[object, str]] = {
    "image_size": (224, "assumed, since the network states none"),
    "mean": (IMAGENET.mean, "assumed: ImageNet's"),
    "std": (IMAGENET.std, "assumed: ImageNet's"),
}
CLASS_TOKENS = ("cls_token", "class_token", "class_embedding")  # attributes of networks that have one


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleOptions:
    """The user's information about a network, as options of `layerboard.from_module`.

    None is read from the network or from a forward pass; ``final_norm`` is False for none.
    """

    name: str | None = None
    family: str = "other"
    supervision: str = "unknown"
    data: str = "unknown"
    licence: str = "unknown"
    blocks: BlocksOption | None = None
    final_norm: nn.Module | str | bool | None = None
    image_size: int | None = None
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    layout: Layout | None = None
    prefix_tokens: int | None = None
    class_token: bool | None = None


@dataclass(frozen=True, slots=True)
class OwnNetwork:
    """A network in evaluation mode, the paths of its blocks, and the square images that it is shown.

    ``size`` in pixels and the normalisation are those of its input; the sources say where each comes from.
    """

    net: nn.Module
    size: int
    normalisation: Normalisation
    size_source: str
    normalisation_source: str
    blocks: tuple[str, ...] = ()
    others: Sequence[tuple[str, ...]] = ()  # lists of modules that were not taken for its blocks

    @property
    def name(self) -> str:
        """The name of the network in sentences."""
        return type(self.net).__name__

    def images(self, pixels: Tensor) -> Tensor:
        """Input from pixels in [0, 1], [batch 3 height width], with the device and dtype of the weights."""
        first = next(iter(self.net.parameters()), None)
        mean, std = self.normalisation.mean, self.normalisation.std
        images = (pixels - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
        return images if first is None else images.to(first)

    def draw(self, height: int = 0, width: int = 0) -> Tensor:
        """Deterministic noise in [0, 1], [3 height width]; of the network's own size by default."""
        draw = torch.Generator().manual_seed(height)
        return torch.rand(3, height or self.size, width or self.size, generator=draw)


def with_images(net: nn.Module, options: ModuleOptions) -> OwnNetwork:
    """A network and its input images, from options, from its own configuration, or from defaults.

    timm's networks have all of it (``pretrained_cfg``), those of transformers the size (``config``). Raises
    InputError if the size is no whole number above 0, or if mean and std are not three numbers each.
    """
    configured, source = _configured(net)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, usual in USUAL.items():
        stated = ((getattr(options, name), "as given"), (configured.get(name), source), usual)
        values[name], sources[name] = next(each for each in stated if each[0] is not None)
    size, mean, std = values["image_size"], values["mean"], values["std"]
    is_side = isinstance(size, int) and not isinstance(size, bool) and size > 0
    ensure(is_side, f"image_size takes the side of square images in pixels, a whole number; found {size!r}")
    if len(mean) != 3 or len(std) != 3 or not all(map(isfinite, (*mean, *std))) or min(std) <= 0:
        raise InputError(
            "mean and std take three finite numbers each, red, green, blue, std above 0; found "
            f"{mean!r}, {std!r}"
        )
    (red, green, blue), (of_red, of_green, of_blue) = map(float, mean), map(float, std)
    normalisation = Normalisation((red, green, blue), (of_red, of_green, of_blue))
    of_colours = " and ".join(dict.fromkeys((sources["mean"], sources["std"])))
    return OwnNetwork(net, size, normalisation, sources["image_size"], of_colours)


def _configured(net: nn.Module) -> tuple[Mapping[str, Any], str]:
    """The input in the network's own configuration, None if missing, and where that is stated."""
    timm = getattr(net, "pretrained_cfg", None) or getattr(net, "default_cfg", None)
    if not isinstance(timm, Mapping):
        return {"image_size": getattr(getattr(net, "config", None), "image_size", None)}, "from its config"
    sides = tuple(timm.get("input_size") or ())[1:]
    if len(set(sides)) > 1:
        raise InputError(
            f"{type(net).__name__} takes images of {sides[0]} x {sides[1]} px; only square ones are "
            "shown: give image_size="
        )
    return {**timm, "image_size": sides[0] if sides else None}, "from its pretrained_cfg"


def has_class_token(net: nn.Module, prefix: int, options: ModuleOptions) -> tuple[bool, str]:
    """Whether the first prefix token is a class token, and how that is known."""
    if options.class_token is not None:
        return options.class_token, "as given"
    known = any(getattr(net, name, None) is not None for name in CLASS_TOKENS)
    if prefix and not known and hasattr(net, CLASS_TOKENS[0]):
        return False, "it has no cls_token"
    return prefix > 0, "it has a cls_token" if known else "taken to be the first token"


def stages_of(net: nn.Module) -> list[str]:
    """Paths of stages or blocks as a network of timm names them (``feature_info``); none for others."""
    stages = getattr(net, "feature_info", None)
    if isinstance(stages, list) and all(isinstance(stage, Mapping) and "module" in stage for stage in stages):
        return [str(stage["module"]) for stage in stages]
    return ["blocks", "stages"] if hasattr(net, "pretrained_cfg") else []


def faults(spec: BackboneSpec) -> Iterator[str]:
    """The errors in a spec that a user wrote, or that a user's options made, in words."""
    if not re.fullmatch(r"[\w.@/+-]+", spec.name):
        yield "needs a name of letters, digits and .-_@/+"
    if not re.fullmatch(r"[\w.@/+-]+( [\w.@/+-]+)*", spec.family):
        yield f"has the family {spec.family!r}; take a word of letters, digits and .-_@/+"
    if spec.is_floor:
        yield f"has the family {spec.family!r}, which is that of the random floor; take another word"
    numbers = [number for stage in spec.stages for number in (stage.blocks, stage.width, stage.stride)]
    if not numbers or min(numbers) < 1:
        yield "needs stages with blocks, widths and strides from 1 on"
        return
    if any(spec.patch_size % stage.stride for stage in spec.stages):
        yield f"has strides that do not divide the coarsest, {spec.patch_size} px"
    if spec.input_size < 1 or spec.input_size % spec.patch_size:
        yield f"has an input size of {spec.input_size} px, which is no multiple of {spec.patch_size} px"
    if spec.prefix_tokens < int(spec.has_cls):
        yield f"has a class token and {spec.prefix_tokens} prefix tokens"
    if len(spec.mean) != 3 or len(spec.std) != 3 or not all(map(isfinite, (*spec.mean, *spec.std))):
        yield "needs three finite numbers as mean and as std"
    elif min(spec.std) <= 0:
        yield "needs a std above 0"
