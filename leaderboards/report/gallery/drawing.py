"""How the examples of a kind of task are selected and drawn."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

from layerboard.leaderboards.records.thumbnails import is_whole
from layerboard.leaderboards.report.gallery.examples import ExampleSet, ExampleSets
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.zoo.reading import read_regular

ROOM = 420_000  # maximum characters of all pictures together; later ones are only named
HEIGHT = 68  # height of a small picture in pixels
LARGE = 104  # height in pixels of a picture with an overlay
Kind = Literal["missed", "lost", "found", "failed", "held"]

Floats = NDArray[np.float64]

# label of each kind of example, and the maximum number to show, in this order
WANTED: dict[Kind, tuple[str, int]] = {
    "missed": ("missed by the best backbone, not by all", 3),
    "lost": ("lost with depth", 2),
    "found": ("found with depth", 2),
    "failed": ("failed at every layer", 2),
    "held": ("right at every layer", 1),
}
CHANGE = 25.0  # change in points from which on an example counts as lost or found
GOOD, BAD = 75.0, 40.0  # points from which on an example is held, and up to which it has failed

Story = tuple[int, Kind]  # index of an example, and why it is shown


def stories(quality: Floats, missed: Floats | None = None) -> list[Story]:
    """The examples to show, the clearest of each kind, by quality, 0 to 100: [layers examples].

    ``missed`` is the gain of another backbone on examples that the best one misses, NaN for others.
    """
    lost = quality.max(axis=0) - quality[-1]
    gained = quality[-1] - quality.min(axis=0)
    ranks: dict[Kind, Floats] = {
        "missed": np.full(quality.shape[1], np.nan) if missed is None else missed,
        "lost": np.where(lost >= CHANGE, lost, np.nan),
        "found": np.where((gained >= CHANGE) & (lost < CHANGE), gained, np.nan),
        "failed": np.where(quality.max(axis=0) <= BAD, -quality.max(axis=0), np.nan),
        "held": np.where(quality.min(axis=0) >= GOOD, quality.min(axis=0), np.nan),
    }
    chosen: list[Story] = []
    for kind, (_, most) in WANTED.items():
        order = np.argsort(-ranks[kind], kind="stable")[: np.isfinite(ranks[kind]).sum()]
        chosen += [(number, kind) for number in order[:most].tolist()]
    return chosen


class SharedPictures:
    """The pictures of a section, each stored once, however often it is shown."""

    def __init__(self, section: str = "examples", room: int = ROOM) -> None:
        self._section, self._room = section, room
        self._known: dict[Path, tuple[str, int, int] | None] = {}
        self.addresses: list[tuple[str, int, int, str]] = []

    def shown(self, examples: ExampleSet, name: object, label: str, over: Markup | str = "") -> Markup:
        """The picture of that name below an overlay; only its label if it is missing or does not fit."""
        size, height = self.size(examples, name), LARGE if over else HEIGHT
        return filled("thumbnail", size=size, label=label, over=over, height=height)

    def size(self, examples: ExampleSet, name: object) -> tuple[str, int, int] | None:
        """Anchor, width and height of a picture; None if it is missing or does not fit."""
        path = examples.files.get(str(name))
        if path is None or path in self._known:
            return None if path is None else self._known[path]
        content, self._known[path] = read_regular(path) if is_whole(path) else b"", None
        data = base64.b64encode(content).decode()
        if 0 < len(data) <= self._room:
            self._room -= len(data)
            with Image.open(BytesIO(content), formats=("WEBP",)) as image:
                known = f"{self._section}-{len(self.addresses)}", *image.size
            self.addresses.append((*known, data))
            self._known[path] = known
        return self._known[path]


def judged(text: str = "", right: bool | None = None, picture: Markup | None = None) -> Markup:
    """Words, a picture or both, marked right or wrong, also in words for screen readers."""
    return filled("judged", text=text, right=right, picture=picture)


@dataclass(frozen=True, slots=True)
class Example:
    """An example as it is shown: in one line and, when opened, as a table of layers or as clusters."""

    name: str  # what it shows
    summary: str  # a summary of the layers in one line
    picture: Markup | str = ""  # a picture beside that
    badge: str = ""  # why it is shown
    note: str = ""  # a line above the table, or below the clusters
    table: str = ""  # title of its table; "" without one
    heads: tuple[str, ...] = ()  # names of the columns
    rows: tuple[tuple[str | Markup, ...], ...] = ()  # name and cells of each row
    # clusters of a layer: the majority class, and the images as they are shown
    clusters: tuple[tuple[str, list[Markup]], ...] = ()
    subject: str = ""  # the subject of the texts on other backbones
    others: tuple[str | Markup, ...] = ()  # results of these at their best layers


def layer_heads(examples: ExampleSet, *first: str) -> tuple[str, ...]:
    """Heads of a table whose columns are the layers that are drawn."""
    heads = [f"layer {layer}" for layer in examples.layers]
    heads[examples.best] += " (best)"
    return ("", *first, *heads)


class Drawing(NamedTuple):
    """How a kind of task is drawn."""

    intro: str  # introduction: ``{count}`` subjects, ``{right}`` examples at layers
    # quality of each drawn layer on each example, 0 to 100: [layers examples]
    quality: Callable[[ExampleSet], Floats]
    key: str  # array of the names of examples, by which they are found for other backbones
    subject: str  # array of the subjects of examples; one example per subject is shown
    # draws the example at an index, with the section's pictures
    example: Callable[[ExampleSet, int, SharedPictures], Example]
    # answer of the best layer to the example at an index, and whether it is right, if that applies
    answer: Callable[[ExampleSet, int], tuple[str, bool | None]]


def quality(array: str, scale: float = 1.0) -> Callable[[ExampleSet], Floats]:
    """The quality of examples that is an array of numbers, or of marks, at each drawn layer."""
    return lambda examples: scale * examples.drawn(array).astype(np.float64)


def scored(text: str, array: str = "score") -> Callable[[ExampleSet, int], tuple[str, None]]:
    """An answer that is an element of an array, neither right nor wrong, in words."""
    return lambda examples, index: (text.format(examples.drawn(array)[examples.best, index]), None)


def draw_examples(
    drawing: Drawing, every: ExampleSets, pictures: SharedPictures
) -> tuple[str, list[Example]]:
    """The introduction, and examples of the best backbone; if it loses none, one that the next loses."""
    best = every[0]
    chosen = [(best, story) for story in _stories(drawing, best, missed(drawing, every))]
    if not any(kind == "lost" for _, (_, kind) in chosen):
        further = ((other, story) for other in every[1:] for story in _stories(drawing, other))
        chosen += islice((each for each in further if each[1][1] == "lost"), 1)
    drawn_examples = []
    for examples, (number, kind) in chosen:
        name = examples.arrays[drawing.key][number]
        rest = [other for other in every if other is not examples]
        others = [_answer(drawing, other, index) for other, index in found_again(drawing, rest, name)]
        badge = WANTED[kind][0] + ("" if examples is best else f" by {examples.backbone}")
        example = drawing.example(examples, number, pictures)
        drawn_examples.append(replace(example, badge=badge, subject=drawing.key, others=tuple(others)))
    good = drawing.quality(best) == 100
    right = best.at_layers([f"{row.sum()} of {len(row)} are right" for row in good])
    count = len({*best.arrays[drawing.subject].tolist()})
    return drawing.intro.format(count=count, right=right), drawn_examples


def _answer(drawing: Drawing, examples: ExampleSet, index: int) -> str | Markup:
    words, right = drawing.answer(examples, index)
    text = f"{examples.backbone}, layer {examples.layer}: {words}"
    return text if right is None else judged(text, right)


def found_again(drawing: Drawing, every: ExampleSets, name: object) -> Iterator[tuple[ExampleSet, int]]:
    """The backbones that have the example of that name, and its index there."""
    for each in every:
        yield from ((each, int(index)) for index in np.flatnonzero(each.arrays[drawing.key] == name))


def missed(drawing: Drawing, every: ExampleSets) -> Floats:
    """The gain of another backbone on what the first one misses, each at its best layer.

    In points for each example of the first one; NaN for those that it does not miss, and that all others
    miss.
    """
    own, *others = (
        dict(zip(each.arrays[drawing.key].tolist(), drawing.quality(each)[each.best], strict=True))
        for each in every
    )
    best = {name: max((other[name] for other in others if name in other), default=0.0) for name in own}
    lost = [own[name] <= BAD and best[name] >= GOOD for name in own]
    return np.where(lost, [best[name] - own[name] for name in own], np.nan)


def _stories(drawing: Drawing, examples: ExampleSet, missed: Floats | None = None) -> list[Story]:
    """The stories of a backbone, one per subject."""
    first: dict[str, Story] = {}
    for story in stories(drawing.quality(examples), missed):
        first.setdefault(str(examples.arrays[drawing.subject][story[0]]), story)
    return list(first.values())
