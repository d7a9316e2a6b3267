"""Settings of mask propagation."""

from dataclasses import dataclass, replace
from typing import ClassVar

from layerboard.tasks.propagation.carrying import Neighbourhood
from layerboard.zoo.view.released import ScriptFrame
from layerboard.zoo.view.views import RaisedFrame, Stretch, Tiles, View, WholeFrame


@dataclass(frozen=True, slots=True)
class PropagationConfig(Neighbourhood):
    """Settings of mask propagation."""

    keep_vanished: bool  # whether an object too small for the token grid keeps the token that it covers most
    every_channel: bool  # whether each object of the first mask has a channel, even without a token
    nearest: bool  # whether maps are upsampled by nearest neighbour, not bilinearly; constant channels: 0
    view: View
    decimals: int | None  # to which the scores, as fractions, are rounded; None for full precision
    primary: ClassVar[str] = "J&F"


_STANDARD = PropagationConfig(
    n_last_frames=7,
    topk=5,
    radius=12,
    circle=False,
    temperature=0.1,
    keep_vanished=True,
    every_channel=False,
    nearest=False,
    view=WholeFrame(short=480),
    decimals=None,
)

_PAPER = replace(_STANDARD, keep_vanished=False, view=Tiles(short=448, tile=224), decimals=3)

CONFIGS = {
    "standard": _STANDARD,
    "paper": _PAPER,
    "paper-squares": replace(_PAPER, view=Stretch(side=224)),
    "dino": replace(_STANDARD, keep_vanished=False, view=ScriptFrame(short=480, step=64)),
    "dinov3": replace(
        _STANDARD,
        circle=True,
        temperature=0.2,
        keep_vanished=False,
        every_channel=True,
        nearest=True,
        view=RaisedFrame(short=960),
    ),
}
