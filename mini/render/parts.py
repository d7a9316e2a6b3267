"""What a class is: a tree of jointed parts with named landmarks. Frozen data."""

from dataclasses import dataclass
from enum import Enum, IntEnum, unique

from mini.render.shapes import Shape


@unique
class Slot(IntEnum):
    """Which of an individual's materials covers a part."""

    MAIN = 0
    SECOND = 1
    ACCENT = 2
    DARK = 3
    LIGHT = 4


@unique
class Facing(Enum):
    """From where a class is seen.

    SIDE figures may be mirrored: that is the view from their other side, and landmarks are named near and
    far. TOP and FRONT figures have a left and a right, which a mirror would swap, so they never are. TOP
    figures lie on the ground and turn freely.
    """

    SIDE = "side"
    TOP = "top"
    FRONT = "front"


@dataclass(frozen=True, slots=True)
class Landmark:
    """A named point on a part, in the part's coordinates."""

    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a figure: a shape on a joint.

    Attributes:
        name: Unique within the class.
        kind: Part type, shared between classes; parts of a kind share an individual's proportions.
        shape: Outline.
        parent: Name of the part that it hangs on; "" for the root.
        at: Joint in the parent's coordinates.
        angle: Degrees from the parent's x axis at rest; y is down, so 90 points down.
        swing: Largest deviation in degrees.
        depth: Painted in ascending order.
        slot: Material.
        shade: Brightness factor; limbs on the far side are darker.
        landmarks: Named points.
    """

    name: str
    kind: str
    shape: Shape
    parent: str = ""
    at: tuple[float, float] = (0.0, 0.0)
    angle: float = 0.0
    swing: float = 0.0
    depth: int = 0
    slot: Slot = Slot.MAIN
    shade: float = 1.0
    landmarks: tuple[Landmark, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """A class that can be drawn: its parts and how it stands.

    Attributes:
        name: Class name.
        wnid: Folder name in the ImageNet layout; 9 in front keeps it apart from real WordNet ids.
        supercategory: Group of classes.
        facing: From where it is seen.
        parts: Parents before their children.
        tilt: Largest rotation in the image in degrees, for figures that do not turn freely.
    """

    name: str
    wnid: str
    supercategory: str
    facing: Facing
    parts: tuple[Part, ...]
    tilt: float = 25.0

    @property
    def interchangeable(self) -> tuple[tuple[int, ...], ...]:
        """Places of landmarks that differ only in whether they are near or far, left or right."""
        groups: dict[str, list[int]] = {}
        for place, name in enumerate(self.landmarks):
            words = [word for word in name.split() if word not in ("near", "far", "left", "right")]
            groups.setdefault(" ".join(words), []).append(place)
        return tuple(tuple(places) for places in groups.values() if len(places) > 1)

    @property
    def landmarks(self) -> tuple[str, ...]:
        """Names of the landmarks, in part order."""
        return tuple(landmark.name for part in self.parts for landmark in part.landmarks)
