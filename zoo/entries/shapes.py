"""The sizes that Vision Transformers come in, and what the entries of a family share."""

from dataclasses import dataclass

from zoo.normalisation import Normalisation
from zoo.spec import BackboneSpec, CheckpointFormat, Family, Stage


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of a plain Vision Transformer.

    Attributes:
        depth: Blocks.
        width: Channels.
        heads: Attention heads.
    """

    depth: int
    width: int
    heads: int

    def stages(self, patch: int) -> tuple[Stage]:
        """Its one stage, at that patch size in pixels."""
        return (Stage(self.depth, self.width, patch),)


SMALL = Shape(12, 384, 6)
BASE = Shape(12, 768, 12)
LARGE = Shape(24, 1024, 16)
HUGE = Shape(32, 1280, 16)
MINI = Shape(12, 96, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViTFamily:
    """What the Vision Transformers of one family share: one class token, a final norm, and these facts."""

    family: Family
    supervision: str
    normalisation: Normalisation
    licence: str
    paper: str
    checkpoint: CheckpointFormat = "transformers"

    def entry(self, name: str, repository: str, shape: Shape, patch: int) -> BackboneSpec:
        """One backbone of the family, at a patch size in pixels."""
        return BackboneSpec(
            name=name,
            family=self.family,
            supervision=self.supervision,
            repository=repository,
            checkpoint=self.checkpoint,
            stages=shape.stages(patch),
            heads=shape.heads,
            prefix_tokens=1,
            has_cls=True,
            has_final=True,
            mean=self.normalisation.mean,
            std=self.normalisation.std,
            licence=self.licence,
            paper=self.paper,
        )
