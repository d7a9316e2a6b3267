"""Where backbones come from: an `Origin` is all in which two kinds differ. Imports nothing heavy."""

import os
from dataclasses import dataclass, replace

from layerboard.zoo.references import is_reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A kind of backbones by where they come from, as far as nothing heavy has to know it.

    ``name`` stands for it in lists. ``loader`` is its other half, the ``module:class`` of a
    `zoo.load.backbone.OriginLoader`, which finds, identifies, loads and describes its backbones. ``mark`` is
    what the names of its backbones begin with as users write them, "" for nothing, and ``example`` such a
    name, if no pattern can be given in its place. ``has_path`` says that what follows the mark is a path of
    this machine, or may be one. ``takes_weights`` says that a user can give a file of weights for them.
    ``has_architecture`` says that its networks are of an `Architecture` (`zoo.entries.architecture`): every
    place in their blocks is known, and the rule by which their positions are fitted. ``hooked`` says that a
    network of torch is watched by hooks, which can also apply its final norm. ``supply`` says where
    this package has the weights from, "" if a user or a repository gives them. ``stays`` says that they are
    in the process that made them, and in no other. ``no_heads`` is what is said of one without heads that is
    asked for attention.
    """

    name: str
    loader: str
    mark: str = ""
    example: str = ""
    has_path: bool = False
    takes_weights: bool = False
    has_architecture: bool = False
    hooked: bool = False
    supply: str = ""
    stays: bool = False
    no_heads: str = "has no attention"

    def __repr__(self) -> str:
        return self.name.upper()  # as the code of an entry has it


_UNREAD = (
    "is a network whose attention probabilities cannot be read: that takes one nn.MultiheadAttention, "
    "Attention of timm, or call of scaled_dot_product_attention in each block, over all of its tokens"
)

# a repository of the Hub, or a directory in Hugging Face format
TRANSFORMERS = Origin(
    name="transformers",
    loader="layerboard.zoo.load.files:FileLoader",
    has_path=True,
    has_architecture=True,
    hooked=True,
    takes_weights=True,
)
# a state dict under the names of the authors' code (`zoo.load.convert`)
ORIGINAL = replace(TRANSFORMERS, name="original", has_path=False)
# files that come with this package, and files that it writes
PACKAGED = replace(ORIGINAL, name="packaged", supply="comes with the package")
GENERATED = replace(ORIGINAL, name="generated", supply="comes from a seed")
# no network: random draws, or the pixels
FLOOR = Origin(name="floor", loader="layerboard.zoo.load.backbone:FloorLoader", supply="comes from a seed")
# a network of this process (`zoo.own.module`)
MODULE = Origin(
    name="module",
    loader="layerboard.zoo.own.module.network:ModuleLoader",
    mark="given:",
    hooked=True,
    stays=True,
    no_heads=_UNREAD,
)
# a network that timm builds
TIMM = Origin(
    name="timm",
    loader="layerboard.zoo.own.timm_models:TimmLoader",
    mark="timm:",
    example="timm:vit_small_patch16_224",
    hooked=True,
    takes_weights=True,
    no_heads=_UNREAD,
)
# a network in a file that onnxruntime runs
ONNX = Origin(name="onnx", loader="layerboard.zoo.own.onnx_file:OnnxLoader", mark="onnx:", has_path=True)
# what a function ``module:function`` returns: an object that shows its features itself
OBJECT = Origin(name="object", loader="layerboard.zoo.own.module.objects:ObjectLoader")
# or a network of torch, which every process makes anew
FUNCTION = replace(
    MODULE, name="function", loader="layerboard.zoo.own.module.objects:FunctionLoader", mark="", stays=False
)

ORIGINS = (TRANSFORMERS, ORIGINAL, PACKAGED, GENERATED, FLOOR, MODULE, TIMM, ONNX, OBJECT, FUNCTION)


def origin_by_mark(text: str) -> Origin | None:
    """The origin with whose mark a name begins; None for any other name."""
    return next((origin for origin in ORIGINS if origin.mark and text.startswith(origin.mark)), None)


def origin_mark(text: str) -> str:
    """The mark before the path in a name; "" for a name without both."""
    origin = origin_by_mark(text)
    return origin.mark if origin and origin.has_path else ""


def origin_of(text: str) -> Origin | None:
    """The origin that a name shows by its form; None for an entry, a Hub id or a directory."""
    return origin_by_mark(text) or (OBJECT if is_reference(text) and not os.path.isdir(text) else None)
