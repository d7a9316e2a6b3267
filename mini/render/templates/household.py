"""Furniture and tableware, seen from the side."""

from mini.render.parts import Facing, Landmark, Part, Slot, Template
from mini.render.shapes import Capsule, Ellipse, Polygon, Ring


def _chair_leg(name: str, at: tuple[float, float], far: bool) -> Part:
    return Part(
        f"{name} leg",
        "leg",
        Capsule(0.34, 0.03, 0.024),
        "seat",
        at,
        90,
        7,
        -1 if far else 1,
        Slot.SECOND,
        0.75 if far else 1.0,
        (Landmark(f"{name} foot", 0.33, 0),),
    )


_CHAIR = (
    Part(
        "seat",
        "seat",
        Polygon(((-0.24, -0.06), (0.18, -0.06), (0.26, 0.05), (-0.17, 0.05)), 0.02),
        depth=2,
        landmarks=(Landmark("seat front near", 0.25, 0.04), Landmark("seat front far", 0.17, -0.06)),
    ),
    _chair_leg("back far", (-0.22, -0.02), True),
    _chair_leg("front far", (0.17, -0.02), True),
    _chair_leg("back near", (-0.16, 0.05), False),
    _chair_leg("front near", (0.24, 0.05), False),
    Part(
        "back",
        "back",
        Polygon(((0.0, -0.03), (0.44, -0.1), (0.5, 0.0), (0.07, 0.07)), 0.02),
        "seat",
        (-0.2, -0.03),
        -97,
        9,
        3,
        landmarks=(Landmark("back top far", 0.43, -0.09), Landmark("back top near", 0.49, 0.0)),
    ),
    Part(
        "rail",
        "rail",
        Capsule(0.3, 0.016, 0.016),
        "back",
        (0.12, 0.0),
        -2,
        2,
        4,
        Slot.ACCENT,
    ),
    Part(
        "arm",
        "arm",
        Capsule(0.34, 0.026, 0.026),
        "seat",
        (-0.15, -0.15),
        4,
        7,
        5,
        Slot.ACCENT,
        landmarks=(Landmark("arm end", 0.33, 0),),
    ),
)

_LAMP = (
    Part("base", "base", Ellipse(0, 0, 0.19, 0.05), depth=1, landmarks=(Landmark("base", 0, 0),)),
    Part(
        "stand",
        "arm",
        Capsule(0.36, 0.026, 0.022),
        "base",
        (0, -0.02),
        -105,
        22,
        0,
        Slot.SECOND,
        landmarks=(Landmark("elbow", 0.36, 0),),
    ),
    Part("upper arm", "arm", Capsule(0.32, 0.022, 0.02), "stand", (0.36, 0), 62, 26, 0, Slot.SECOND),
    Part("joint", "joint", Ellipse(0, 0, 0.038, 0.038), "stand", (0.36, 0), depth=2, slot=Slot.ACCENT),
    Part(
        "shade",
        "shade",
        Polygon(((-0.04, -0.05), (-0.04, 0.05), (0.17, 0.17), (0.17, -0.17)), 0.02),
        "upper arm",
        (0.32, 0),
        72,
        28,
        2,
        landmarks=(
            Landmark("shade top", -0.02, 0),
            Landmark("shade rim front", 0.16, -0.16),
            Landmark("shade rim back", 0.16, 0.16),
        ),
    ),
    Part(
        "bulb",
        "bulb",
        Ellipse(0.2, 0, 0.05, 0.065),
        "shade",
        depth=1,
        slot=Slot.LIGHT,
        landmarks=(Landmark("bulb", 0.24, 0),),
    ),
)

_MUG = (
    Part(
        "body",
        "body",
        Polygon(((-0.27, -0.32), (0.27, -0.32), (0.23, 0.32), (-0.23, 0.32)), 0.04),
        depth=1,
        landmarks=(Landmark("bottom back", -0.21, 0.3), Landmark("bottom front", 0.21, 0.3)),
    ),
    Part(
        "handle",
        "handle",
        Ring(0, 0, 0.16, 0.042),
        "body",
        (0.31, 0.0),
        0,
        6,
        0,
        landmarks=(Landmark("handle", 0.155, 0),),
    ),
    Part(
        "band",
        "band",
        Polygon(((-0.26, -0.06), (0.26, -0.06), (0.25, 0.1), (-0.25, 0.1)), 0.012),
        "body",
        depth=2,
        slot=Slot.SECOND,
        landmarks=(Landmark("band back", -0.24, 0.02),),
    ),
    Part(
        "rim",
        "rim",
        Ellipse(0, 0, 0.31, 0.075),
        "body",
        (0, -0.34),
        depth=2,
        landmarks=(Landmark("rim back", -0.29, 0), Landmark("rim front", 0.29, 0)),
    ),
    Part("drink", "drink", Ellipse(0, 0.012, 0.25, 0.048), "rim", depth=3, slot=Slot.DARK),
)

HOUSEHOLD = (
    Template("chair", "n90000701", "Household", Facing.SIDE, _CHAIR, tilt=18),
    Template("lamp", "n90000702", "Household", Facing.SIDE, _LAMP, tilt=12),
    Template("mug", "n90000703", "Household", Facing.SIDE, _MUG, tilt=22),
)
