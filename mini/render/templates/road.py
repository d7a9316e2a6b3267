"""Vehicles on wheels, seen from the side, facing right."""

from mini.render.parts import Facing, Landmark, Part, Slot, Template
from mini.render.shapes import Capsule, Ellipse, Polygon, Ring


def _wheel(name: str, at: tuple[float, float], radius: float) -> tuple[Part, Part]:
    return (
        Part(f"{name} wheel", "wheel", Ellipse(0, 0, radius, radius), "body", at, depth=3, slot=Slot.DARK),
        Part(
            f"{name} hub",
            "hub",
            Ellipse(0, 0, radius * 0.5, radius * 0.5),
            f"{name} wheel",
            depth=4,
            slot=Slot.LIGHT,
            landmarks=(Landmark(f"{name} wheel", 0, 0),),
        ),
    )


def _lamp(name: str, at: tuple[float, float], slot: Slot) -> Part:
    return Part(
        name,
        "lamp",
        Ellipse(0, 0, 0.03, 0.035),
        "body",
        at,
        depth=5,
        slot=slot,
        landmarks=(Landmark(name, 0, 0),),
    )


def _pane(name: str, parent: str, points: tuple[tuple[float, float], ...]) -> Part:
    return Part(name, "window", Polygon(points, 0.01), parent, depth=3, slot=Slot.LIGHT, shade=0.85)


_CAR = (
    Part(
        "body",
        "body",
        Polygon(((-0.5, -0.02), (-0.46, -0.11), (0.3, -0.11), (0.48, -0.04), (0.5, 0.1), (-0.5, 0.1)), 0.03),
        depth=1,
        landmarks=(Landmark("front bumper", 0.49, 0.09), Landmark("rear bumper", -0.49, 0.09)),
    ),
    Part(
        "cabin",
        "cabin",
        Polygon(((-0.32, 0.02), (-0.2, -0.2), (0.1, -0.2), (0.27, 0.02)), 0.03),
        "body",
        (0, -0.1),
        0,
        3,
        0,
        landmarks=(
            Landmark("roof rear", -0.19, -0.2),
            Landmark("roof front", 0.09, -0.2),
            Landmark("windscreen base", 0.25, -0.02),
        ),
    ),
    _pane("rear window", "cabin", ((-0.24, -0.02), (-0.16, -0.16), (-0.06, -0.16), (-0.06, -0.02))),
    _pane("front window", "cabin", ((0.0, -0.02), (0.0, -0.16), (0.08, -0.16), (0.18, -0.02))),
    *_wheel("rear", (-0.29, 0.12), 0.115),
    *_wheel("front", (0.29, 0.12), 0.115),
    _lamp("headlight", (0.47, -0.0), Slot.LIGHT),
    _lamp("tail light", (-0.48, -0.01), Slot.ACCENT),
)

_TRUCK = (
    Part(
        "body",
        "body",
        Polygon(((-0.52, 0.0), (0.5, 0.0), (0.5, 0.07), (-0.52, 0.07)), 0.02),
        depth=1,
        slot=Slot.DARK,
        landmarks=(Landmark("front bumper", 0.49, 0.05), Landmark("rear bumper", -0.51, 0.05)),
    ),
    Part(
        "cargo",
        "cargo",
        Polygon(((-0.52, 0.0), (-0.52, -0.4), (0.14, -0.4), (0.14, 0.0)), 0.015),
        "body",
        depth=2,
        landmarks=(Landmark("cargo rear top", -0.5, -0.38), Landmark("cargo front top", 0.12, -0.38)),
    ),
    Part(
        "cab",
        "cabin",
        Polygon(((0.19, 0.02), (0.19, -0.26), (0.38, -0.26), (0.49, -0.1), (0.5, 0.02)), 0.02),
        "body",
        depth=2,
        slot=Slot.SECOND,
        landmarks=(Landmark("cab roof", 0.2, -0.25),),
    ),
    _pane("cab window", "cab", ((0.27, -0.1), (0.27, -0.21), (0.36, -0.21), (0.43, -0.1))),
    *_wheel("rear", (-0.36, 0.09), 0.095),
    *_wheel("middle", (-0.13, 0.09), 0.095),
    *_wheel("front", (0.34, 0.09), 0.095),
    _lamp("headlight", (0.48, -0.02), Slot.LIGHT),
)


def _rod(name: str, start: tuple[float, float], end: tuple[float, float], parent: str = "") -> Part:
    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
    dx, dy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    nx, ny = -dy * 0.02, dx * 0.02
    corners = (
        (start[0] + nx, start[1] + ny),
        (end[0] + nx, end[1] + ny),
        (end[0] - nx, end[1] - ny),
        (start[0] - nx, start[1] - ny),
    )
    return Part(name, "frame", Polygon(corners, 0.012), parent, depth=2)


def _tyre(name: str, x: float) -> tuple[Part, Part]:
    return (
        Part(
            f"{name} wheel", "wheel", Ring(0, 0, 0.21, 0.03), "down tube", (x, 0.16), depth=1, slot=Slot.DARK
        ),
        Part(
            f"{name} hub",
            "hub",
            Ellipse(0, 0, 0.04, 0.04),
            f"{name} wheel",
            depth=3,
            slot=Slot.LIGHT,
            landmarks=(Landmark(f"{name} wheel", 0, 0),),
        ),
    )


_BICYCLE = (
    _rod("down tube", (-0.03, 0.16), (0.22, -0.16)),
    _rod("top tube", (-0.12, -0.12), (0.22, -0.16), "down tube"),
    _rod("seat tube", (-0.14, -0.2), (-0.03, 0.16), "down tube"),
    _rod("chain stay", (-0.32, 0.16), (-0.03, 0.16), "down tube"),
    _rod("fork", (0.19, -0.27), (0.32, 0.16), "down tube"),
    *_tyre("rear", -0.32),
    *_tyre("front", 0.32),
    Part(
        "seat",
        "seat",
        Capsule(0.15, 0.035, 0.022),
        "down tube",
        (-0.22, -0.22),
        0,
        8,
        3,
        Slot.ACCENT,
        landmarks=(Landmark("seat rear", 0, 0), Landmark("seat front", 0.14, 0)),
    ),
    Part(
        "handlebar",
        "handle",
        Capsule(0.14, 0.026, 0.026),
        "down tube",
        (0.18, -0.28),
        -15,
        15,
        3,
        Slot.SECOND,
        landmarks=(Landmark("stem", 0.0, 0), Landmark("grip", 0.13, 0)),
    ),
    Part(
        "crank",
        "pedal",
        Capsule(0.12, 0.035, 0.025),
        "down tube",
        (-0.03, 0.16),
        90,
        120,
        4,
        Slot.SECOND,
        landmarks=(Landmark("crank", 0, 0), Landmark("pedal", 0.11, 0)),
    ),
)

ROAD = (
    Template("car", "n90000601", "Vehicle", Facing.SIDE, _CAR, tilt=18),
    Template("truck", "n90000602", "Vehicle", Facing.SIDE, _TRUCK, tilt=18),
    Template("bicycle", "n90000603", "Vehicle", Facing.SIDE, _BICYCLE, tilt=18),
)
