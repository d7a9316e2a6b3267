"""The frozen description of a backbone and the names of its layers. Imports nothing heavy."""

import re
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from zoo.seen import Training

FAMILIES: tuple[str, ...] = (
    *(
        "FS",
        "CLIP",
        "DINO",
        "MoCo",
        "MAE",
        "BEiT",
        "ResNet",
        "DINOv2",
        "DINOv3",
        "SigLIP",
        "AIMv2",
        "data2vec",
    ),
    *("I-JEPA", "iBOT", "MSN", "ConvNeXt", "Swin", "Franca", "CAPI", "RADIO", "PE", "TIPS", "SAM", "V-JEPA"),
    *("Hiera", "Pixio", "other", "random"),
)
"""Families of the registry in the order of the tables; own backbones may be of others."""

Tap = Literal[
    "input",
    "norm1",
    "query",
    "key",
    "value",
    "probabilities",
    "heads",
    "attention",
    "mid",
    "norm2",
    "mlp_hidden",
    "mlp",
    "skip",
    "branch",
    "block",
    "final",
]

TRANSFORMER_TAPS: tuple[Tap, ...] = (
    *("input", "norm1", "query", "key", "value", "heads"),
    *("attention", "mid", "norm2", "mlp_hidden", "mlp"),
)
"""Taps inside a block of a transformer that have features, in the order of a forward."""

CONVNET_TAPS: tuple[Tap, ...] = ("input", "skip", "branch")
"""Taps inside a residual block of a ConvNet, in the order in which they are shown."""

SUBLAYER_TAPS: tuple[Tap, ...] = (*TRANSFORMER_TAPS, *CONVNET_TAPS[1:])
"""All taps inside a block that have features."""

_ORDER: tuple[Tap, ...] = get_args(Tap)

Interpolation = Literal["huggingface", "dino", "timm"]
"""How absolute position embeddings are fitted to another grid: `zoo.load.adapters`."""

CheckpointFormat = Literal["transformers", "original", "packaged", "generated", "object", "module", "timm"]


@dataclass(frozen=True, slots=True, order=True)
class Layer:
    """A place in a backbone that is read.

    ``tap="block"``: the residual stream after block ``index`` (1..depth), before any final norm; index 0 is
    what enters block 1. ``tap="final"``: the last block's output after the family's final norm; its index is
    the depth. For a ResNet, blocks are its residual blocks and index 0 is the stem.

    Inside a block, 1..depth, ``input`` is what enters it. In a transformer, ``norm1`` and ``norm2`` are the
    outputs of its two norms, which are what its attention and its MLP see. ``query``, ``key`` and ``value``
    are those of all heads side by side, as they attend: after a rotary embedding where there is one, before
    the scale and any position bias. ``heads`` are the outputs of all heads side by side, before they are
    projected. ``attention`` and ``mlp`` are what these two add to the residual stream, after LayerScale where
    there is one. ``mid`` is the stream between them: ``input`` + ``attention``, and ``block`` is ``mid`` +
    ``mlp``; in a block that was trained without skips, ``mid`` is ``attention`` alone and ``block`` is
    ``mlp``. ``mlp_hidden`` is what the MLP projects back, after its activation and its gate.
    ``probabilities`` are what its attention weighs with: not features but `zoo.features.AttentionMaps`,
    computed only where they are asked for.

    In a residual block of a ConvNet, ``skip`` is what goes past the convolutions, after the projection where
    there is one, and ``branch`` is what is added to it, before any activation of the sum.

    Several blocks may be taken together: ``index`` is the deepest of them, and ``fused`` are the others,
    rising.
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
        """Sort key: the order in which one forward reaches layers; sets of blocks follow their deepest."""
        return self.index, _ORDER.index(self.tap), len(self.fused), self.fused

    @classmethod
    def of_record(cls, index: int, tap: str) -> "Layer":
        """The layer of a record, which tells sets of blocks in place of a tap: ``9+10+11+12``."""
        if stands_for_set(tap):
            *others, deepest = map(int, tap.split("+"))
            return cls(deepest, fused=tuple(others))
        (known,) = (name for name in _ORDER if name == tap)
        return cls(index, known)

    @property
    def record_tap(self) -> str:
        """What records call its tap, as `of_record` reads it."""
        return str(self) if self.fused else self.tap

    @property
    def members(self) -> "tuple[Layer, ...]":
        """The layers that are taken together, rising; of a layer alone, it."""
        return (*(Layer(index, self.tap) for index in self.fused), replace(self, fused=()))


def stands_for_set(tap: str) -> bool:
    """Whether the tap of a record names several blocks that are taken together."""
    return "+" in tap


WHOLE_BACKBONE = Layer(-1)
"""Stands where a score is of no single layer."""


_SIZED = re.compile(r"(.+)@([0-9]{1,6})px")


def sized_name(name: str, side: int) -> str:
    """Name of a backbone that is evaluated at another input size than its own, beside it: `name@448px`."""
    return f"{name}@{side}px"


def split_size(name: str) -> tuple[str, int | None]:
    """A backbone's name and the input size in pixels that it tells; None where it tells none."""
    match = _SIZED.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, None)


