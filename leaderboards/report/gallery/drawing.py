"""How the examples of one kind of task are drawn, and which of them."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

from leaderboards.records.thumbnails import is_whole
from leaderboards.report.gallery.examples import ExampleSet
from leaderboards.report.html import filled

ROOM = 420_000  # characters that all pictures together take at most; what comes after has its name only
HEIGHT = 68  # pixels at which a small picture is shown
LARGE = 104  # pixels at which one is shown on which something is drawn
Kind = Literal["lost", "found", "failed", "held"]

WORDS: dict[Kind, str] = {
    "lost": "lost with depth",
    "found": "found with depth",
    "failed": "failed at every layer",
    "held": "right at every layer",
}

WANTED: dict[Kind, int] = {"lost": 2, "found": 2, "failed": 2, "held": 1}
"""How many of each kind are shown at most, in this order."""

CHANGE = 25.0  # points by which an example changes that is said to be lost or found
GOOD, BAD = 75.0, 40.0  # points from which on an example is held, and up to which it has failed
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Story:
    """An example and why it is shown."""

    number: int
    kind: Kind


def stories(quality: Floats) -> list[Story]:
    """The examples to show, kind by kind; of each kind those that show it most, then in their order.

    Args:
        quality: How good each layer is on each example, 0 to 100: [layers examples].
    """
    lost = quality.max(axis=0) - quality[-1]
    gained = quality[-1] - quality.min(axis=0)
    ranks: dict[Kind, Floats] = {
        "lost": np.where(lost >= CHANGE, lost, np.nan),
        "found": np.where((gained >= CHANGE) & (lost < CHANGE), gained, np.nan),
        "failed": np.where(quality.max(axis=0) <= BAD, -quality.max(axis=0), np.nan),
        "held": np.where(quality.min(axis=0) >= GOOD, quality.min(axis=0), np.nan),
    }
    chosen: list[Story] = []
    for kind, most in WANTED.items():
        rank = ranks[kind]
        order = [number for number in np.argsort(-rank, kind="stable").tolist() if not np.isnan(rank[number])]
        chosen += [Story(number, kind) for number in order[:most]]
    return chosen


class SharedPictures:
    """The pictures of a section, each of which stands in it once, however often it is shown.

    Args:
        room: Characters for all of them.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._known: dict[Path, tuple[str, int, int] | None] = {}
        self.addresses: list[tuple[str, int, int, str]] = []

    def shown(
        self, examples: ExampleSet, name: object, label: str, over: Markup | str = "", height: int = HEIGHT
    ) -> Markup:
        """A picture; its label alone where there is none, or no room.

        Args:
            examples: Those that it is of.
            name: The image's name in their arrays.
            label: What is seen, for those who do not see it.
            over: What is drawn over it, in the picture's pixels.
            height: Pixels at which it is shown.
        """
        size = self.size(examples, name)
        return filled("thumbnail", size=size, label=label, over=over, height=height)

    def size(self, examples: ExampleSet, name: object) -> tuple[str, int, int] | None:
        """Anchor, width and height of a picture; None where there is none, or no room."""
        path = examples.files.get(str(name))
        if path is None:
            return None
        if path not in self._known:
            self._known[path] = self._added(path)
        return self._known[path]

    def _added(self, path: Path) -> tuple[str, int, int] | None:
        if not is_whole(path):
            return None
        content = path.read_bytes()
        data = base64.b64encode(content).decode()
        if len(data) > self._room:
            return None
        self._room -= len(data)
        with Image.open(BytesIO(content), formats=("WEBP",)) as image:
            width, height = image.size
        anchor = f"examples-{len(self.addresses)}"
        self.addresses.append((anchor, width, height, data))
        return anchor, width, height


def judged(text: str = "", right: bool | None = None, picture: Markup | None = None) -> Markup:
    """Words, a picture or both, and whether they are right, which readers of the screen are told in words."""
    return filled("judged", text=text, right=right, picture=picture)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Images that a layer puts together: the class that most are of, and the images as they are shown."""

    name: str
    images: tuple[Markup, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """An example as it is shown, in a line and, opened, as a table of layers or as clusters."""

    name: str  # what it is of
    summary: str  # what the layers make of it, in a line
    picture: Markup | str = ""  # a picture beside that
    badge: str = ""  # why it is shown
    note: str = ""  # a line above the table, or below the clusters
    table: str = ""  # what its table shows; "" without one
    heads: tuple[str, ...] = ()  # names of the columns
    rows: tuple[tuple[str | Markup, ...], ...] = ()  # for each row its name and its cells
    clusters: tuple[Cluster, ...] = ()  # groups of images
    subject: str = ""  # what the other backbones are told of
    others: tuple[str | Markup, ...] = ()  # what they make of it at their best layers


def layer_heads(examples: ExampleSet, *first: str) -> tuple[str, ...]:
    """Names of the columns of a table whose columns are the layers that are drawn."""
    layers = [
        f"layer {layer} (best)" if number == examples.best else f"layer {layer}"
        for number, layer in enumerate(examples.layers)
    ]
    return ("", *first, *layers)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A kind of task."""

    intro: Callable[[ExampleSet], str]  # what is to be seen
    # how good each drawn layer is on each example, 0 to 100: [layers examples]
    quality: Callable[[ExampleSet], Floats]
    subject: Callable[[ExampleSet, int], str]  # what an example is of; of each subject one is shown
    # the example at a place, given the other backbones of the column and the section's pictures
    example: Callable[[ExampleSet, int, Sequence[ExampleSet], SharedPictures], Example]


def drawn(
    drawing: Drawing, every: Sequence[ExampleSet], pictures: SharedPictures
) -> tuple[str, list[Example]]:
    """What is to be seen, and the examples of the best backbone that show what changes over depth.

    Where it loses none, one follows that the next best backbone loses which does.

    Args:
        drawing: The kind of task.
        every: The backbones, the best first.
        pictures: The section's pictures.
    """
    best = every[0]
    chosen = [(best, story) for story in _stories(drawing, best)]
    if not any(story.kind == "lost" for _, story in chosen):
        lost = (
            (other, story)
            for other in every[1:]
            for story in _stories(drawing, other)
            if story.kind == "lost"
        )
        chosen += [first] if (first := next(lost, None)) else []
    drawn_examples = []
    for examples, story in chosen:
        others = [other for other in every if other is not examples]
        by = "" if examples is best else f" by {examples.backbone}"
        example = drawing.example(examples, story.number, others, pictures)
        drawn_examples.append(replace(example, badge=WORDS[story.kind] + by))
    return drawing.intro(best), drawn_examples


def _stories(drawing: Drawing, examples: ExampleSet) -> list[Story]:
    """The stories of a backbone, one of each subject."""
    first: dict[str, Story] = {}
    for story in stories(drawing.quality(examples)):
        first.setdefault(drawing.subject(examples, story.number), story)
    return list(first.values())
