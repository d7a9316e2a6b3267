"""Training images on the fly: the same scenes as the evaluation sets', never the same pictures."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workshop.render.individual import draw_individual
from workshop.render.seeds import Namespace, Size, generator
from workshop.render.still import Still, Variation, draw_still
from workshop.render.templates import TEMPLATES, Facing
from workshop.render.textures import colour_name


class RenderedImage(NamedTuple):
    """A picture and the facts of its scene."""

    pixels: NDArray[np.uint8]  # [height width 3]
    class_index: int  # rank of the class in ``class_names``
    caption: str  # a sentence: colour, texture and class of the figure, its pose, its background


def sample_image(seed: int, class_index: int | None = None, size: Size = (64, 64)) -> RenderedImage:
    """A random training image.

    Its generator is ``SeedSequence(ENTROPY, spawn_key=(Namespace.TRAINING, seed))``; evaluation sets have
    other first words in their spawn keys, so no seed (from 0) reaches their streams. The class is drawn where
    it is not given, and the rest of the scene after it either way.
    """
    rng = generator(Namespace.TRAINING, seed)
    drawn = int(rng.integers(len(TEMPLATES)))
    index = drawn if class_index is None else class_index
    still = draw_still(rng, draw_individual(rng, index), size, Variation())
    return RenderedImage(still.rendering.pixels, index, _caption(still))


def _pose(still: Still) -> str:
    camera, facing = still.figure.camera, still.figure.individual.template.facing
    if facing is Facing.SIDE:
        return "facing left" if camera.mirror else "facing right"
    if facing is Facing.FRONT:
        return "seen from the front"
    # Rotation is clockwise from right.
    heading = ("right", "down", "left", "up")[round(camera.rotation / 90) % 4]
    return f"seen from above, heading {heading}"


def _caption(still: Still) -> str:
    individual, backdrop = still.figure.individual, still.backdrop
    main = individual.materials[0]
    words = colour_name(main.colour)
    if main.texture.kind != "plain":
        words = f"{main.texture.kind} {words} and {colour_name(main.other)}"
    article = "an" if words[0] in "aeiou" else "a"
    hidden = ", partly hidden" if still.rendering.shown[0] < 0.9 else ""
    ground = "dotted" if backdrop.texture == "spotted" else backdrop.texture
    background = f"on a {ground} {colour_name(backdrop.colour)} background"
    return f"{article} {words} {individual.template.name} {_pose(still)}{hidden}, {background}"
