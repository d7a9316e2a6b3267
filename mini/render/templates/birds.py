"""Birds, seen from the side, facing right."""

from mini.render.parts import Facing, Landmark, Part, Slot, Template
from mini.render.shapes import Capsule, Ellipse, Polygon

_EYE = Part(
    "eye",
    "eye",
    Ellipse(0, 0, 0.028, 0.028),
    "head",
    (0.045, -0.03),
    depth=5,
    slot=Slot.DARK,
    landmarks=(Landmark("eye", 0, 0),),
)


def _bird_leg(side: str, at: tuple[float, float], length: float, radius: float) -> tuple[Part, Part]:
    near = side == "near"
    shade, depth = (1.0, 1) if near else (0.72, -2)
    foot = Landmark(f"foot {side}", 0.0, 0)
    return (
        Part(
            f"leg {side}",
            "leg",
            Capsule(length, radius, radius * 0.8),
            "body",
            at,
            90,
            20,
            depth,
            Slot.ACCENT,
            shade,
        ),
        Part(
            f"foot {side}",
            "foot",
            Capsule(0.08, radius * 1.1, radius * 0.7),
            f"leg {side}",
            (length, 0),
            -85,
            15,
            depth,
            Slot.ACCENT,
            shade,
            (foot,),
        ),
    )


_WING = Polygon(((0, -0.07), (-0.25, -0.06), (-0.5, 0.02), (-0.24, 0.09), (-0.02, 0.08)), 0.03)
_WING_MARKS = (Landmark("shoulder", 0, 0), Landmark("wing tip", -0.48, 0.02))

_SONGBIRD = (
    Part("body", "body", Ellipse(0, 0, 0.32, 0.2), landmarks=(Landmark("breast", 0.24, 0.06),)),
    *_bird_leg("far", (-0.02, 0.16), 0.17, 0.02),
    Part(
        "tail",
        "tail",
        Polygon(((0, -0.05), (0.28, -0.08), (0.3, 0.05), (0, 0.06)), 0.015),
        "body",
        (-0.27, 0.0),
        165,
        18,
        -1,
        Slot.SECOND,
        landmarks=(Landmark("tail tip", 0.28, -0.02),),
    ),
    Part(
        "head",
        "head",
        Ellipse(0.07, 0, 0.16, 0.145),
        "body",
        (0.24, -0.19),
        -5,
        20,
        2,
        landmarks=(Landmark("crown", 0.03, -0.12),),
    ),
    Part(
        "beak",
        "beak",
        Polygon(((0, -0.045), (0.13, 0.01), (0, 0.05)), 0.008),
        "head",
        (0.2, 0.02),
        0,
        5,
        1,
        Slot.ACCENT,
        landmarks=(Landmark("beak tip", 0.12, 0.01),),
    ),
    Part("eye", "eye", _EYE.shape, "head", (0.11, -0.03), depth=5, slot=Slot.DARK, landmarks=_EYE.landmarks),
    Part("wing", "wing", _WING, "body", (0.12, -0.03), 8, 28, 3, Slot.SECOND, landmarks=_WING_MARKS),
    *_bird_leg("near", (0.05, 0.17), 0.17, 0.02),
)

_HERON = (
    Part("body", "body", Ellipse(0, 0, 0.27, 0.14), landmarks=(Landmark("breast", 0.2, 0.04),)),
    *_bird_leg("far", (-0.06, 0.1), 0.42, 0.017),
    Part(
        "tail",
        "tail",
        Polygon(((0, -0.05), (0.16, -0.03), (0.17, 0.04), (0, 0.05)), 0.015),
        "body",
        (-0.22, 0.01),
        170,
        14,
        -1,
        Slot.SECOND,
        landmarks=(Landmark("tail tip", 0.15, 0),),
    ),
    Part("neck", "neck", Capsule(0.24, 0.06, 0.042), "body", (0.2, -0.05), -75, 18, 1),
    Part("upper neck", "neck", Capsule(0.24, 0.042, 0.036), "neck", (0.24, 0), -25, 22, 1),
    Part(
        "head",
        "head",
        Ellipse(0.03, 0, 0.095, 0.065),
        "upper neck",
        (0.24, 0),
        100,
        18,
        2,
        landmarks=(Landmark("crown", 0.0, -0.045),),
    ),
    Part(
        "beak",
        "beak",
        Polygon(((0, -0.03), (0.25, 0.015), (0, 0.03)), 0.006),
        "head",
        (0.1, 0.005),
        4,
        4,
        1,
        Slot.ACCENT,
        landmarks=(Landmark("beak tip", 0.24, 0.015),),
    ),
    _EYE,
    Part("wing", "wing", _WING, "body", (0.14, -0.03), 4, 24, 3, Slot.SECOND, landmarks=_WING_MARKS),
    *_bird_leg("near", (0.0, 0.11), 0.42, 0.017),
)

BIRDS = (
    Template("songbird", "n90000201", "Bird", Facing.SIDE, _SONGBIRD),
    Template("heron", "n90000202", "Bird", Facing.SIDE, _HERON),
)
