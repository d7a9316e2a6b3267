"""Insects, seen from above, heading right: left is up."""

from mini.render.parts import Facing, Landmark, Part, Slot, Template
from mini.render.shapes import Capsule, Ellipse, Polygon

_SIDES = (("left", -1), ("right", 1))


def _wing(
    name: str,
    side: tuple[str, int],
    points: tuple[tuple[float, float], ...],
    at: tuple[float, float],
    tip: tuple[float, float],
    look: tuple[Slot, int],
) -> Part:
    label, sign = side
    slot, depth = look
    outline = tuple((x, sign * y) for x, y in points)
    mark = Landmark(f"{name} tip {label}", tip[0], sign * tip[1])
    return Part(
        f"{name} {label}",
        "wing",
        Polygon(outline, 0.03),
        "body",
        (at[0], sign * at[1]),
        0,
        12,
        depth,
        slot,
        landmarks=(mark,),
    )


def _antenna(side: tuple[str, int], length: float, angle: float) -> Part:
    label, sign = side
    return Part(
        f"antenna {label}",
        "antenna",
        Capsule(length, 0.013, 0.016),
        "head",
        (0.04, sign * 0.02),
        sign * angle,
        14,
        -1,
        Slot.DARK,
        landmarks=(Landmark(f"antenna tip {label}", length, 0),),
    )


def _legs(side: tuple[str, int]) -> tuple[Part, ...]:
    label, sign = side
    rows = (("front", 0.16, 55.0), ("middle", 0.02, 95.0), ("hind", -0.12, 130.0))
    return tuple(
        Part(
            f"{row} leg {label}",
            "leg",
            Capsule(0.34, 0.026, 0.016),
            "body",
            (x, sign * 0.1),
            sign * angle,
            16,
            -1,
            Slot.DARK,
            landmarks=(Landmark(f"{row} foot {label}", 0.33, 0),) if row != "middle" else (),
        )
        for row, x, angle in rows
    )


_UPPER = ((0.0, 0.0), (0.14, 0.16), (0.2, 0.38), (0.08, 0.44), (-0.1, 0.3), (-0.08, 0.02))
_LOWER = ((0.0, 0.0), (-0.02, 0.26), (-0.16, 0.32), (-0.27, 0.2), (-0.16, 0.02))
_BUTTERFLY = (
    Part("body", "body", Capsule(0.34, 0.03, 0.042), at=(-0.2, 0), depth=2, slot=Slot.DARK),
    *(_wing("hind wing", side, _LOWER, (0.17, 0.02), (-0.17, 0.3), (Slot.SECOND, 0)) for side in _SIDES),
    *(_wing("front wing", side, _UPPER, (0.24, 0.02), (0.18, 0.38), (Slot.MAIN, 1)) for side in _SIDES),
    Part(
        "abdomen",
        "tail",
        Capsule(0.12, 0.03, 0.02),
        "body",
        (0, 0),
        180,
        14,
        2,
        Slot.DARK,
        landmarks=(Landmark("tail end", 0.11, 0),),
    ),
    Part(
        "head",
        "head",
        Ellipse(0, 0, 0.055, 0.055),
        "body",
        (0.38, 0),
        0,
        10,
        3,
        Slot.ACCENT,
        landmarks=(Landmark("head", 0, 0),),
    ),
    *(_antenna(side, 0.24, 28) for side in _SIDES),
)

_BEETLE = (
    Part("body", "body", Ellipse(0, 0, 0.3, 0.2), depth=0, slot=Slot.DARK),
    *(part for side in _SIDES for part in _legs(side)),
    Part(
        "cover left",
        "wing",
        Ellipse(-0.05, -0.095, 0.29, 0.105),
        "body",
        (0, 0),
        0,
        4,
        2,
        landmarks=(Landmark("cover end left", -0.31, -0.085),),
    ),
    Part(
        "cover right",
        "wing",
        Ellipse(-0.05, 0.095, 0.29, 0.105),
        "body",
        (0, 0),
        0,
        4,
        2,
        landmarks=(Landmark("cover end right", -0.31, 0.085),),
    ),
    Part(
        "shield",
        "shield",
        Ellipse(0, 0, 0.1, 0.165),
        "body",
        (0.25, 0),
        0,
        5,
        3,
        Slot.SECOND,
        landmarks=(Landmark("shield", 0, 0),),
    ),
    Part(
        "head",
        "head",
        Ellipse(0.03, 0, 0.075, 0.09),
        "shield",
        (0.08, 0),
        0,
        10,
        2,
        Slot.DARK,
        landmarks=(Landmark("head", 0.05, 0),),
    ),
    *(_antenna(side, 0.2, 42) for side in _SIDES),
)

_LONG = ((0.02, 0.0), (0.07, 0.25), (0.08, 0.5), (0.0, 0.54), (-0.05, 0.3), (-0.04, 0.0))
_DRAGONFLY = (
    Part("body", "body", Ellipse(0, 0, 0.12, 0.065), depth=2, landmarks=(Landmark("thorax", 0, 0),)),
    *(_wing("hind wing", side, _LONG, (-0.06, 0.03), (0.02, 0.52), (Slot.LIGHT, 0)) for side in _SIDES),
    *(_wing("front wing", side, _LONG, (0.05, 0.03), (0.02, 0.52), (Slot.SECOND, 1)) for side in _SIDES),
    Part("abdomen", "tail", Capsule(0.26, 0.04, 0.028), "body", (-0.1, 0), 180, 12, 2),
    Part(
        "tail end",
        "tail",
        Capsule(0.26, 0.028, 0.032),
        "abdomen",
        (0.26, 0),
        0,
        18,
        2,
        Slot.SECOND,
        landmarks=(Landmark("tail end", 0.26, 0),),
    ),
    Part("head", "head", Ellipse(0, 0, 0.055, 0.06), "body", (0.15, 0), 0, 10, 3, Slot.ACCENT),
    *(
        Part(
            f"{label} eye",
            "eye",
            Ellipse(0, 0, 0.04, 0.035),
            "head",
            (0.02, sign * 0.045),
            depth=4,
            slot=Slot.DARK,
            landmarks=(Landmark(f"{label} eye", 0, 0),),
        )
        for label, sign in _SIDES
    ),
)

INSECTS = (
    Template("butterfly", "n90000501", "Insect", Facing.TOP, _BUTTERFLY),
    Template("beetle", "n90000502", "Insect", Facing.TOP, _BEETLE),
    Template("dragonfly", "n90000503", "Insect", Facing.TOP, _DRAGONFLY),
)
