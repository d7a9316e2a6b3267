"""Fish, from the side, and reptiles, from above."""

from mini.render.parts import Facing, Landmark, Part, Slot, Template
from mini.render.shapes import Capsule, Ellipse, Polygon


def _fin(
    name: str,
    points: tuple[tuple[float, float], ...],
    at: tuple[float, float],
    angle: float,
    depth: int,
    tip: tuple[float, float],
) -> Part:
    mark = Landmark(f"{name} tip", *tip)
    return Part(
        name, "fin", Polygon(points, 0.012), "body", at, angle, 14, depth, Slot.SECOND, landmarks=(mark,)
    )


def _eye(at: tuple[float, float], parent: str = "head") -> Part:
    return Part(
        "eye",
        "eye",
        Ellipse(0, 0, 0.03, 0.03),
        parent,
        at,
        depth=6,
        slot=Slot.DARK,
        landmarks=(Landmark("eye", 0, 0),),
    )


_FISH = (
    Part("body", "body", Ellipse(0, 0, 0.38, 0.22), depth=1, landmarks=(Landmark("belly", 0.02, 0.17),)),
    Part(
        "tail",
        "tail",
        Polygon(((-0.02, -0.05), (0.26, -0.21), (0.19, 0.0), (0.26, 0.21), (-0.02, 0.05)), 0.015),
        "body",
        (-0.35, 0),
        180,
        22,
        0,
        Slot.SECOND,
        landmarks=(
            Landmark("tail root", 0.03, 0),
            Landmark("tail lower tip", 0.25, -0.19),
            Landmark("tail upper tip", 0.25, 0.19),
        ),
    ),
    _fin(
        "dorsal fin",
        ((-0.2, 0.02), (-0.24, -0.14), (0.02, -0.13), (0.2, 0.03)),
        (-0.02, -0.18),
        0,
        0,
        (-0.23, -0.13),
    ),
    _fin("belly fin", ((-0.02, 0), (-0.14, 0.14), (-0.16, 0)), (-0.02, 0.2), 0, 0, (-0.13, 0.13)),
    Part(
        "head",
        "head",
        Ellipse(0, 0, 0.17, 0.165),
        "body",
        (0.23, 0.0),
        0,
        4,
        2,
        Slot.ACCENT,
        landmarks=(Landmark("mouth", 0.155, 0.02),),
    ),
    _eye((0.06, -0.045)),
    _fin(
        "side fin",
        ((0.02, -0.05), (-0.19, -0.03), (-0.17, 0.08), (0, 0.06)),
        (0.05, 0.05),
        -8,
        5,
        (-0.18, 0.02),
    ),
)

_SHARK = (
    Part(
        "body",
        "body",
        Polygon(
            (
                (0.5, 0.0),
                (0.3, -0.1),
                (0.05, -0.13),
                (-0.45, -0.03),
                (-0.45, 0.03),
                (0.0, 0.12),
                (0.32, 0.09),
            ),
            0.03,
        ),
        depth=1,
        landmarks=(Landmark("snout", 0.5, 0.0), Landmark("belly", 0.0, 0.11)),
    ),
    Part(
        "tail",
        "tail",
        Polygon(
            (
                (-0.02, -0.03),
                (0.14, -0.15),
                (0.2, -0.16),
                (0.13, 0.0),
                (0.24, 0.27),
                (0.16, 0.22),
                (-0.02, 0.03),
            ),
            0.01,
        ),
        "body",
        (-0.45, 0),
        180,
        18,
        0,
        landmarks=(
            Landmark("tail root", 0.02, 0),
            Landmark("tail lower tip", 0.19, -0.15),
            Landmark("tail upper tip", 0.22, 0.25),
        ),
    ),
    _fin("dorsal fin", ((0.12, 0.03), (-0.1, -0.2), (-0.08, 0.03)), (0.03, -0.13), 0, 0, (-0.09, -0.18)),
    _fin("rear fin", ((0.05, 0.02), (-0.06, -0.07), (-0.04, 0.02)), (-0.3, -0.07), 0, 0, (-0.05, -0.06)),
    _fin("side fin", ((0.08, -0.02), (-0.14, 0.24), (-0.07, 0.0)), (0.17, 0.06), 0, 3, (-0.13, 0.22)),
    Part("gills", "gill", Capsule(0.09, 0.012, 0.012), "body", (0.25, -0.05), 95, 4, 4, Slot.DARK),
    _eye((0.37, -0.035), "body"),
)


