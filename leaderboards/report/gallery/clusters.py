"""Examples of image clustering: what the clusters of a layer hold."""

from collections import Counter
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from leaderboards.report.gallery.kept import Kept
from leaderboards.report.gallery.markup import Pictures, folded, framed

LEAST = 2
"""Images that a cluster holds which is shown."""

MOST = 8
"""Clusters of a layer that are shown, the largest first."""


def clusters(every: Sequence[Kept], pictures: Pictures) -> str:
    """The same images as the first, the best and the last layer of the best backbone group them."""
    kept = every[0]
    rows = sorted({0, kept.best, len(kept.layers) - 1})
    classes = sorted({_class(kept, place) for place in range(len(kept.arrays["image"]))})
    intro = (
        f"<p>{len(kept.arrays['image'])} images of {len(classes)} classes ({escape(', '.join(classes))}), "
        "and the clusters that k-means puts them into without knowing these; a dashed border and ✗ mark "
        "what is not of the class that most of its cluster has here.</p>"
    )
    return intro + "".join(_layer(kept, pictures, row) for row in rows)


def _layer(kept: Kept, pictures: Pictures, row: int) -> str:
    found = kept.drawn("cluster")[row]
    groups = [np.flatnonzero(found == number) for number in np.unique(found[found >= 0])]
    groups.sort(key=lambda group: -len(group))
    own = sum(Counter(_class(kept, int(place)) for place in group).most_common(1)[0][1] for group in groups)
    shown = [group for group in groups[:MOST] if len(group) >= LEAST]
    rest = len(groups) - len(shown)
    best = " (best)" if row == kept.best else ""
    summary = (
        f"<span><b>layer {kept.layers[row]}{best}</b> {own} of {len(found)} are with their own class, in "
        f"{len(groups)} clusters</span>"
    )
    inner = "".join(_cluster(kept, pictures, group) for group in shown)
    smaller = "1 smaller cluster is" if rest == 1 else f"{rest} smaller clusters are"
    note = f"<p>{smaller} not shown.</p>" if rest else ""
    return folded(summary, "what clusters hold", inner + note)


def _cluster(kept: Kept, pictures: Pictures, places: NDArray[np.int64]) -> str:
    names = {int(place): _class(kept, int(place)) for place in places}
    most = min(Counter(names.values()).items(), key=lambda one: (-one[1], one[0]))[0]
    cells = []
    for place in sorted(names, key=lambda place: (names[place] != most, names[place], place)):
        key, name = kept.arrays["image"][place], names[place]
        state = "as most of its cluster" if name == most else "unlike most of its cluster"
        picture = pictures.shown(kept, key, f"{name}, {state}, {key}")
        cells.append(f"<li>{framed(picture, name == most, name)}</li>")
    return f'<ul class="examples-cluster" aria-label="a cluster, mostly {escape(most)}">{"".join(cells)}</ul>'


def _class(kept: Kept, place: int) -> str:
    return kept.called(kept.arrays["class"][place])
