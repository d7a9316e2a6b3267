"""Examples of predicted numbers and labels of images."""

import numpy as np

from layerboard.leaderboards.report.gallery import drawing
from layerboard.leaderboards.report.gallery.drawing import Drawing, Example, Floats, SharedPictures
from layerboard.leaderboards.report.gallery.examples import ExampleSet

_INTRO = """\
{count} images are kept, the same for every backbone, with held-out predictions of each layer. Closeness, in \
percent: for numbers, the share of images whose values are no closer to the true ones than the prediction; \
for labels, the share of correctly ranked pairs of a label that the image has and one that it has not."""


def _closeness(examples: ExampleSet) -> Floats:
    return np.nan_to_num(examples.drawn("score").astype(np.float64))


def _example(examples: ExampleSet, number: int, pictures: SharedPictures) -> Example:
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
_ANSWER = drawing.scored("{}", "predicted")
PREDICTIONS = Drawing(_INTRO, _closeness, "image", "image", _example, _ANSWER)