def _chain(
    count: int, length: float, radii: tuple[float, float], angles: tuple[float, ...], swing: float
) -> tuple[Part, ...]:
    """Segments that hang on each other, the first on "head"; tapered linearly."""
    start, end = radii
    steps = [start + (end - start) * i / count for i in range(count + 1)]
    parts = []
    for i in range(count):
        name = "tip" if i == count - 1 else f"segment {i + 1}"
        mark = Landmark("tail tip", length, 0) if i == count - 1 else Landmark(f"bend {i + 1}", length, 0)
        parts.append(
            Part(
                f"segment {i + 1}",
                "body",
                Capsule(length, steps[i], steps[i + 1]),
                f"segment {i}" if i else "head",
                (length, 0) if i else (-0.03, 0),
                angles[i],
                swing,
                -i,
                landmarks=(mark,) if name == "tip" or i % 2 else (),
            )
        )
    return tuple(parts)


_SNAKE = (
    Part(
        "head",
        "head",
        Ellipse(0.04, 0, 0.11, 0.075),
        angle=10,
        swing=25,
        depth=3,
        slot=Slot.SECOND,
        landmarks=(Landmark("nose", 0.13, 0),),
    ),
    *_chain(7, 0.2, (0.062, 0.022), (180, 45, -50, -45, 55, 45, -40), 26),
    Part("tongue", "tongue", Capsule(0.09, 0.012, 0.008), "head", (0.13, 0), 0, 20, -1, Slot.ACCENT),
    _eye((0.06, -0.035)),
)


def _lizard_leg(which: str, x: float, left: bool) -> tuple[Part, Part]:
    side, sign = ("left", -1) if left else ("right", 1)
    forward = 1 if which == "front" else -1
    name = f"{which} leg {side}"
    return (
        Part(
            name,
            "leg",
            Capsule(0.15, 0.04, 0.032),
            "body",
            (x, sign * 0.06),
            sign * (90 - 25 * forward),
            20,
            -1,
        ),
        Part(
            f"{which} foot {side}",
            "leg",
            Capsule(0.13, 0.032, 0.04),
            name,
            (0.15, 0),
            sign * 55 * forward * -1,
            22,
            -1,
            Slot.SECOND,
            landmarks=(Landmark(f"{which} foot {side}", 0.13, 0),),
        ),
    )


_LIZARD = (
    Part("body", "body", Ellipse(0, 0, 0.27, 0.11), landmarks=(Landmark("back", 0, 0),)),
    Part("tail", "tail", Capsule(0.26, 0.065, 0.042), "body", (-0.22, 0), 180, 24, -1),
    Part("tail end", "tail", Capsule(0.22, 0.042, 0.022), "tail", (0.26, 0), 15, 32, -1, Slot.SECOND),
    Part(
        "tail point",
        "tail",
        Capsule(0.18, 0.022, 0.01),
        "tail end",
        (0.22, 0),
        15,
        32,
        -1,
        Slot.SECOND,
        landmarks=(Landmark("tail tip", 0.17, 0),),
    ),
    *_lizard_leg("front", 0.17, True),
    *_lizard_leg("front", 0.17, False),
    *_lizard_leg("hind", -0.17, True),
    *_lizard_leg("hind", -0.17, False),
    Part(
        "head",
        "head",
        Polygon(((0, -0.07), (0.12, -0.075), (0.24, 0), (0.12, 0.075), (0, 0.07)), 0.02),
        "body",
        (0.22, 0),
        0,
        18,
        1,
        landmarks=(Landmark("nose", 0.24, 0),),
    ),
    Part(
        "left eye",
        "eye",
        Ellipse(0, 0, 0.026, 0.026),
        "head",
        (0.12, -0.06),
        depth=3,
        slot=Slot.DARK,
        landmarks=(Landmark("left eye", 0, 0),),
    ),
    Part(
        "right eye",
        "eye",
        Ellipse(0, 0, 0.026, 0.026),
        "head",
        (0.12, 0.06),
        depth=3,
        slot=Slot.DARK,
        landmarks=(Landmark("right eye", 0, 0),),
    ),
)

FISH = (
    Template("fish", "n90000301", "Fish", Facing.SIDE, _FISH, tilt=35),
    Template("shark", "n90000302", "Fish", Facing.SIDE, _SHARK, tilt=35),
)
REPTILES = (
    Template("snake", "n90000401", "Reptile", Facing.TOP, _SNAKE),
    Template("lizard", "n90000402", "Reptile", Facing.TOP, _LIZARD),
)
