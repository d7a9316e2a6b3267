"""Examples of whole images: what they are taken for, their nearest neighbours, numbers, labels, clusters."""

from collections import Counter

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from layerboard.leaderboards.blocks.display import ordinal
from layerboard.leaderboards.report.gallery import drawing
from layerboard.leaderboards.report.gallery.drawing import Drawing, Example, Floats, SharedPictures, judged
from layerboard.leaderboards.report.gallery.examples import ExampleSet, ExampleSets

LEAST = 2  # minimum images of a cluster that is shown
MOST = 8  # maximum clusters of a layer that are shown, the largest first


# ---- classification -----------------------------------------------------------------------------

_PROBE_INTRO = """\
{count} test images are kept, the same for every backbone: {right}. ✓ marks the image's own class, ✗ another \
class."""

_KNN_INTRO = """\
{count} queries are kept, the same for every backbone: {right}. Each is shown with its nearest training \
images; a solid border and ✓ mark its own class, a dashed border and ✗ another class."""


def _knn_example(examples: ExampleSet, number: int, pictures: SharedPictures) -> Example:
    name, truth = str(examples.arrays["query"][number]), examples.arrays["class"][number]
    true, right = examples.called(truth), examples.drawn("right")[:, number].astype(bool)
    given = [examples.called(folder) for folder in examples.drawn("predicted")[:, number]]
    taken = [judged(word, bool(good)) for word, good in zip(given, right, strict=True)]
    rows: list[tuple[str | Markup, ...]] = [("taken for", *taken)]
    if "neighbour" in examples.arrays:
        rows += _knn_rows(examples, number, pictures)
    return Example(
        name=true,
        summary=_at_layers(examples, right),
        picture=pictures.shown(examples, name, f"query: {true}, {name}"),
        note=name,
        table=f"{true}: {'nearest neighbours' if rows[1:] else 'what it is taken for'} by layer",
        heads=drawing.layer_heads(examples),
        rows=tuple(rows),
    )


def _knn_rows(examples: ExampleSet, number: int, pictures: SharedPictures) -> list[tuple[str | Markup, ...]]:
    """The nearest images of a query at each layer, one row per rank."""
    truth, rows = examples.arrays["class"][number], list[tuple[str | Markup, ...]]()
    near, classes = examples.drawn("neighbour")[:, number], examples.drawn("neighbour_class")[:, number]
    cosines = examples.drawn("cosine")[:, number]
    for rank in range(near.shape[1]):
        cells = []
        for row, layer in enumerate(examples.layers):
            word, good = examples.called(classes[row, rank]), bool(classes[row, rank] == truth)
            state = f"{'right' if good else 'wrong'} class, neighbour {rank + 1} at layer {layer}"
            label = f"{word}: {state}, cosine {cosines[row, rank]:.2f}, {near[row, rank]}"
            cells.append(judged(word, good, pictures.shown(examples, near[row, rank], label)))
        rows.append((f"{ordinal(rank + 1)} neighbour", *cells))
    return rows


def _knn_answer(examples: ExampleSet, index: int) -> tuple[str, bool]:
    word, right = (examples.drawn(name)[examples.best, index] for name in ("predicted", "right"))
    return examples.called(word), bool(right)


def _at_layers(examples: ExampleSet, right: NDArray[np.bool_]) -> str:
    layers = np.array(examples.layers)
    sides = (("right", layers[right].tolist()), ("wrong", layers[~right].tolist()))
    return ", ".join(f"{word} at {_listed(numbers)}" for word, numbers in sides if numbers)


def _listed(numbers: list[int]) -> str:
    *most, last = map(str, numbers)
    return f"layers {', '.join(most)} and {last}" if most else f"layer {last}"


# queries, their predicted class, and their nearest training images
KNN = Drawing(_KNN_INTRO, drawing.quality("right", 100), "query", "query", _knn_example, _knn_answer)
PROBES = KNN._replace(intro=_PROBE_INTRO)  # the same without neighbours


# ---- retrieval ----------------------------------------------------------------------------------

_RANKING_INTRO = """\
{count} queries are kept, the same for every backbone. Each is shown with the images ranked first, without \
junk images; AP is the average precision (Medium) of the whole ranking, in percent."""


def _ranking_example(examples: ExampleSet, number: int, pictures: SharedPictures) -> Example:
    name = str(examples.arrays["query"][number])
    precisions = [f"{value:.0f}" for value in examples.drawn("average_precision")[:, number]]
    rows: list[tuple[str | Markup, ...]] = [("AP", *precisions)]
    near, kinds = examples.drawn("neighbour")[:, number], examples.drawn("kind")[:, number]
    for rank in range(near.shape[1]):
        cells = []
        for layer, key, kind in zip(examples.layers, near[:, rank], kinds[:, rank], strict=True):
            good = str(kind) != "wrong"
            word = {"wrong": "another", "same": "same"}.get(str(kind), f"same, {kind}")
            picture = pictures.shown(examples, key, f"{word}: rank {rank + 1} at layer {layer}, {key}")
            cells.append(judged(word, good, picture) if key else "")
        rows.append((f"rank {rank + 1}", *cells))
    precision_text = examples.at_layers([f"AP {text}" for text in precisions])
    return Example(
        name=name.removeprefix("query/"),
        summary=f"{precision_text}; {int(examples.arrays['positives'][number])} images show the same",
        picture=pictures.shown(examples, name, f"query {name}"),
        table=f"{name}: first images of the ranking by layer",
        heads=drawing.layer_heads(examples),
        rows=tuple(rows),
    )


