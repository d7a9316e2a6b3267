"""Examples of k-NN and of retrieval: a query, and what layers find nearest to it."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from leaderboards.report.gallery.drawing import Drawing, Example
from leaderboards.report.gallery.kept import Kept
from leaderboards.report.gallery.markup import framed, layer_table, listed, mark, others_list
from leaderboards.report.gallery.stories import Floats

ORDINALS = ("1st", "2nd", "3rd", "4th")


def _query(kept: Kept, place: int) -> str:
    return str(kept.arrays["query"][place])


def _knn_quality(kept: Kept) -> Floats:
    return 100.0 * kept.drawn("right").astype(np.float64)


def _knn_intro(kept: Kept) -> str:
    right = kept.drawn("right")
    counts = kept.at_layers([f"{count} of {right.shape[1]} are right" for count in right.sum(axis=1)])
    return (
        f"<p>{right.shape[1]} queries are kept, the same of every backbone: {counts}. Each is shown with its "
        "nearest training images; a full border and ✓ stand for its own class, a dashed one and ✗ for "
        "another.</p>"
    )


def _knn_summary(example: Example) -> str:
    kept, place = example.kept, example.place
    true, name = kept.called(kept.arrays["class"][place]), _query(kept, place)
    told = _told(kept, kept.drawn("right")[:, place].astype(bool))
    picture = example.pictures.shown(kept, name, f"query: {true}, {name}")
    return f"{picture} <span><b>{escape(true)}</b> {escape(told)}</span>"


def _told(kept: Kept, right: NDArray[np.bool_]) -> str:
    """At which layers an example is right."""
    good = [layer for layer, one in zip(kept.layers, right, strict=True) if one]
    bad = [layer for layer, one in zip(kept.layers, right, strict=True) if not one]
    if not good or not bad:
        return f"{'right' if good else 'wrong'} at {listed(good or bad)}"
    return f"right at {listed(good)}, wrong at {listed(bad)}"


def _knn_inner(example: Example) -> str:
    kept, place = example.kept, example.place
    true = kept.arrays["class"][place]
    right = kept.drawn("right")[:, place].astype(bool)
    given = [kept.called(one) for one in kept.drawn("predicted")[:, place]]
    rows = [("taken for", [mark(good) + escape(word) for good, word in zip(right, given, strict=True)])]
    near, classes = kept.drawn("neighbour")[:, place], kept.drawn("neighbour_class")[:, place]
    cosines = kept.drawn("cosine")[:, place]
    for rank in range(near.shape[1]):
        cells = []
        for row, layer in enumerate(kept.layers):
            word, good = kept.called(classes[row, rank]), bool(classes[row, rank] == true)
            state = f"{'right' if good else 'wrong'} class, neighbour {rank + 1} at layer {layer}"
            label = f"{word}: {state}, cosine {cosines[row, rank]:.2f}, {near[row, rank]}"
            cells.append(framed(example.pictures.shown(kept, near[row, rank], label), good, word))
        rows.append((f"{ORDINALS[rank]} neighbour", cells))
    table = layer_table(kept, f"{kept.called(true)}: nearest neighbours by layer", rows)
    return f"<p>{escape(_query(kept, place))}</p>{table}{_knn_others(example)}"


def _knn_others(example: Example) -> str:
    texts = []
    for other in example.others:
        for place in np.flatnonzero(other.arrays["query"] == _query(example.kept, example.place)):
            right = bool(other.drawn("right")[other.best, place])
            word = other.called(other.drawn("predicted")[other.best, place])
            texts.append(f"{mark(right)}{escape(other.backbone)}, layer {other.layer}: {escape(word)}")
    return others_list("query", texts)


KNN = Drawing(_knn_intro, _knn_quality, _query, _knn_summary, _knn_inner)
"""Queries of k-NN, the class that layers give them, and their nearest training images."""


def _precision(kept: Kept) -> Floats:
    return kept.drawn("average_precision").astype(np.float64)


def _ranking_intro(kept: Kept) -> str:
    return (
        f"<p>{len(kept.arrays['query'])} queries are kept, the same of every backbone. Each is shown with "
        "the images that are ranked first, without those that do not count; AP is the average precision "
        "(Medium) of the whole ranking, in percent.</p>"
    )


def _ranking_summary(example: Example) -> str:
    kept, name = example.kept, _query(example.kept, example.place)
    told = kept.at_layers([f"AP {value:.0f}" for value in _precision(kept)[:, example.place]])
    count = int(kept.arrays["positives"][example.place])
    picture = example.pictures.shown(kept, name, f"query {name}")
    short = name.removeprefix("query/")
    return f"{picture} <span><b>{escape(short)}</b> {escape(told)}; {count} images show the same</span>"


def _ranking_inner(example: Example) -> str:
    kept, place, name = example.kept, example.place, _query(example.kept, example.place)
    rows = [("AP", [f"{value:.0f}" for value in _precision(kept)[:, place]])]
    near, kinds = kept.drawn("neighbour")[:, place], kept.drawn("kind")[:, place]
    for rank in range(near.shape[1]):
        cells = []
        for layer, key, kind in zip(kept.layers, near[:, rank], kinds[:, rank], strict=True):
            good = str(kind) in ("easy", "hard")
            word = f"same, {kind}" if good else "another"
            label = f"{word}: rank {rank + 1} at layer {layer}, {key}"
            cells.append(framed(example.pictures.shown(kept, key, label), good, word) if key else "")
        rows.append((f"rank {rank + 1}", cells))
    texts = [
        f"{escape(other.backbone)}, layer {other.layer}: AP {_precision(other)[other.best, found]:.0f}"
        for other in example.others
        for found in np.flatnonzero(other.arrays["query"] == name)
    ]
    table = layer_table(kept, f"{name}: first images of the ranking by layer", rows)
    return table + others_list("query", texts)


RETRIEVAL = Drawing(_ranking_intro, _precision, _query, _ranking_summary, _ranking_inner)
"""Queries of retrieval, and the images that layers rank first."""
