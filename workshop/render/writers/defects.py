"""The dataset of defects, in MVTec AD's layout: figures as products, all photographed alike."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from workshop.render.background import draw_backdrop
from workshop.render.facts import DEFECTIVE_PER_KIND, GOOD_PER_PRODUCT, PRODUCTS, REFERENCES_PER_PRODUCT
from workshop.render.individual import Individual, draw_individual
from workshop.render.lighting import draw_light
from workshop.render.scene import Camera, Figure, moved, placed, render
from workshop.render.seeds import Namespace, Rng, generator
from workshop.render.templates import class_index
from workshop.render.textures import draw_colour
from workshop.render.writers.base import Mask, Note, Writer, save_jpeg

SIZE = (96, 96)
NAMES = ("beetle", "car", "mug", "windmill")
KINDS = ("colour", "missing", "scratch", "spot")
_TEST = ("good",) * GOOD_PER_PRODUCT + tuple(kind for kind in KINDS for _ in range(DEFECTIVE_PER_KIND))
_LEAST, _MOST = 0.03, 0.4  # share of a figure that a part has which is missing or of a wrong colour

Pixels = NDArray[np.uint8]


def photograph(product: int, number: int, kind: str) -> tuple[Pixels, Mask]:
    """A picture of a product, uint8 [height width 3], and where its defect is, [height width].

    All pictures of a product show one individual before one background, a little moved and lit.
    """
    look, rng = generator(Namespace.DEFECTS, product), generator(Namespace.DEFECTS, product, number + 1)
    individual = draw_individual(look, class_index(NAMES[product]))
    backdrop = draw_backdrop(look, SIZE, individual.materials[0].colour)
    figure = _placed(rng, individual)
    light = draw_light(rng, 0.15)
    rendering = render(rng, backdrop.pixels, (figure,), light)
    nothing = np.zeros(rendering.mask.shape, np.bool_)
    if kind == "good":
        return rendering.pixels, nothing
    if kind in ("scratch", "spot"):
        mask = rendering.mask & (_stroke if kind == "scratch" else _blot)(rng, rendering.mask)
    else:
        mask = _part(rng, rendering.parts, rendering.mask)
    if kind == "missing":
        other = render(rng, backdrop.pixels, (), light).pixels
    else:
        other = _painted(rng, rendering.pixels)
    return np.where(mask[:, :, None], other, rendering.pixels), mask


def _placed(rng: Rng, individual: Individual) -> Figure:
    """The product in nearly the same pose and place as in every picture."""
    parts = individual.template.parts
    angles = tuple(float(rng.uniform(-0.04, 0.04)) * part.swing for part in parts)
    camera = Camera(rotation=float(rng.uniform(-2, 2)))
    centred, _ = placed(Figure(individual, angles, camera), (0.84 * SIZE[0], 0.84 * SIZE[1]))
    x, y = (side / 2 + float(rng.uniform(-2, 2)) for side in SIZE)
    return moved(centred, x, y)


def _painted(rng: Rng, pixels: Pixels) -> Pixels:
    """The pixels in a colour that stands out from most of them, with some of their light and shade."""
    shade = pixels.mean(axis=2, keepdims=True) / 255
    tries = np.array([draw_colour(rng) for _ in range(8)])
    colour = tries[np.abs(tries - pixels.mean((0, 1)) / 255).sum(1).argmax()]
    return np.asarray(np.clip(255 * colour * (0.55 + 0.6 * shade), 0, 255), np.uint8)


def _part(rng: Rng, parts: NDArray[np.int16], figure: Mask) -> Mask:
    """A part of the figure that is neither small nor most of it."""
    sizes = np.bincount(parts[figure])
    share = sizes / max(1, sizes.sum())
    fitting = np.flatnonzero((share >= _LEAST) & (share <= _MOST))
    chosen = rng.choice(fitting) if len(fitting) else share.argmax()
    return np.asarray(figure & (parts == chosen))


def _centre(rng: Rng, figure: Mask) -> NDArray[np.float64]:
    """A pixel of the figure, row and column, that is not at its rim."""
    inner = figure.copy()
    for step in (-3, 3):
        inner &= np.roll(figure, step, 0) & np.roll(figure, step, 1)
    places = np.argwhere(inner if inner.any() else figure)
    return np.asarray(places[rng.integers(len(places))], np.float64)


def _stroke(rng: Rng, figure: Mask) -> Mask:
    centre, turn = _centre(rng, figure), rng.uniform(0, np.pi)
    rows, columns = np.indices(figure.shape)
    along = (rows - centre[0]) * np.sin(turn) + (columns - centre[1]) * np.cos(turn)
    across = (rows - centre[0]) * np.cos(turn) - (columns - centre[1]) * np.sin(turn)
    return np.asarray((np.abs(along) < rng.uniform(9, 16)) & (np.abs(across) < rng.uniform(0.9, 1.6)))


def _blot(rng: Rng, figure: Mask) -> Mask:
    centre = _centre(rng, figure)
    rows, columns = np.indices(figure.shape)
    return np.asarray(np.hypot(rows - centre[0], columns - centre[1]) < rng.uniform(3.5, 6.5))


def _render(root: Path, unit: int) -> list[Note]:
    product, test = divmod(unit, 2)
    folder = root / "defects" / NAMES[product]
    for number, kind in enumerate(_TEST if test else ("good",) * REFERENCES_PER_PRODUCT):
        pixels, mask = photograph(product, number + test * REFERENCES_PER_PRODUCT, kind)
        save_jpeg(folder / ("test" if test else "train") / kind / f"{number:03d}.jpg", pixels)
        if kind != "good":
            truth = folder / "ground_truth" / kind
            truth.mkdir(parents=True, exist_ok=True)
            Image.fromarray(mask.astype(np.uint8) * np.uint8(255)).save(truth / f"{number:03d}_mask.png")
    return []


def _finish(root: Path, notes: Sequence[Note]) -> None:
    """The folders say everything."""


WRITER = Writer("defects", (REFERENCES_PER_PRODUCT, len(_TEST)) * PRODUCTS, _render, _finish)
