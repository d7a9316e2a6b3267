"""The frozen description of a backbone: its layers, its origin, what it has seen. Imports nothing heavy."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast, get_args

from layerboard.zoo.references import is_local, split_part
from layerboard.zoo.spec.origin import TRANSFORMERS, Origin
from layerboard.zoo.spec.seen import Training

FINGERPRINTS = Path(__file__).parents[1] / "fingerprints"
"""Folder of fingerprints of features (`zoo.load.feature_fingerprint`): NAME.json for each entry with one."""

# Families of the registry in table order; a user's own backbones may have others.
FAMILIES: tuple[str, ...] = (
    *("FS", "CLIP", "DINO", "MoCo", "MAE", "BEiT", "ResNet", "DINOv2", "DINOv3", "SigLIP", "AIMv2"),
    *("data2vec", "I-JEPA", "iBOT", "MSN", "ConvNeXt", "Swin", "Franca", "CAPI", "RADIO", "PE", "TIPS"),
    *("SAM", "V-JEPA", "Hiera", "Pixio", "other", "random", "pixels"),
)
FLOORS = ("random", "pixels")  # untrained families, which come last in tables
_AttentionTap = Literal["input", "norm1", "query", "key", "value", "probabilities", "heads", "attention"]
_BlockTap = Literal["mid", "norm2", "mlp_hidden", "mlp", "skip", "branch", "block", "block-normed"]
Tap = Literal[_AttentionTap, _BlockTap, "final"]

# Taps inside a block that have features: of a transformer, in forward order; of a ConvNet; all.
TRANSFORMER_TAPS: tuple[Tap, ...] = (
    *("input", "norm1", "query", "key", "value", "heads"),
    *("attention", "mid", "norm2", "mlp_hidden", "mlp"),
)
CONVNET_TAPS: tuple[Tap, ...] = ("input", "skip", "branch")
SUBLAYER_TAPS: tuple[Tap, ...] = (*TRANSFORMER_TAPS, *CONVNET_TAPS[1:])
NORMED: Tap = "block-normed"
# what is read of a block besides its output, on request
READ_TAPS: tuple[Tap, ...] = (*SUBLAYER_TAPS, NORMED)
_ORDER: tuple[Tap, ...] = get_args(Tap)

# How absolute position embeddings are resized to another grid: zoo.load.adapters.
Interpolation = Literal["huggingface", "dino", "timm", "google"]
# Types of networks whose positions are relative, rotary or resized internally (RADIO): no rule changes them.
OWN_POSITIONS = frozenset(
    ("beit", "capi", "data2vec-vision", "dinov3_vit", "focalnet", "radio", "swin", "swinv2", "vjepa2")
)
# Number formats of a forward pass: weights and products in one format, or (amp, automatic mixed precision)
# weights in float32 and products in a shorter one, by torch's autocast. The widest first.
Dtype = Literal["float32", "amp-bfloat16", "float16", "bfloat16"]
VectorPooling = Literal["cls", "mean", "cls+mean", "gem", "patchwise"]


@dataclass(frozen=True, slots=True, order=True)
class Layer:
    """A place in a backbone where features are read.

    ``tap="block"``: the residual stream after block ``index`` (1..depth), before any final norm; index 0 is
    the input of block 1. ``tap="final"``: the last block's output after the family's final norm; its index is
    the depth. ``tap="block-normed"``: the output of any block from 1 on, after that same norm, so that of the
    last block is ``final``. For a ResNet, blocks are its residual blocks and index 0 is the stem.

    Inside a block, 1..depth, ``input`` is the input of the block. In a transformer, ``norm1`` and ``norm2``
    are the inputs of its attention and its MLP. ``query``, ``key`` and ``value`` are those of all heads,
    concatenated, after a rotary embedding and before the scale and any position bias. ``heads`` are the
    concatenated outputs of all heads, before their projection. ``attention`` and ``mlp`` are what these two
    add to the residual stream, after LayerScale. ``mid`` is the stream between them: ``mid`` is ``input`` +
    ``attention``, and ``block`` is ``mid`` + ``mlp``; in a block trained without skips, they are
    ``attention`` and ``mlp`` alone. ``mlp_hidden`` is the hidden layer of the MLP, after its activation and
    its gate. ``probabilities`` are the attention weights: not features but `zoo.features.AttentionMaps`,
    only on request. In a residual block of a ConvNet, ``skip`` bypasses the convolutions, after any
    projection, and ``branch`` is added to it, before any activation of the sum.

    For a set of several blocks, ``index`` is the deepest, and ``fused`` are the others, ascending.
    """

    index: int
    tap: Tap = "block"
    fused: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.fused:
            return "+".join(map(str, self.members))
        if self.index < 0:
            return "all"
        if self.tap == "final":
            return "final"
        return str(self.index) if self.tap == "block" else f"{self.index}.{self.tap}"

    @property
    def place(self) -> tuple[int, int, int, tuple[int, ...]]:
        """Sort key: the order in which a forward pass reaches layers; sets follow their deepest block."""
        return self.index, _ORDER.index(self.tap), len(self.fused), self.fused

    @classmethod
    def of_record(cls, index: int, tap: str) -> "Layer":
        """The layer of a record, which has a set of blocks in place of a tap: ``9+10+11+12``."""
        if stands_for_set(tap):
            *others, deepest = map(int, tap.split("+"))
            return cls(deepest, fused=tuple(others))
        known = next((name for name in _ORDER if name == tap), None)
        if known is None:
            raise ValueError(f"there is no tap {tap!r}")
        return cls(index, known)

    @property
    def record_tap(self) -> str:
        """The layer's tap in records, as `of_record` reads it."""
        return str(self) if self.fused else self.tap

    @property
    def members(self) -> "tuple[Layer, ...]":
        """The layers of a set, ascending; for a single layer, itself."""
        return (*(Layer(index, self.tap) for index in self.fused), replace(self, fused=()))


