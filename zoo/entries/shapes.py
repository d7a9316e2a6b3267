"""The sizes that networks come in, and what the entries of a family share."""

from dataclasses import dataclass

from zoo.seen import Training
from zoo.spec import BackboneSpec, CheckpointFormat, Interpolation, Normalisation, Stage


@dataclass(frozen=True, slots=True)
class ViTSize:
    """Size of a plain Vision Transformer.

    Attributes:
        depth: Blocks.
        width: Channels.
        heads: Attention heads.
        mlp: Channels inside the MLP; None where they are 4 x the width.
    """

    depth: int
    width: int
    heads: int
    mlp: int | None = None

    def stages(self, patch: int) -> tuple[Stage]:
        """Its one stage, at that patch size in pixels."""
        return (Stage(self.depth, self.width, patch),)


SMALL = ViTSize(12, 384, 6)
BASE = ViTSize(12, 768, 12)
LARGE = ViTSize(24, 1024, 16)
HUGE = ViTSize(32, 1280, 16)
GIANT = ViTSize(40, 1536, 24)
"""DINOv2's; where its MLP is gated, two thirds of 4 x the width are on either side of the gate."""

MINI = ViTSize(12, 96, 3)
MINI_NARROW = ViTSize(12, 64, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViTFamily:
    """What the Vision Transformers of one family share: the fields of `BackboneSpec` of the same names.

    Attributes:
        sized: Whether checkpoints for images of another side than ``input_size`` are others of the family.
    """

    family: str
    supervision: str
    data: str
    seen: Training
    normalisation: Normalisation
    licence: str
    paper: str
    checkpoint: CheckpointFormat = "transformers"
    model_types: tuple[str, ...] = ("vit",)
    interpolation: Interpolation = "huggingface"
    gated: bool = False
    prefix_tokens: int = 1
    has_cls: bool = True
    input_size: int = 224
    sized: bool = False

    def entry(
        self,
        name: str,
        repository: str,
        shape: ViTSize,
        patch: int,
        parameters: int,
        revision: str | None = None,
    ) -> BackboneSpec:
        """One backbone of the family, at a patch size in pixels; it has a final norm over all tokens."""
        return BackboneSpec(
            name=name,
            family=self.family,
            supervision=self.supervision,
            data=self.data,
            seen=self.seen,
            parameters=parameters,
            repository=repository,
            revision=revision,
            checkpoint=self.checkpoint,
            model_types=self.model_types,
            interpolation=self.interpolation,
            stages=shape.stages(patch),
            mlp_width=shape.mlp,
            heads=shape.heads,
            prefix_tokens=self.prefix_tokens,
            has_cls=self.has_cls,
            has_final=True,
            input_size=self.input_size,
            trained_size=self.input_size if self.sized else None,
            mean=self.normalisation.mean,
            std=self.normalisation.std,
            licence=self.licence,
            gated=self.gated,
            paper=self.paper,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PyramidFamily:
    """What networks of one family share whose grid gets coarser from stage to stage; no class token.

    Attributes:
        stride: Pixels a side of a cell of the first stage; it doubles from stage to stage.
        stem_width: Channels of what enters block 1; None where they are the first stage's.
    """

    family: str
    supervision: str
    data: str
    seen: Training
    normalisation: Normalisation
    licence: str
    paper: str
    has_final: bool
    model_types: tuple[str, ...]
    checkpoint: CheckpointFormat = "transformers"
    gated: bool = False
    input_size: int = 224
    stride: int = 4
    stem_width: int | None = None

    def entry(
        self,
        name: str,
        repository: str,
        blocks: tuple[int, ...],
        widths: tuple[int, ...],
        parameters: int,
        heads: int | None = None,
    ) -> BackboneSpec:
        """One backbone of the family, from the blocks and widths of its stages."""
        strides = [self.stride * 2**index for index in range(len(blocks))]
        return BackboneSpec(
            name=name,
            family=self.family,
            supervision=self.supervision,
            data=self.data,
            seen=self.seen,
            parameters=parameters,
            repository=repository,
            checkpoint=self.checkpoint,
            model_types=self.model_types,
            stages=tuple(map(Stage, blocks, widths, strides)),
            heads=heads,
            prefix_tokens=0,
            has_cls=False,
            has_final=self.has_final,
            stem_width=self.stem_width,
            input_size=self.input_size,
            mean=self.normalisation.mean,
            std=self.normalisation.std,
            licence=self.licence,
            gated=self.gated,
            paper=self.paper,
        )
