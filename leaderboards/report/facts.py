"""What the report says of backbones beside their numbers; whoever knows a registry passes it in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """A backbone as filters and costs need it.

    Attributes:
        supervision: What it learned from in a word or two, such as ``labels``; "" where that is not known.
        licence: SPDX id or name of its weights' licence; "" where that is not known.
        parameters: Weights of the whole network; None where nobody has counted them.
        widths: Length of a vector after each block, from block 1; empty where that is not known.
    """

    supervision: str = ""
    licence: str = ""
    parameters: int | None = None
    widths: tuple[int, ...] = ()


UNKNOWN = Facts()
"""Of a backbone of somebody's own."""