def entry_name(name: str) -> str:
    """Name of a backbone without an input size, as the registry has it."""
    return split_size(name)[0]


@dataclass(frozen=True, slots=True)
class Normalisation:
    """What is subtracted from a pixel (RGB) in [0, 1], and what the difference is divided by."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
CLIP = Normalisation((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
UNIT = Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
"""Nothing is done to pixels in [0, 1]: the network takes them so, or normalises them itself."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive blocks whose outputs share width (channels) and stride (input pixels a cell)."""

    blocks: int
    width: int
    stride: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneSpec:
    """One backbone of the registry: all facts about it that tables, views and checks need.

    Attributes:
        name: Short unique name, such as ``dino-b16``; ``dino-b16@448px`` beside it at another input size.
        family: Group in the tables: one of `FAMILIES`, or any other word for a backbone of somebody's own.
        supervision: What it learned from, in a few words: labels, texts, images alone.
        data: What it was trained on, in a few words.
        seen: What of the datasets of tasks its training has seen; None where nobody has said.
        parameters: Weights of the network as it is run, without heads and other towers; None where nobody has
            counted them.
        repository: Hub id, or a local directory in Hugging Face format, or a file of weights as the authors
            publish it; "" where no repository has them and the file must be given.
        original: Where the authors' file is, for a backbone without a repository.
        revision: Pinned commit of the repository; None where it is not known, and then resolved and recorded
            when the backbone is loaded.
        checkpoint: Format of the weights: ``transformers``, ``original`` (a state dict under the names of the
            authors' code, see `zoo.load.convert`), ``packaged`` (files that come with this package),
            ``generated`` (files written from a seed; none of a random floor), of both of which ``repository``
            names the Python function that gives their directory and revision, ``object`` (no file:
            ``repository`` names a Python function, see `zoo.load.own`), ``module`` (no file: a network of
            this process, see `zoo.load.module`) or ``timm`` (a network that timm builds).
        stages: Blocks with their widths and strides; a plain ViT has one stage.
        model_types: What ``model_type`` in ``config.json`` may be, and what `zoo.load.convert` may make of a
            state dict under original names; anything if empty.
        taps: What a backbone of somebody's own shows inside its blocks, beside probabilities; None where it
            shows nothing, and for all that is no Python object: a transformer is taken to have all
            `TRANSFORMER_TAPS`, a ConvNet all `CONVNET_TAPS`.
        mlp_width: Channels inside the MLP of a plain Vision Transformer; None where they are 4 x the width.
        heads: Attention heads, of the last stage where stages differ; None for a ConvNet.
        prefix_tokens: Tokens before the patch tokens (class and registers); 0 for a ConvNet.
        has_cls: Whether the first prefix token is a class token.
        has_final: Whether a final norm exists, so that the layer ``final`` does.
        stem_width: Channels of layer 0; None where it equals the first stage's width.
        stem_stride: Input pixels a cell of layer 0; None where it equals the first stage's stride.
        input_size: Side in pixels at which the backbone is evaluated; every view scales with it.
        trained_size: Side in pixels of the images that its checkpoint must be made for, whatever it is
            evaluated at; None where that is not compared.
        fixed_size: Whether it takes images of ``input_size`` x ``input_size`` only; those of networks of
            transformers take all multiples of the patch size.
        interpolation: Rule by which absolute position embeddings are fitted to another grid than that of the
            training, the authors' where their code has one; says nothing where there are none.
        mean: Per-channel mean (RGB, pixels in [0, 1]) of the input normalisation.
        std: Per-channel standard deviation of the same.
        licence: SPDX id or name of the weights' licence.
        gated: Whether the repository gives its files only to who has accepted its terms.
        paper: Reference of the training method.
        trained: False for seeded random weights; tables then call the backbone untrained.
    """

    name: str
    family: str
    supervision: str
    repository: str
    revision: str | None = None
    checkpoint: CheckpointFormat = "transformers"
    model_types: tuple[str, ...] = ()
    stages: tuple[Stage, ...]
    taps: tuple[Tap, ...] | None = None
    mlp_width: int | None = None
    heads: int | None
    prefix_tokens: int
    has_cls: bool
    has_final: bool
    stem_width: int | None = None
    stem_stride: int | None = None
    input_size: int = 224
    trained_size: int | None = None
    fixed_size: bool = False
    interpolation: Interpolation = "huggingface"
    mean: tuple[float, float, float] = field(default=(0.5, 0.5, 0.5))
    std: tuple[float, float, float] = field(default=(0.5, 0.5, 0.5))
    licence: str = "unknown"
    gated: bool = False
    data: str = "unknown"
    seen: Training | None = None
    parameters: int | None = None
    paper: str = ""
    original: str = ""
    trained: bool = True

    @property
    def entry(self) -> str:
        """Its name without an input size: several sizes of a backbone have one entry and one file."""
        return entry_name(self.name)

    @property
    def is_floor(self) -> bool:
        """Whether it is a random floor: each of its layers is a draw that knows nothing of the image."""
        return self.family == "random"

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
        """Pixels a side of one cell of the coarsest grid; input sizes are multiples of it."""
        return max(stage.stride for stage in self.stages)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers from 0 on, in the order in which one forward reaches them; nothing inside blocks."""
        blocks = tuple(Layer(index) for index in range(self.depth + 1))
        return (*blocks, Layer(self.depth, "final")) if self.has_final else blocks

    @property
    def inside(self) -> tuple[Tap, ...]:
        """Taps of every block that have features, in the order of a forward; see ``taps``."""
        if self.taps is not None:
            return tuple(tap for tap in SUBLAYER_TAPS if tap in self.taps)
        if self.is_floor or self.checkpoint in ("object", "module", "timm"):
            return ()
        return CONVNET_TAPS if self.heads is None else TRANSFORMER_TAPS

    def has(self, layer: Layer) -> bool:
        """Whether there is such a layer; a network is taken to have all that its kind has inside blocks."""
        if layer.tap == "block":
            return 0 <= layer.index <= self.depth
        if layer.tap == "final":
            return self.has_final and layer.index == self.depth
        there = self.heads is not None if layer.tap == "probabilities" else layer.tap in self.inside
        return there and 1 <= layer.index <= self.depth

    def stage_of(self, layer: Layer) -> Stage:
        """Stage that a layer belongs to; layer 0 has the first stage's stride and its own width."""
        if layer.index == 0:
            first = self.stages[0]
            return Stage(0, self.stem_width or first.width, self.stem_stride or first.stride)
        last = 0
        for stage in self.stages:
            last += stage.blocks
            if layer.index <= last:
                return stage
        raise ValueError(f"{self.name} has {self.depth} blocks; there is no layer {layer.index}")
