"""The video dataset, in DAVIS-2017's layout: articulated figures before a moving camera."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from workshop.render import facts
from workshop.render.background import Prop, draw_backdrop, draw_pole, paint_props, scatter
from workshop.render.canvas import Canvas
from workshop.render.individual import draw_individual
from workshop.render.lighting import Light, draw_light
from workshop.render.masks import write_mask
from workshop.render.scene import Camera, Figure, Rendering, placed, render
from workshop.render.seeds import Namespace, Rng, generator
from workshop.render.shapes import Field, rotation
from workshop.render.templates import Facing, class_index
from workshop.render.textures import Colour
from workshop.render.writers.base import Note, Writer, save_jpeg, save_text

SIZE = (facts.FRAME_WIDTH, facts.FRAME_HEIGHT)
_WORLD = (facts.FRAME_WIDTH * 2, facts.FRAME_HEIGHT * 3 // 2)  # scenery that the camera moves over


class Actor(NamedTuple):
    """Who moves in a sequence."""

    class_name: str
    start: tuple[float, float]  # centre in the first frame, as shares of the frame
    travel: tuple[float, float]  # movement from the first to the last frame, as shares of the frame
    size: float  # height and width of its box at most, as a share of the frame's height
    turn: float = 0.0  # rotation from the first to the last frame, degrees


class Clip(NamedTuple):
    """A sequence: its actors, back to front, and the posts behind which they pass, as shares of the width."""

    name: str
    actors: tuple[Actor, ...]
    posts: tuple[float, ...] = ()


SEQUENCES = (
    Clip(
        "beetle-race",
        (
            Actor("beetle", (0.3, 0.35), (0.3, 0.1), 0.5, 50),
            Actor("lizard", (0.7, 0.65), (-0.35, 0.0), 0.65, -40),
        ),
    ),
    Clip("car-street", (Actor("car", (0.3, 0.55), (0.4, 0.03), 0.62),), (0.55,)),
    Clip("dog-meadow", (Actor("dog", (0.35, 0.5), (0.3, 0.0), 0.75),)),
    Clip(
        "fish-school",
        (
            Actor("fish", (0.3, 0.3), (0.3, 0.1), 0.42, 12),
            Actor("fish", (0.65, 0.45), (-0.25, 0.15), 0.45, -12),
            Actor("shark", (0.4, 0.75), (0.2, -0.15), 0.7, -8),
        ),
    ),
    Clip("heron-lake", (Actor("heron", (0.6, 0.5), (-0.22, 0.0), 0.8),), (0.27,)),
    Clip(
        "horse-giraffe",
        (Actor("giraffe", (0.62, 0.47), (-0.2, 0.0), 0.85), Actor("horse", (0.3, 0.58), (0.35, 0.0), 0.6)),
    ),
)


# what the camera sees of the scenery at a time from 0 to 1: backdrop, posts before the actors, zoom
Look = Callable[[float], tuple[Field, tuple[Prop, ...], float]]


def _build_stage(rng: Rng, sequence: Clip, unlike: Colour) -> tuple[Light, Look]:
    canvas = Canvas(draw_backdrop(rng, _WORLD, unlike).pixels)
    light = draw_light(rng, 0.6)
    paint_props(canvas, scatter(rng, _WORLD, int(rng.integers(5, 12)), (20, 60)), light)
    world = Image.fromarray(
        np.ascontiguousarray((np.clip(canvas.pixels, 0, 1) * 255).astype(np.uint8).transpose(1, 2, 0))
    )
    posts = tuple(draw_pole(rng, post * SIZE[0], SIZE[1]) for post in sequence.posts)
    pan = (float(rng.uniform(20, 60) * rng.choice([-1, 1])), float(rng.uniform(-10, 10)))
    zooming = float(rng.uniform(-0.12, 0.12))

    def look(time: float) -> tuple[Field, tuple[Prop, ...], float]:
        zoom = 1 + zooming * (time - 0.5)
        shift = [p * (time - 0.5) for p in pan]
        left = (_WORLD[0] - SIZE[0] / zoom) / 2 + shift[0]
        top = (_WORLD[1] - SIZE[1] / zoom) / 2 + shift[1]
        to_world = (1 / zoom, 0, left, 0, 1 / zoom, top)
        view = world.transform(SIZE, Image.Transform.AFFINE, to_world, Image.Resampling.BICUBIC)
        before = tuple(replace(post, frame=post.frame.moved(-shift[0], 0)) for post in posts)
        return np.asarray(view, np.float32).transpose(2, 0, 1) / np.float32(255), before, zoom

    return light, look


def _build_cast(rng: Rng, actor: Actor) -> Callable[[float, float], Figure]:
    """The actor at a time from 0 to 1 and a zoom of the camera."""
    individual = draw_individual(rng, class_index(actor.class_name))
    template = individual.template
    # Side views walk the way they face; figures on the ground head along their travel.
    heading = float(np.degrees(np.arctan2(actor.travel[1], actor.travel[0])))
    side = template.facing is Facing.SIDE
    camera = Camera(0.0 if side else heading, side and actor.travel[0] < 0)
    rest = (0.0,) * len(template.parts)
    extent = actor.size * SIZE[1]
    figure, _ = placed(Figure(individual, rest, camera), (extent * 1.25, extent))
    phases, strides = rng.uniform(0, 2 * np.pi, len(template.parts)), float(rng.uniform(0.8, 1.4))
    swings = np.minimum([part.swing for part in template.parts], 45)

    def act(time: float, zoom: float) -> Figure:
        angles = 0.75 * swings * np.sin(phases + 2 * np.pi * strides * time)
        turned = replace(camera, rotation=camera.rotation + actor.turn * time)
        x, y = (s + t * time for s, t in zip(actor.start, actor.travel, strict=True))
        # The centre of the resting figure follows the path; it is the origin of the placed figure.
        to_origin = rotation(actor.turn * time).scaled(zoom).apply(*figure.offset)
        offset = (x * SIZE[0] + to_origin[0], y * SIZE[1] + to_origin[1])
        return Figure(individual, tuple(angles.tolist()), turned, figure.scale * zoom, offset)

    return act


def video_frames(index: int) -> list[Rendering]:
    """All frames of a sequence; figure k owns the pixels of object k."""
    sequence = SEQUENCES[index]
    rng = generator(Namespace.VIDEO, index)
    casts = [_build_cast(rng, actor) for actor in sequence.actors]
    light, look = _build_stage(rng, sequence, casts[-1](0, 1).individual.materials[0].colour)
    frames = []
    for number in range(facts.FRAMES_PER_SEQUENCE):
        time = number / (facts.FRAMES_PER_SEQUENCE - 1)
        backdrop, posts, zoom = look(time)
        frames.append(render(rng, backdrop, tuple(act(time, zoom) for act in casts), light, occluders=posts))
    return frames


def _render(root: Path, unit: int) -> list[Note]:
    name = SEQUENCES[unit].name
    masks = root / "DAVIS" / "Annotations" / "480p" / name
    masks.mkdir(parents=True)
    for number, frame in enumerate(video_frames(unit)):
        save_jpeg(root / "DAVIS" / "JPEGImages" / "480p" / name / f"{number:05d}.jpg", frame.pixels)
        write_mask(masks / f"{number:05d}.png", frame.figures.astype(np.uint8))
    return []


def _finish(root: Path, notes: Sequence[Note]) -> None:
    save_text(root / "DAVIS" / "ImageSets" / "2017" / "val.txt", sorted(clip.name for clip in SEQUENCES))


WRITER = Writer("davis", (facts.FRAMES_PER_SEQUENCE,) * facts.SEQUENCES, _render, _finish)
