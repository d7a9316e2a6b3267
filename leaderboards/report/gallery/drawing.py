"""How the examples of one kind of task are drawn, and which of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leaderboards.report.gallery.kept import Kept
from leaderboards.report.gallery.markup import Pictures, folded
from leaderboards.report.gallery.stories import WORDS, Floats, Story, stories


@dataclass(frozen=True, slots=True)
class Example:
    """One example of a backbone, to be drawn.

    Attributes:
        kept: What is kept of the backbone.
        place: Which of its examples.
        others: Other backbones of the column.
        pictures: Where its pictures are.
    """

    kept: Kept
    place: int
    others: Sequence[Kept]
    pictures: Pictures


@dataclass(frozen=True, slots=True)
class Drawing:
    """A kind of task.

    Attributes:
        intro: What is to be seen, as markup.
        quality: How good each drawn layer is on each example, 0 to 100: [layers examples].
        subject: What an example is of; of each subject one is shown.
        summary: An example in a line, as markup.
        inner: What is seen when it is opened, as markup.
    """

    intro: Callable[[Kept], str]
    quality: Callable[[Kept], Floats]
    subject: Callable[[Kept, int], str]
    summary: Callable[[Example], str]
    inner: Callable[[Example], str]


def drawn(drawing: Drawing, every: Sequence[Kept], pictures: Pictures) -> str:
    """The examples of the best backbone that show what changes over depth.

    Where it loses none, one follows that the next best backbone loses which does.

    Args:
        drawing: The kind of task.
        every: The backbones, the best first.
        pictures: Where their pictures are.
    """
    best = every[0]
    told = _told(drawing, best)
    parts = [_one(drawing, every, best, story, pictures) for story in told]
    if not any(story.kind == "lost" for story in told):
        lost = ((one, story) for one in every[1:] for story in _told(drawing, one) if story.kind == "lost")
        if found := next(lost, None):
            parts.append(_one(drawing, every, *found, pictures))
    if parts:
        parts[0] = parts[0].replace("<details ", "<details open ", 1)
    return drawing.intro(best) + "".join(parts)


def _told(drawing: Drawing, kept: Kept) -> list[Story]:
    """The stories of a backbone, one of each subject."""
    first: dict[str, Story] = {}
    for one in stories(drawing.quality(kept)):
        first.setdefault(drawing.subject(kept, one.place), one)
    return list(first.values())


def _one(drawing: Drawing, every: Sequence[Kept], kept: Kept, story: Story, pictures: Pictures) -> str:
    others = [one for one in every if one is not kept]
    example = Example(kept, story.place, others, pictures)
    badge = WORDS[story.kind] if kept is every[0] else f"{WORDS[story.kind]} by {kept.backbone}"
    return folded(drawing.summary(example), badge, drawing.inner(example))
