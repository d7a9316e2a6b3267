"""The sizes that networks come in, and what the entries of a family share."""

from dataclasses import dataclass, replace

from zoo.seen import Training
from zoo.spec import BackboneSpec, CheckpointFormat, Interpolation, Normalisation, Stage


@dataclass(frozen=True, slots=True)
class ViTSize:
    """Blocks, channels, attention heads and channels inside the MLP (None: 4 x the width) of a plain ViT."""

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

SO400M = ViTSize(27, 1152, 16, mlp=4304)

WIDTHS_T = (96, 192, 384, 768)
WIDTHS_B = (128, 256, 512, 1024)
WIDTHS_L = (192, 384, 768, 1536)
"""Channels of the stages of ConvNeXt and Swin."""


_REVISIONS = {
    "clip-b32": "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268",
    "clip-b16": "57c216476eefef5ab752ec549e440a49ae4ae5f3",
    "clip-l14": "32bd64288804d66eefd0ccbe215aa642df71cc41",
    "dinov2-s14": "ed25f3a31f01632728cabb09d1542f84ab7b0056",
    "dinov2-b14": "f9e44c814b77203eaa57a6bdbbd535f21ede1415",
    "dinov2-l14": "47b73eefe95e8d44ec3623f8890bd894b6ea2d6c",
    "dinov2-g14": "611a9d42f2335e0f921f1e313ad3c1b7178d206d",
    "siglip-b16": "7fd15f0689c79d79e38b1c2e2e2370a7bf2761ed",
    "siglip-l16": "d0da9f876e7d66b4e250cd2450c3ba2ce735e447",
    "siglip-so400m14": "d04cf29fca7b6374f74d8bea1969314492266b5e",
    "siglip2-b16": "75de2d55ec2d0b4efc50b3e9ad70dba96a7b2fa2",
    "aimv2-l14": "fcb5093a9c5b3efb7db5acee213849967fd18210",
    "aimv2-h14": "172051d9df825cda55607cfe9016da30f249a133",
}
"""Commits of repositories that entries are pinned to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What the backbones of one family share: the fields of `BackboneSpec` of the same names.

    Attributes:
        files: Address of the authors' files, ``{0}`` for the name that entries give in place of a repository.
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
    files: str = ""
    model_types: tuple[str, ...] = ("vit",)
    interpolation: Interpolation = "huggingface"
    gated: bool = False
    prefix_tokens: int = 1
    has_cls: bool = True
    has_final: bool = True
    stem_width: int | None = None
    input_size: int = 224
    sized: bool = False

    def vit(self, name: str, source: str, size: ViTSize, patch: int, parameters: int) -> BackboneSpec:
        """A plain Vision Transformer.

        Args:
            name: Its name.
            source: Repository, or name of the authors' file where the family has ``files``.
            size: Its size.
            patch: Side of a patch in pixels.
            parameters: Weights as it is run.
        """
        return BackboneSpec(
            name=name,
            family=self.family,
            supervision=self.supervision,
            data=self.data,
            seen=self.seen,
            parameters=parameters,
            repository="" if self.files else source,
            original=self.files.format(source),
            revision=_REVISIONS.get(name),
            checkpoint=self.checkpoint,
            model_types=self.model_types,
            interpolation=self.interpolation,
            stages=size.stages(patch),
            mlp_width=size.mlp,
            heads=size.heads,
            prefix_tokens=self.prefix_tokens,
            has_cls=self.has_cls,
            has_final=self.has_final,
            stem_width=self.stem_width,
            input_size=self.input_size,
            trained_size=self.input_size if self.sized else None,
            mean=self.normalisation.mean,
            std=self.normalisation.std,
            licence=self.licence,
            gated=self.gated,
            paper=self.paper,
        )

    def pyramid(
        self,
        name: str,
        source: str,
        blocks: tuple[int, ...],
        widths: tuple[int, ...],
        parameters: int,
        heads: int | None = None,
    ) -> BackboneSpec:
        """A network whose grid is 4 px a cell and gets coarser by twos from stage to stage; no class token.

        Args:
            name: Its name.
            source: As of `vit`.
            blocks: Blocks of each stage.
            widths: Channels of each stage.
            parameters: Weights as it is run.
            heads: Attention heads of the last stage; None for a ConvNet.
        """
        strides = [4 * 2**index for index in range(len(blocks))]
        return replace(
            self.vit(name, source, BASE, 4, parameters),
            stages=tuple(map(Stage, blocks, widths, strides)),
            heads=heads,
            prefix_tokens=0,
            has_cls=False,
        )
