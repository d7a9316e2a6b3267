"""The 24 classes that are drawn: trees of jointed parts with named landmarks, read from figures.json.

The file has a block per class and a line per part; omitted fields have the defaults of `Part`.
"""

import json
from dataclasses import dataclass
from enum import Enum, IntEnum, unique
from pathlib import Path
from typing import Any, NamedTuple

from workshop.render.facts import MINI_CLASSES
from workshop.render.shapes import Capsule, Ellipse, Polygon, Ring, Shape

# the individual's material that covers a part
MaterialSlot = IntEnum("MaterialSlot", ["MAIN", "SECOND", "ACCENT", "DARK", "LIGHT"], start=0)


@unique
class Facing(Enum):
    """The side from which a class is seen.

    SIDE figures may be mirrored: that is the view from their other side, and landmarks are named near and
    far. TOP and FRONT figures have a left and a right, which a mirror would swap, so they never are. TOP
    figures lie on the ground and turn freely.
    """

    SIDE = "side"
    TOP = "top"
    FRONT = "front"


class Landmark(NamedTuple):
    """A named point on a part, in the part's coordinates."""

    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a figure: a shape on a joint."""

    name: str  # unique within the class
    kind: str  # part type, shared between classes; parts of a kind share an individual's proportions
    shape: Shape
    parent: str = ""  # name of the part that it hangs on; "" for the root
    at: tuple[float, float] = (0.0, 0.0)  # joint in the parent's coordinates
    angle: float = 0.0  # degrees from the parent's x axis at rest; y is down, so 90 points down
    swing: float = 0.0  # largest deviation in degrees
    depth: int = 0  # painted in ascending order
    slot: MaterialSlot = MaterialSlot.MAIN
    shade: float = 1.0  # brightness factor; limbs on the far side are darker
    landmarks: tuple[Landmark, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """A class that can be drawn: its parts and its orientation."""

    name: str
    wnid: str  # folder name in the ImageNet layout
    supercategory: str
    facing: Facing  # from where it is seen
    parts: tuple[Part, ...]  # parents before their children
    tilt: float = 25.0  # largest rotation in the image in degrees, for figures that do not turn freely

    @property
    def interchangeable(self) -> tuple[tuple[int, ...], ...]:
        """Indices of landmarks that differ only in near or far, left or right."""
        groups: dict[str, list[int]] = {}
        for index, name in enumerate(self.landmarks):
            words = [word for word in name.split() if word not in ("near", "far", "left", "right")]
            groups.setdefault(" ".join(words), []).append(index)
        return tuple(tuple(indices) for indices in groups.values() if len(indices) > 1)

    @property
    def landmarks(self) -> tuple[str, ...]:
        """Names of the landmarks, in part order."""
        return tuple(landmark.name for part in self.parts for landmark in part.landmarks)


def _shape(outline: dict[str, Any]) -> Shape:
    """The shape that a line describes: ``{"ellipse": [0, 0, 0.4, 0.2]}``; polygons may have a rounding."""
    if "polygon" in outline:
        corners = tuple((x, y) for x, y in outline["polygon"])
        return Polygon(corners, outline["rounding"]) if "rounding" in outline else Polygon(corners)
    kinds: dict[str, type[Ellipse | Capsule | Ring]] = {"ellipse": Ellipse, "capsule": Capsule, "ring": Ring}
    ((kind, numbers),) = outline.items()
    return kinds[kind](*numbers)


def _part(line: dict[str, Any]) -> Part:
    line = line | {"shape": _shape(line["shape"]), "slot": MaterialSlot[line.get("slot", "main").upper()]}
    line["at"] = tuple(line.get("at", (0.0, 0.0)))
    line["landmarks"] = tuple(Landmark(*numbers) for numbers in line.get("landmarks", ()))
    return Part(**line)


_FIGURES = json.loads((Path(__file__).parent / "figures.json").read_text(encoding="utf-8"))
TEMPLATES = tuple(
    Template(
        **drawn
        | {"wnid": known.wnid, "facing": Facing(drawn["facing"]), "parts": tuple(map(_part, drawn["parts"]))}
    )
    for known, drawn in zip(MINI_CLASSES, _FIGURES, strict=True)
)
class_names = tuple(template.name for template in TEMPLATES)
class_index = class_names.index  # index of a class name
