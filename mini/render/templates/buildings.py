"""Landmarks of a landscape, seen from the front: houses, windmills, trees."""

from mini.render.parts import Facing, Landmark, Part, Slot, Template
from mini.render.shapes import Capsule, Ellipse, Polygon


def _box(width: float, height: float) -> Polygon:
    """A rectangle that stands on the origin."""
    half = width / 2
    return Polygon(((-half, 0.0), (-half, -height), (half, -height), (half, 0.0)), 0.01)


def _window(name: str, at: tuple[float, float], size: float, parent: str = "wall") -> Part:
    shape = _box(size, size * 1.15)
    mark = Landmark(name, 0, -0.55 * size)
    return Part(name, "window", shape, parent, at, depth=3, slot=Slot.DARK, landmarks=(mark,))


_HOUSE = (
    Part(
        "wall",
        "wall",
        _box(0.74, 0.42),
        depth=1,
        landmarks=(Landmark("lower left corner", -0.35, -0.02), Landmark("lower right corner", 0.35, -0.02)),
    ),
    Part(
        "chimney",
        "chimney",
        _box(0.1, 0.24),
        "wall",
        (0.22, -0.5),
        depth=0,
        slot=Slot.ACCENT,
        landmarks=(Landmark("chimney top", 0.0, -0.22),),
    ),
    Part(
        "roof",
        "roof",
        Polygon(((-0.45, 0.0), (-0.02, -0.32), (0.02, -0.32), (0.45, 0.0)), 0.02),
        "wall",
        (0, -0.41),
        depth=2,
        slot=Slot.SECOND,
        landmarks=(
            Landmark("ridge", 0, -0.31),
            Landmark("eaves left", -0.44, 0),
            Landmark("eaves right", 0.44, 0),
        ),
    ),
    Part(
        "door",
        "door",
        _box(0.13, 0.25),
        "wall",
        (0.0, 0.0),
        depth=3,
        slot=Slot.ACCENT,
        landmarks=(Landmark("door top", 0, -0.24),),
    ),
    _window("left window", (-0.22, -0.16), 0.13),
    _window("right window", (0.22, -0.16), 0.13),
)


def _blade(number: int) -> Part:
    tip = Landmark(f"blade {number}", 0.44, 0.02)
    outline = Polygon(
        ((0.02, -0.012), (0.46, -0.012), (0.46, 0.07), (0.12, 0.07), (0.1, 0.012), (0.02, 0.012)), 0.008
    )
    return Part(
        f"blade {number}",
        "blade",
        outline,
        "hub",
        (0, 0),
        90.0 * number - 45,
        0,
        4,
        Slot.SECOND,
        landmarks=(tip,) if number == 1 else (),
    )


_WINDMILL = (
    Part(
        "wall",
        "wall",
        Polygon(((-0.2, 0.0), (-0.12, -0.56), (0.12, -0.56), (0.2, 0.0)), 0.015),
        depth=1,
        landmarks=(Landmark("lower left corner", -0.19, -0.02), Landmark("lower right corner", 0.19, -0.02)),
    ),
    Part(
        "cap",
        "roof",
        Polygon(((-0.15, 0.0), (-0.08, -0.13), (0.08, -0.13), (0.15, 0.0)), 0.025),
        "wall",
        (0, -0.56),
        depth=2,
        slot=Slot.ACCENT,
        landmarks=(Landmark("cap top", 0, -0.13),),
    ),
    Part(
        "door",
        "door",
        _box(0.12, 0.18),
        "wall",
        (0.0, 0.0),
        depth=3,
        slot=Slot.ACCENT,
        landmarks=(Landmark("door top", 0, -0.17),),
    ),
    _window("window", (0.0, -0.3), 0.1),
    Part(
        "hub",
        "hub",
        Ellipse(0, 0, 0.045, 0.045),
        "wall",
        (0, -0.57),
        0,
        45,
        5,
        Slot.DARK,
        landmarks=(Landmark("hub", 0, 0),),
    ),
    *(_blade(number) for number in (1, 2, 3, 4)),
)


def _crown(name: str, at: tuple[float, float], radii: tuple[float, float], look: tuple[int, Slot]) -> Part:
    depth, slot = look
    return Part(
        f"{name} crown",
        "crown",
        Ellipse(0, 0, *radii),
        "trunk",
        at,
        0,
        14,
        depth,
        slot,
        landmarks=(Landmark(f"{name} crown", 0, 0),),
    )


_TREE = (
    Part(
        "trunk",
        "stem",
        Capsule(0.48, 0.075, 0.045),
        angle=-90,
        swing=5,
        depth=0,
        slot=Slot.SECOND,
        landmarks=(Landmark("foot", 0.0, 0), Landmark("fork", 0.28, 0)),
    ),
    Part("left branch", "branch", Capsule(0.24, 0.032, 0.02), "trunk", (0.3, 0), -48, 12, 0, Slot.SECOND),
    Part("right branch", "branch", Capsule(0.24, 0.032, 0.02), "trunk", (0.36, 0), 48, 12, 0, Slot.SECOND),
    _crown("left", (0.5, -0.21), (0.17, 0.19), (1, Slot.MAIN)),
    _crown("right", (0.52, 0.21), (0.16, 0.19), (2, Slot.MAIN)),
    _crown("top", (0.72, 0.0), (0.2, 0.22), (3, Slot.MAIN)),
    Part(
        "left fruit",
        "fruit",
        Ellipse(0, 0, 0.035, 0.035),
        "left crown",
        (-0.06, -0.04),
        depth=4,
        slot=Slot.ACCENT,
    ),
    Part(
        "right fruit",
        "fruit",
        Ellipse(0, 0, 0.035, 0.035),
        "right crown",
        (-0.05, 0.05),
        depth=4,
        slot=Slot.ACCENT,
    ),
    Part(
        "top fruit",
        "fruit",
        Ellipse(0, 0, 0.035, 0.035),
        "top crown",
        (0.02, 0.05),
        depth=4,
        slot=Slot.ACCENT,
        landmarks=(Landmark("top fruit", 0, 0),),
    ),
)

BUILDINGS = (
    Template("house", "n90000801", "Landmark", Facing.FRONT, _HOUSE, tilt=12),
    Template("windmill", "n90000802", "Landmark", Facing.FRONT, _WINDMILL, tilt=12),
    Template("tree", "n90000803", "Landmark", Facing.FRONT, _TREE, tilt=14),
)
