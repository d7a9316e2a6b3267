"""A boat and a plane, seen from the side, facing right."""

from mini.render.parts import Facing, Landmark, Part, Slot, Template
from mini.render.shapes import Capsule, Ellipse, Polygon

_BOAT = (
    Part(
        "body",
        "hull",
        Polygon(((-0.42, 0.0), (0.5, -0.04), (0.34, 0.16), (-0.34, 0.16)), 0.02),
        depth=2,
        landmarks=(Landmark("stern", -0.41, 0.02), Landmark("bow", 0.49, -0.03), Landmark("keel", 0.0, 0.15)),
    ),
    Part(
        "mast",
        "mast",
        Capsule(0.72, 0.022, 0.016),
        "body",
        (0.02, 0.0),
        -90,
        5,
        0,
        Slot.DARK,
        landmarks=(Landmark("mast top", 0.71, 0),),
    ),
    Part(
        "main sail",
        "sail",
        Polygon(((0.08, -0.03), (0.66, -0.03), (0.1, -0.36)), 0.012),
        "mast",
        depth=1,
        slot=Slot.SECOND,
        swing=4,
        landmarks=(Landmark("boom end", 0.1, -0.34),),
    ),
    Part(
        "front sail",
        "sail",
        Polygon(((0.1, 0.04), (0.58, 0.03), (0.1, 0.34)), 0.012),
        "mast",
        depth=1,
        slot=Slot.LIGHT,
        swing=4,
        landmarks=(Landmark("front sail corner", 0.11, 0.32),),
    ),
    Part(
        "cabin",
        "cabin",
        Polygon(((-0.26, 0.0), (-0.24, -0.09), (-0.08, -0.09), (-0.06, 0.0)), 0.015),
        "body",
        depth=3,
    ),
    Part("porthole", "window", Ellipse(-0.16, -0.045, 0.025, 0.025), "body", depth=4, slot=Slot.DARK),
    Part(
        "pennant",
        "flag",
        Polygon(((0, -0.01), (0.14, 0.03), (0, 0.07)), 0.008),
        "mast",
        (0.72, 0),
        -90,
        20,
        1,
        Slot.ACCENT,
        landmarks=(Landmark("pennant tip", 0.13, 0.03),),
    ),
)

_PLANE = (
    Part(
        "body",
        "body",
        Capsule(0.84, 0.05, 0.085),
        at=(-0.45, 0),
        depth=1,
        landmarks=(Landmark("nose", 0.9, 0.01),),
    ),
    Part(
        "far wing",
        "wing",
        Polygon(((0.1, 0.0), (-0.12, -0.24), (-0.2, -0.24), (-0.08, 0.0)), 0.012),
        "body",
        (0.5, -0.04),
        0,
        8,
        0,
        Slot.SECOND,
        0.75,
        (Landmark("wing tip far", -0.16, -0.23),),
    ),
    Part(
        "tail fin",
        "tail",
        Polygon(((0.14, 0.0), (-0.08, -0.23), (-0.15, -0.23), (-0.04, 0.0)), 0.012),
        "body",
        (0.02, -0.03),
        0,
        3,
        0,
        Slot.ACCENT,
        landmarks=(Landmark("fin top", -0.12, -0.22), Landmark("fin root", 0.1, -0.03)),
    ),
    Part(
        "stabiliser",
        "wing",
        Polygon(((0.08, 0.0), (-0.08, 0.1), (-0.14, 0.1), (-0.04, 0.0)), 0.012),
        "body",
        (0.04, 0.0),
        0,
        5,
        2,
        Slot.SECOND,
        landmarks=(Landmark("stabiliser tip", -0.11, 0.1),),
    ),
    Part(
        "near wing",
        "wing",
        Polygon(((0.12, 0.0), (-0.16, 0.34), (-0.26, 0.34), (-0.1, 0.0)), 0.015),
        "body",
        (0.48, 0.02),
        0,
        10,
        3,
        Slot.SECOND,
        landmarks=(Landmark("wing tip near", -0.21, 0.33), Landmark("wing root", 0.02, 0.02)),
    ),
    Part(
        "engine",
        "engine",
        Capsule(0.12, 0.042, 0.05),
        "body",
        (0.42, 0.14),
        0,
        3,
        4,
        Slot.ACCENT,
        landmarks=(Landmark("engine", 0.12, 0),),
    ),
    Part(
        "cockpit",
        "window",
        Polygon(((0, 0), (0.0, -0.05), (0.06, 0.0)), 0.012),
        "body",
        (0.83, -0.01),
        depth=2,
        slot=Slot.DARK,
    ),
    *(
        Part(
            f"window {i}", "window", Ellipse(0, 0, 0.02, 0.024), "body", (x, -0.028), depth=2, slot=Slot.DARK
        )
        for i, x in enumerate((0.25, 0.38, 0.51, 0.64), 1)
    ),
)

CRAFT = (
    Template("boat", "n90000604", "Vehicle", Facing.SIDE, _BOAT, tilt=18),
    Template("plane", "n90000605", "Vehicle", Facing.SIDE, _PLANE, tilt=35),
)
