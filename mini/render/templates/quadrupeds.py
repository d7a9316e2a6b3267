"""Quadrupeds, seen from the side, facing right."""

from dataclasses import dataclass

from mini.render.parts import Facing, Landmark, Part, Slot, Template
from mini.render.shapes import Capsule, Ellipse, Polygon


@dataclass(frozen=True, slots=True)
class _Build:
    """Measures of a quadruped in template units and degrees."""

    body: tuple[float, float]
    neck: tuple[float, float, float]
    neck_angle: float
    head: tuple[float, float, float]
    head_angle: float
    ear: tuple[float, float]
    ear_angle: float
    leg: tuple[float, float]
    tail: tuple[float, float, float]
    tail_angle: float


def _leg(build: _Build, which: str, x: float, near: bool, bend: float) -> tuple[Part, Part]:
    side, shade, depth = ("near", 1.0, 2) if near else ("far", 0.72, -2)
    length, radius = build.leg
    name = f"{which} leg {side}"
    rx, ry = build.body
    joint = (x * rx - (0 if near else 0.06), 0.45 * ry)
    upper = Part(
        name,
        "leg",
        Capsule(length * 0.5, radius, radius * 0.75),
        "body",
        joint,
        90 - bend / 2,
        22,
        depth,
        shade=shade,
    )
    foot = Landmark(f"{which} foot {side}", length * 0.5, 0)
    lower = Part(
        f"{which} shin {side}",
        "leg",
        Capsule(length * 0.5, radius * 0.75, radius * 0.7),
        name,
        (length * 0.5, 0),
        bend,
        18,
        depth,
        Slot.SECOND,
        shade,
        (foot,),
    )
    return upper, lower


def _head_parts(build: _Build) -> tuple[Part, ...]:
    length, start, end = build.head
    ear_length, ear_width = build.ear
    nose = Landmark("nose", length, 0)
    ear_tip = Landmark("ear tip", ear_length, 0)
    return (
        Part(
            "head",
            "head",
            Capsule(length, start, end),
            "neck",
            (build.neck[0], 0),
            build.head_angle,
            16,
            3,
            landmarks=(nose,),
        ),
        Part(
            "ear",
            "ear",
            Capsule(ear_length, ear_width, ear_width * 0.5),
            "head",
            (-0.2 * start, -0.6 * start),
            build.ear_angle,
            20,
            4,
            Slot.SECOND,
            landmarks=(ear_tip,),
        ),
        Part(
            "eye",
            "eye",
            Ellipse(0, 0, 0.026, 0.026),
            "head",
            (0.3 * length, -0.35 * start),
            depth=5,
            slot=Slot.DARK,
            landmarks=(Landmark("eye", 0, 0),),
        ),
    )


def _quadruped(name: str, wnid: str, build: _Build, extra: tuple[Part, ...] = ()) -> Template:
    rx, ry = build.body
    withers, rump = Landmark("withers", 0.5 * rx, -0.55 * ry), Landmark("rump", -0.8 * rx, -0.3 * ry)
    parts = (
        Part("body", "body", Ellipse(0, 0, rx, ry), landmarks=(withers, rump)),
        *_leg(build, "front", 0.62, False, 10),
        *_leg(build, "hind", -0.6, False, -25),
        Part(
            "tail",
            "tail",
            Capsule(*build.tail),
            "body",
            (-0.92 * rx, -0.25 * ry),
            build.tail_angle,
            30,
            -1,
            Slot.SECOND,
            landmarks=(Landmark("tail tip", build.tail[0], 0),),
        ),
        Part("neck", "neck", Capsule(*build.neck), "body", (0.72 * rx, -0.35 * ry), build.neck_angle, 14, 1),
        *_head_parts(build),
        *_leg(build, "front", 0.62, True, 10),
        *_leg(build, "hind", -0.6, True, -25),
        *extra,
    )
    return Template(name, wnid, "Quadruped", Facing.SIDE, parts)


_MANE = Part(
    "mane",
    "hair",
    Polygon(((0, -0.1), (0.28, -0.08), (0.3, -0.02), (0.02, -0.02)), 0.02),
    "neck",
    depth=1,
    slot=Slot.ACCENT,
)
_TRUNK = Part(
    "trunk",
    "trunk",
    Capsule(0.2, 0.055, 0.045),
    "head",
    (0.2, 0.02),
    62,
    20,
    3,
    landmarks=(Landmark("trunk bend", 0.2, 0),),
)
_TRUNK_END = Part(
    "trunk end",
    "trunk",
    Capsule(0.17, 0.045, 0.032),
    "trunk",
    (0.2, 0),
    -10,
    35,
    3,
    landmarks=(Landmark("trunk tip", 0.17, 0),),
)
_TUSK = Part("tusk", "tusk", Capsule(0.12, 0.022, 0.01), "head", (0.17, 0.06), 35, 4, 5, Slot.LIGHT)
_HORN = Part("horn", "horn", Capsule(0.07, 0.014, 0.02), "head", (-0.01, -0.04), -100, 6, 4, Slot.DARK)

QUADRUPEDS = (
    _quadruped(
        "horse",
        "n90000101",
        _Build(
            (0.36, 0.17),
            (0.3, 0.12, 0.075),
            -55,
            (0.2, 0.075, 0.045),
            85,
            (0.07, 0.025),
            -120,
            (0.46, 0.062),
            (0.33, 0.035, 0.06),
            115,
        ),
        (_MANE,),
    ),
    _quadruped(
        "dog",
        "n90000102",
        _Build(
            (0.34, 0.14),
            (0.15, 0.09, 0.085),
            -40,
            (0.18, 0.105, 0.05),
            38,
            (0.14, 0.045),
            110,
            (0.32, 0.058),
            (0.27, 0.035, 0.02),
            -125,
        ),
    ),
    _quadruped(
        "elephant",
        "n90000103",
        _Build(
            (0.4, 0.26),
            (0.1, 0.17, 0.15),
            -25,
            (0.12, 0.165, 0.1),
            20,
            (0.17, 0.115),
            120,
            (0.4, 0.095),
            (0.22, 0.022, 0.018),
            105,
        ),
        (_TRUNK, _TRUNK_END, _TUSK),
    ),
    _quadruped(
        "giraffe",
        "n90000104",
        _Build(
            (0.28, 0.15),
            (0.58, 0.085, 0.05),
            -68,
            (0.15, 0.06, 0.035),
            82,
            (0.06, 0.02),
            -160,
            (0.52, 0.045),
            (0.22, 0.02, 0.03),
            105,
        ),
        (_HORN,),
    ),
)
