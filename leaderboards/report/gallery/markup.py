"""Markup of the gallery: pictures that stand in the page once, marks, and tables whose columns are layers."""

import base64
from collections.abc import Sequence
from html import escape
from io import BytesIO
from pathlib import Path

from PIL import Image

from leaderboards.records.thumbnails import is_whole
from leaderboards.report.gallery.kept import Kept

ROOM = 420_000
"""Characters that all pictures together take at most; what comes after has its name only."""

HEIGHT = 68
"""Pixels at which a small picture is shown."""

LARGE = 104
"""Pixels at which one is shown on which something is drawn."""


class Pictures:
    """The pictures of a section, each of which stands in it once, however often it is shown.

    Args:
        room: Characters for all of them.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._known: dict[Path, tuple[str, int, int] | None] = {}
        self._definitions: list[str] = []

    @property
    def definitions(self) -> str:
        """What must stand in the page before they are shown."""
        inner = "".join(self._definitions)
        return (
            f'<svg class="examples-store" width="0" height="0" aria-hidden="true"><defs>{inner}</defs></svg>'
        )

    def shown(self, kept: Kept, name: object, label: str, over: str = "", height: int = HEIGHT) -> str:
        """A picture.

        Args:
            kept: Whose.
            name: The image's name in the arrays.
            label: What is seen, for those who do not see it; not escaped yet.
            over: Markup that is drawn over it, in the picture's pixels.
            height: Pixels at which it is shown.
        """
        found = self.size(kept, name)
        if found is None:
            return f'<span class="examples-none">{escape(str(label))}<br>(no picture)</span>'
        anchor, width, tall = found
        return (
            f'<svg class="examples-picture" role="img" aria-label="{escape(label)}" '
            f'viewBox="0 0 {width} {tall}" width="{round(width * height / tall)}" height="{height}">'
            f'<title>{escape(label)}</title><use href="#{anchor}"/>{over}</svg>'
        )

    def size(self, kept: Kept, name: object) -> tuple[str, int, int] | None:
        """Anchor, width and height of a picture; None where there is none, or no room."""
        path = kept.files.get(str(name))
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
        anchor = f"examples-{len(self._definitions)}"
        self._definitions.append(
            f'<image id="{anchor}" width="{width}" height="{height}" href="data:image/webp;base64,{data}"/>'
        )
        return anchor, width, height


def mark(right: bool) -> str:
    """A sign for right or wrong, which readers of the screen are told in words."""
    sign, word = ("✓", "right") if right else ("✗", "wrong")
    return f'<span class="examples-{word}"><span aria-hidden="true">{sign}</span> {_hidden(word)}</span>'


def _hidden(word: str) -> str:
    return f'<span class="hidden">{word}:</span> '


def framed(inner: str, right: bool, caption: str = "") -> str:
    """A picture with a border and a sign that tell whether it is right, and a caption (not escaped yet)."""
    word = "yes" if right else "no"
    below = f"<small>{mark(right)}{escape(caption)}</small>" if caption else ""
    return f'<span class="examples-frame examples-{word}">{inner}</span>{below}'


def layer_table(kept: Kept, label: str, rows: Sequence[tuple[str, Sequence[str]]], first: str = "") -> str:
    """A table whose columns are the layers that are drawn.

    Args:
        kept: Whose layers.
        label: What the table shows, not escaped yet.
        rows: For each row its heading (not escaped yet) and its cells (markup).
        first: Heading of a column that stands before those of the layers; none if empty.
    """
    heads = [first] if first else []
    for place, layer in enumerate(kept.layers):
        heads.append(f"layer {layer}" + (" (best)" if place == kept.best else ""))
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(title)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for title, cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def folded(summary: str, badge: str, inner: str) -> str:
    """An example that opens and closes; ``summary`` and ``inner`` are markup, ``badge`` is not."""
    return (
        f'<details class="examples-one"><summary>{summary} <span class="examples-badge">{escape(badge)}'
        f"</span></summary>\n{inner}</details>\n"
    )


def others_list(what: str, texts: Sequence[str]) -> str:
    """What other backbones say at their best layers; markup, nothing where there are none."""
    if not texts:
        return ""
    items = "".join(f"<li>{text}</li>" for text in texts)
    return (
        f'<p>The same {escape(what)} at the best layer of others:</p><ul class="examples-others">{items}</ul>'
    )


def listed(numbers: Sequence[int]) -> str:
    """Layers in words."""
    texts = [str(number) for number in numbers]
    if len(texts) < 2:
        return f"layer {texts[0]}" if texts else "no layer"
    return f"layers {', '.join(texts[:-1])} and {texts[-1]}"
