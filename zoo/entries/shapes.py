"""The sizes that Vision Transformers come in."""

from dataclasses import dataclass

from zoo.spec import Stage


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