def stands_for_set(tap: str) -> bool:
    """Whether the tap of a record names a set of several blocks."""
    return "+" in tap


Layers = tuple[Layer, ...]  # in forward order
WHOLE_BACKBONE = Layer(-1)  # in place of a layer if a score is of no single layer
FAST_RESIZE = "fast-resize"
_NAME = re.compile(rf"(.+?)(?:@([0-9]{{1,6}})px)?(?:@({'|'.join(get_args(Dtype))}))?(@{FAST_RESIZE})?")
_STEP = re.compile(r"(.+)@step([0-9]{1,15})")  # of an entry's name


@dataclass(frozen=True, slots=True)
class Variant:
    """A backbone as a run shows it images, by its name, such as `dino-b16@448px@bfloat16@fast-resize`.

    What a name leaves out is as usual: the backbone's own input size, float32, images resized by Pillow.
    """

    entry: str  # name of the backbone in the registry
    input_size: int | None = None  # side in pixels; None for the backbone's own
    dtype: Dtype | None = None  # None for float32
    fast_resize: bool = False  # whether torch resizes the images

    @classmethod
    def of(cls, name: str) -> "Variant":
        """The variant of that name; a name that has no such form is an entry's."""
        match = _NAME.fullmatch(name)
        if match is None:
            return cls(name)
        entry, size, dtype, fast = match.groups()
        return cls(entry, int(size) if size else None, cast("Dtype | None", dtype), fast is not None)

    def __str__(self) -> str:
        ends = self.input_size and f"{self.input_size}px", self.dtype, self.fast_resize and FAST_RESIZE
        return "@".join([self.entry, *(end for end in ends if end)])

    @property
    def rank(self) -> tuple[str, int, bool, int]:
        """Sort key: a backbone's own size, then larger ones; Pillow before torch; the widest format first."""
        dtype = get_args(Dtype).index(self.dtype or "float32")
        return self.entry, self.input_size or 0, self.fast_resize, dtype

    @property
    def checkpoint(self) -> "tuple[Variant, int]":
        """The series of a checkpoint, and its step: of `run1@step100@448px` `run1@448px` and 100.

        A backbone that is no checkpoint of a training is its own series, with step -1.
        """
        match = _STEP.fullmatch(self.entry)
        return (self, -1) if match is None else (replace(self, entry=match[1]), int(match[2]))


