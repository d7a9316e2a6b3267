"""Settings of mask propagation."""

from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, ClassVar, Literal

from layerboard.tasks.propagation.metric import Neighbourhood
from layerboard.zoo.view.released import NativeFrame, NativeSquare, ScriptFrame, TokenFrame
from layerboard.zoo.view.views import RaisedFrame, Stretch, Tiles, View, WholeFrame

Decoding = Literal["patches", "nearest", "frame", "frame unscaled"]


@dataclass(frozen=True, slots=True)
class PropagationConfig(Neighbourhood):
    """Settings of mask propagation.

    ``decoding`` is how a soft map becomes a mask: upsampled bilinearly by the patch size, then to the frame's
    size by nearest neighbour (``patches``); at once by nearest neighbour (``nearest``); or at once bilinearly
    (``frame``). Channels are scaled to [0, 1] first, in ``frame unscaled`` they are not.

    ``others`` are the same settings with other answers to what their source does not say: they differ in the
    neighbourhood, but for the source frames, and in the decoding. Each is scored by its own.
    """

    keep_vanished: bool  # whether an object too small for the token grid keeps the token that it covers most
    every_channel: bool  # whether each object of the first mask has a channel, even without a token
    decoding: Decoding
    view: View
    decimals: int | None  # to which the scores, as fractions, are rounded; None for full precision
    others: "tuple[PropagationConfig, ...]"
    primary: ClassVar[str] = "J&F"

    @property
    def settings(self) -> "tuple[PropagationConfig, ...]":
        """The settings whose score is primary, then the others."""
        return (self, *self.others)

    @property
    def neighbourhood(self) -> Neighbourhood:
        """What carries labels, without what makes masks of them."""
        return Neighbourhood(**{field.name: getattr(self, field.name) for field in fields(Neighbourhood)})


def _open(config: PropagationConfig, **answers: tuple[Any, ...]) -> PropagationConfig:
    """The settings, with all combinations of answers to what their source does not say, by field."""
    mixed = [replace(config, **dict(zip(answers, mix, strict=True))) for mix in product(*answers.values())]
    return replace(config, others=tuple(each for each in mixed if each != config))


_STANDARD = PropagationConfig(
    n_last_frames=7,
    topk=5,
    radius=12,
    circle=False,
    temperature=0.1,
    keep_vanished=True,
    every_channel=False,
    decoding="patches",
    view=WholeFrame(short=480),
    decimals=None,
    others=(),
)

_PAPER = replace(_STANDARD, keep_vanished=False, view=Tiles(short=448, tile=224), decimals=3)
_DINO = replace(_STANDARD, keep_vanished=False, view=ScriptFrame(short=480, step=64))
_DINOV3 = replace(
    _STANDARD,
    circle=True,
    temperature=0.2,
    keep_vanished=False,
    every_channel=True,
    decoding="nearest",
    view=RaisedFrame(short=960),
)


def _pe(view: View) -> PropagationConfig:
    """Perception Encoder's: the numbers are those of DINO's script, which its README cites, or of Jabri's.

    Source of the latter: the command in the README of ajabri/videowalk, commit 0834ff9, whose circle leaves
    out tokens at a distance of exactly 12.
    """
    script = replace(_DINO, view=view)
    jabri = replace(script, topk=10, radius=11.99, circle=True, temperature=0.05, decoding="frame unscaled")
    return replace(script, others=(jabri,))


def _table_5(short: int) -> PropagationConfig:
    """DINOv3's Table 5 at a shorter side for patches of 16 pixels; what it does not say is the notebook's."""
    stated = replace(_DINOV3, decoding="frame", view=TokenFrame(short))
    scaled: tuple[Decoding, ...] = ("frame", "frame unscaled")
    return _open(stated, circle=(True, False), temperature=(0.2, 0.1), decoding=scaled)


CONFIGS = {
    "standard": _STANDARD,
    "paper": _PAPER,
    "paper-squares": replace(_PAPER, view=Stretch(side=224)),
    "dino": _DINO,
    "dinov3": _DINOV3,
    **{f"dinov3-{short}": _table_5(short) for short in (480, 960, 1440)},
    "pe": _pe(NativeFrame(short=448)),
    "pe-squares": _pe(NativeSquare(side=448)),
}