# queries, and the images ranked first
_RANKING_ANSWER = drawing.scored("AP {:.0f}", "average_precision")
_AVERAGE_PRECISION = drawing.quality("average_precision")
RETRIEVAL = Drawing(_RANKING_INTRO, _AVERAGE_PRECISION, "query", "query", _ranking_example, _RANKING_ANSWER)

_INSTANCES_INTRO = """\
{count} queries are kept, the same for every backbone. Each is shown with its nearest images; a solid border \
and ✓ mark the same instance, a dashed border and ✗ another. AP is the average precision of the whole \
ranking, in percent."""

INSTANCES = RETRIEVAL._replace(intro=_INSTANCES_INTRO)


# ---- numbers and labels -------------------------------------------------------------------------

_NUMBERS_INTRO = """\
{count} images are kept, the same for every backbone, with held-out predictions of each layer. Closeness, in \
percent: for numbers, the share of images whose values are no closer to the true ones than the prediction; \
for labels, the share of correctly ranked pairs of a label that the image has and one that it has not."""


def _closeness(examples: ExampleSet) -> Floats:
    return np.nan_to_num(examples.drawn("score").astype(np.float64))


def _numbers_example(examples: ExampleSet, number: int, pictures: SharedPictures) -> Example:
    image, truth = str(examples.arrays["image"][number]), str(examples.arrays["truth"][number])
    predicted = [str(text) for text in examples.drawn("predicted")[:, number]]
    closeness = [f"{value:.0f} %" for value in _closeness(examples)[:, number]]
    return Example(
        name=truth,
        summary=examples.at_layers(predicted),
        picture=pictures.shown(examples, image, f"{image}: {truth}"),
        note=image,
        table=f"{image}: predictions by layer",
        heads=drawing.layer_heads(examples),
        rows=(("predicted", *predicted), ("closeness", *closeness)),
    )


# images with predicted numbers or labels
_NUMBERS_ANSWER = drawing.scored("{}", "predicted")
PREDICTIONS = Drawing(_NUMBERS_INTRO, _closeness, "image", "image", _numbers_example, _NUMBERS_ANSWER)


# ---- clusters -----------------------------------------------------------------------------------


def clusters(every: ExampleSets, pictures: SharedPictures) -> tuple[str, list[Example]]:
    """Clusters of the same images at the first, the best and the last layer of the best backbone."""
    examples = every[0]
    rows = sorted({0, examples.best, len(examples.layers) - 1})
    classes = sorted({examples.called(folder) for folder in examples.arrays["class"]})
    intro = (
        f"{len(examples.arrays['image'])} images of {len(classes)} classes ({', '.join(classes)}), and their "
        "k-means clusters, found without labels; a dashed border and ✗ mark images that are not of the "
        "majority class of their cluster here."
    )
    return intro, [_layer(examples, pictures, row) for row in rows]


def _layer(examples: ExampleSet, pictures: SharedPictures, row: int) -> Example:
    numbers = examples.drawn("cluster")[row]
    groups = [np.flatnonzero(numbers == number).tolist() for number in np.unique(numbers[numbers >= 0])]
    groups.sort(key=lambda group: -len(group))
    folders = (Counter(map(examples.called, examples.arrays["class"][group])) for group in groups)
    count = sum(names.most_common(1)[0][1] for names in folders)
    large = [group for group in groups[:MOST] if len(group) >= LEAST]
    rest = len(groups) - len(large)
    smaller = "1 smaller cluster is" if rest == 1 else f"{rest} smaller clusters are"
    return Example(
        name=f"layer {examples.layers[row]}{' (best)' if row == examples.best else ''}",
        summary=f"{count} of {len(numbers)} are with their own class, in {len(groups)} clusters",
        badge="what clusters hold",
        note=f"{smaller} not shown." if rest else "",
        clusters=tuple(_cluster(examples, pictures, group) for group in large),
    )


def _cluster(examples: ExampleSet, pictures: SharedPictures, group: list[int]) -> tuple[str, list[Markup]]:
    """Images of one cluster, those of its majority class first."""
    names = {number: examples.called(examples.arrays["class"][number]) for number in group}
    most = min(Counter(names.values()).items(), key=lambda one: (-one[1], one[0]))[0]
    images = []
    for number in sorted(names, key=lambda number: (names[number] != most, names[number], number)):
        key, name = examples.arrays["image"][number], names[number]
        state = "as most of its cluster" if name == most else "unlike most of its cluster"
        images.append(judged(name, name == most, pictures.shown(examples, key, f"{name}, {state}, {key}")))
    return most, images