def entry_name(name: str) -> str:
    """Name of a backbone as in the registry, without what makes it a variant."""
    return Variant.of(name).entry


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Mean to subtract from a pixel (RGB) in [0, 1], and standard deviation to divide by."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
CLIP = Normalisation((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
# No change to pixels in [0, 1]: the network expects them so, or normalises them itself.
UNIT = Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive blocks whose outputs share width (channels) and stride (input pixels per cell)."""

    blocks: int
    width: int
    stride: int


@dataclass(frozen=True, slots=True)
class WeightFile:
    """The published file of a backbone's weights, and who says so; "" and None where nobody is known to.

    ``sha256`` are the digits of its SHA-256 (lower case), or the first of them if no others are known. They
    are of the one file ``name``, and without a name of nobody knows which. ``size`` is in bytes, of all files
    together where there are several.
    """

    name: str = ""
    sha256: str = ""
    size: int | None = None
    source: str = ""  # of these facts, and of the pinned commit
    note: str = ""  # what is open, such as other commits that are known


NO_FILE = WeightFile()  # of which nothing is known


@dataclass(frozen=True, slots=True)
class Retraining:
    """How the training of a backbone differs from that of its reference, which has the same blocks."""

    reference: str  # name of a backbone that was trained otherwise, or from which training went on
    change: str  # in words, such as ``another seed``
    without_skips: int = 0  # number of the block without skip connections; 0 for none


UNTRAINED = "untrained"  # the change of a network that was never trained


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneSpec:
    """One backbone of the registry: all facts about it that tables, views and checks need.

    ``name`` is short and unique, such as ``dino-b16``; ``dino-b16@448px`` at another size. ``family`` is one
    of `FAMILIES` or any other word; ``supervision`` and ``data`` describe its training in a few words.
    ``origin`` is where it comes from. ``repository`` is a Hub id, a local directory in Hugging Face format,
    or a file of weights as the authors publish it; for packaged and generated weights, the Python function
    that returns their directory and revision; for any other origin, the name by which its loader finds it;
    "" if no repository has the weights: ``original`` says where they are.

    ``retrained`` says of which other backbone it is another training, or a continued one.
    ``network`` says which of two networks of a training the published features are of: the one that was
    ``trained``, or its ``average`` (a teacher, a momentum encoder); "" if the entry means neither.

    A plain ViT has one stage. ``heads`` are those of the last stage, None for a ConvNet. ``prefix_tokens``
    come before the patch tokens, 0 for a ConvNet; ``has_cls`` says whether the first is a class token, and
    ``has_final`` whether there is a final norm and so the layer ``final``. ``taps`` are the taps inside
    blocks that were found in a network outside the registry, in forward order (None: no taps); for other
    backbones, None means all taps of their kind. ``stem_width`` (channels) and ``stem_stride`` (input pixels
    per cell) are those of layer 0, None if they are those of the first stage. ``input_size`` is the side in
    pixels at which it is evaluated; every view scales with it. ``fixed_size`` says that it takes squares of
    that side only, not all multiples of the patch. ``shown`` are the layers that an ONNX file outputs, None
    for all layers, and ``vectors`` the pooling of those that it outputs instead of grids, None for grids.
    ``dtype`` is the number format of its forward pass, and ``fast_resize`` whether its images are resized by
    torch (`zoo.view.views.FastResized`); both describe how it is run. ``mean`` and ``std`` normalise RGB in
    [0, 1]. ``parameters`` is the number of weights that run, without heads.
    """

    name: str
    family: str
    supervision: str
    repository: str
    network: Literal["", "trained", "average"] = ""
    revision: str | None = None  # pinned commit; if None, it is resolved and recorded when loaded
    file: WeightFile = NO_FILE  # as it was published, by which what is loaded is checked
    origin: Origin = TRANSFORMERS
    model_types: tuple[str, ...] = ()  # allowed types of config.json or a state dict; () for any
    stages: tuple[Stage, ...]
    taps: tuple[Tap, ...] | None = None
    mlp_width: int | None = None  # hidden channels of the MLP of a plain ViT; None for 4 x the width
    gated_mlp: bool = False  # whether its hidden layer is a product of two projections of that width
    heads: int | None
    prefix_tokens: int
    has_cls: bool
    has_final: bool
    stem_width: int | None = None
    stem_stride: int | None = None
    input_size: int = 224
    trained_size: int | None = None  # image side that its checkpoint must be for; None if not checked
    fixed_size: bool = False
    shown: Layers | None = None
    vectors: VectorPooling | None = None
    dtype: Dtype = "float32"
    fast_resize: bool = False
    interpolation: Interpolation = "huggingface"  # that of the authors if their code has a rule
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)
    licence: str = "unknown"  # SPDX id or name; of two the stricter, the other in brackets
    gated: bool = False  # whether the repository requires that its terms be accepted
    data: str = "unknown"
    seen: Training | None = None  # of the datasets of tasks; None if unknown
    parameters: int | None = None
    paper: str = ""  # reference of the training method
    recipe: str = ""  # how it was trained, with the source in brackets; "": not known
    code: str = ""  # repository of the authors' code on GitHub, owner/name; "": none is known
    original: str = ""
    trained: bool = True  # False for seeded random weights; tables then call the backbone untrained
    retrained: Retraining | None = None

    @property
    def entry(self) -> str:
        """The backbone's name without suffixes: all sizes and formats of one share an entry and a file."""
        return entry_name(self.name)

    @property
    def path(self) -> str:
        """The whole path of a directory or a file of this machine that says what it is; else ""."""
        mark = self.origin.mark
        is_path = self.origin.has_path and (mark or is_local(self.repository))
        return os.path.abspath(self.repository.removeprefix(mark)) if is_path else ""

    @property
    def is_file(self) -> bool:
        """Whether its weights are a file of this machine, or one of several networks in it."""
        return split_part(self.repository)[0].is_file()

    @property
    def mixed(self) -> bool:
        """Whether the backbone runs in mixed precision: weights in float32, products shorter, by autocast."""
        return self.dtype.startswith("amp-")

    @property
    def is_floor(self) -> bool:
        """Whether the backbone is an untrained baseline: random draws, or the raw pixels."""
        return self.family in FLOORS

    @property
    def is_toy(self) -> bool:
        """Whether its trained weights come with this package: a network of the mini suites."""
        return self.trained and bool(self.origin.supply)

    @property
    def depth(self) -> int:
        """Number of blocks."""
        return sum(stage.blocks for stage in self.stages)

    @property
    def width(self) -> int:
        """Channels of the last block."""
        return self.stages[-1].width

    @property
    def patch_size(self) -> int:
        """Side in pixels of one cell of the coarsest grid; input sizes are multiples of it."""
        return max(stage.stride for stage in self.stages)

    @property
    def layers(self) -> Layers:
        """All layers from 0 on, in forward order; nothing inside blocks."""
        if self.shown is not None:
            return self.shown
        blocks = tuple(Layer(index) for index in range(self.depth + 1))
        return (*blocks, Layer(self.depth, "final")) if self.has_final else blocks

    @property
    def inside(self) -> tuple[Tap, ...]:
        """Taps of every block that have features, in forward order; see ``taps``."""
        if self.taps is not None:
            return self.taps
        if not self.origin.has_architecture:
            return ()
        return CONVNET_TAPS if self.heads is None else TRANSFORMER_TAPS

    @property
    def read(self) -> tuple[Tap, ...]:
        """Taps of its blocks besides their outputs, in forward order: those inside, and behind the norm.

        Early blocks of another width than the last have no place behind its final norm (`has`).
        """
        is_normed = self.has_final and self.shown is None and self.origin.hooked
        return (*self.inside, NORMED) if is_normed else self.inside

    def poolings_of(self, asked: Iterable[str]) -> tuple[VectorPooling, ...]:
        """Poolings of its vectors among those asked for; the mean stands in for a class token."""
        if self.vectors is not None:
            return (self.vectors,)
        there = {*asked} - {"patchwise"} if self.has_cls else {*asked, "mean"} - {"cls", "cls+mean"}
        return tuple(each for each in get_args(VectorPooling) if each in there)

    @property
    def is_convnet(self) -> bool:
        """Whether its blocks have neither attention nor another mixing of tokens, nor tokens before these."""
        return self.heads is None and "attention" not in self.inside and not self.prefix_tokens

    def has(self, layer: Layer) -> bool:
        """Whether there is such a layer; a network is assumed to have all taps of its kind inside blocks."""
        if self.shown is not None:
            return layer in self.shown
        if layer.tap == "block":
            return 0 <= layer.index <= self.depth
        if layer.tap == "final":
            return self.has_final and layer.index == self.depth
        there = self.heads is not None if layer.tap == "probabilities" else layer.tap in self.read
        there = there and 1 <= layer.index <= self.depth
        return there and (layer.tap != NORMED or self.stage_of(layer).width == self.width)

    def stage_of(self, layer: Layer) -> Stage:
        """Stage of a layer; layer 0 has the first stage's stride and its own width."""
        if layer.index == 0:
            first = self.stages[0]
            return Stage(0, self.stem_width or first.width, self.stem_stride or first.stride)
        last = 0
        for stage in self.stages:
            last += stage.blocks
            if layer.index <= last:
                return stage
        raise ValueError(f"{self.name} has {self.depth} blocks; there is no layer {layer.index}")
