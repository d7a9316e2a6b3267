"""What the user says about a network of their own, and what the network says about its images."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from torch import nn

from layerboard.zoo.entries.architecture import Layout
from layerboard.zoo.errors import InputError
from layerboard.zoo.own.module.blocks import BlocksOption
from layerboard.zoo.own.module.forward import Subject
from layerboard.zoo.spec import IMAGENET, Normalisation

USUAL_SIZE = 224  # side in pixels of images for a network that does not say


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


def with_images(net: nn.Module, options: ModuleOptions) -> Subject:
    """A network and its input images, from options, from its own configuration, or from defaults.

    timm's networks have all of it (``pretrained_cfg``), those of transformers the size (``config``). Raises
    InputError if the size is no whole number above 0, or if mean and std are not three numbers each.
    """
    configured, source = _configured(net)

    def chosen(key: str, option: object, usual: object, why: str) -> tuple[Any, str]:
        if option is not None:
            return option, "as given"
        value = configured.get(key)
        return (usual, why) if value is None else (value, source)

    why = "assumed, since the network states none"
    size, size_source = chosen("size", options.image_size, USUAL_SIZE, why)
    mean, mean_source = chosen("mean", options.mean, IMAGENET.mean, "assumed: ImageNet's")
    std, std_source = chosen("std", options.std, IMAGENET.std, "assumed: ImageNet's")
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
    return Subject(net, size, normalisation, size_source, sources)


def has_class_token(net: nn.Module, prefix: int, options: ModuleOptions) -> tuple[bool, str]:
    """Whether the first prefix token is a class token, and how that is known."""
    if options.class_token is not None:
        return options.class_token, "as given"
    names = ("cls_token", "class_token", "class_embedding")
    known = any(getattr(net, name, None) is not None for name in names)
    if prefix and not known and hasattr(net, names[0]):
        return False, "it has no cls_token"
    return prefix > 0, "it has a cls_token" if known else "taken to be the first token"


def stages_of(net: nn.Module) -> list[str]:
    """Paths of stages or blocks as a network of timm names them (``feature_info``); none for others."""
    stages = getattr(net, "feature_info", None)
    if isinstance(stages, list) and all(isinstance(stage, Mapping) and "module" in stage for stage in stages):
        return [str(stage["module"]) for stage in stages]
    return ["blocks", "stages"] if hasattr(net, "pretrained_cfg") else []


def _configured(net: nn.Module) -> tuple[Mapping[str, Any], str]:
    """Size, mean and std in the network's own configuration, None if missing, and where they are stated."""
    timm = getattr(net, "pretrained_cfg", None) or getattr(net, "default_cfg", None)
    if not isinstance(timm, Mapping):
        return {"size": getattr(getattr(net, "config", None), "image_size", None)}, "from its config"
    sides = tuple(timm.get("input_size") or ())[1:]
    if len(set(sides)) > 1:
        raise InputError(
            f"{type(net).__name__} takes images of {sides[0]} x {sides[1]} px; only square ones are "
            "shown: give image_size="
        )
    values = {"size": sides[0] if sides else None, "mean": timm.get("mean"), "std": timm.get("std")}
    return values, "from its pretrained_cfg"
