"""What a page says to a newcomer around its tables, in the notation of `leaderboards.pages.notation`."""

from textwrap import fill

from leaderboards.pages.notation import said
from tasks.blocks import Text

WIDTH = 105

ROWS_AND_COLUMNS = """\
Each row is a backbone: a pretrained vision network that is used as it is, without any further training.
Each column is a task that is solved with nothing but its features. The features of **every layer** were
scored; a cell shows the best layer's score and which layer that is: {cell}, reached by the features after
block 9 of 12. {sure}Higher is better, 100 is perfect, and the best backbone of each column is in **bold**.
{tied}An empty cell is a missing score, not a zero; the last section says why it is missing."""

CERTAIN_CELL = "`61.2 (9/12)` is 61.2 %"
UNCERTAIN_CELL = "`61.2 ± 0.8 (9/12)` is 61.2 %"

INTERVAL = """\
Other test images of the same kind would give a somewhat different score: ± is half the width of its 95 %
interval. """

COLUMN_TIES = """\
`≈` marks backbones that may be the best of their column, too: together with the bold one, these hold the
true best with 95 %. """

NO_ITEMS = """\
Which backbones are tied is not marked: the measurements of single images, by which two backbones are
compared, were not there when this page was written."""

UNTESTED = """\
Not compared with the best of the column, for want of measurements of the same images: {names}."""

NOTHING_COMPARED = """\
Which backbones are tied is not marked: measurements of the same images, by which two backbones are compared,
were not there, or too few, when this page was written."""

APART = """\
**Not over the same images.** Only scores over the same images and the same ground truth are ranked together.
Those that were taken over others, such as a smaller part of the data, stand apart in columns of their own,
named by a digest of what was looked at:"""

NOT_SAID = "records of an earlier version, which do not say what they are over; the same run again adds that"

BETTER = "↑ marks scores that another kind of feature of the same backbone exceeds, at its own best layer:"

MEANS = """\
Means over datasets are plain means of a backbone's scores in the columns to their left, each at that
dataset's own best layer, so no single layer reaches them. They are over the datasets on which every backbone
with a score in the task has one; ± follows from those of the columns, whose images are independent. Means
are not compared, and none is marked. What they are over:"""

PARTIAL = "† PARTIAL data: not comparable with scores on the complete dataset."

FEATURES = "What a layer's features are: {uses}."

AVERAGED = "Without a class token, the {average} of the feature map stands in: {names}."

HONEST = """\
**The same with an honest choice of the layer.** The layer above is the best on the very data that its score
is taken on, so luck helps it. Here it is chosen on one random half of the data and scored on the other half:
the mean over 100 such splits and, in brackets, what that took off the score above."""

OPTIMISM = """\
The best layer is chosen on the same data that its score is reported on, so the scores are a little
optimistic, most of all where the data are few."""

UNTRAINED_NOTE = """\
An untrained backbone has the usual blocks but random weights: what the architecture gives without any
learning."""

FLOOR_NOTE = """\
The random floor is what features of pure noise reach: the mean ± standard deviation over independent
draws{unlike}. A score near it says that the features hold nothing the task can use."""

UNLIKE_INTERVALS = " (here ± is not half an interval)"

LAYERS_NOTE = """\
Layer k is the output of block k, before any final norm. The bold score of each row is the one in the table
above. {tied}{choices}`final` is the last block's output after the network's final norm; it is shown for
comparison and takes no part in the choice of the best layer. Cells beyond a backbone's last block, and
`final` where it has no such norm, are empty by nature."""

LAYER_TIES = """\
`≈` marks blocks that may be the best of their row, too: together with the bold one, these hold the true
best with 95 %. """

CHOICES_NOTE = """\
A short table follows the first: the honest score, how much lower it is (optimism), and on what share of
the random halves each block was chosen (from {least} on). """

CHOICES = "Which block is chosen on random halves of the data:"

CKA_NOTE = """\
CKA compares two layers, of one backbone or of two, by asking whether they find the same images alike: 1 is
the same up to rotation and scale, 0 is unrelated. It says how similar features are, not how good."""

INSIDE_NOTE = """\
These numbers describe what happens inside the backbones, layer by layer: where they look, what they pass on.
They **describe and do not rank**: a higher number is not better than a lower one, and none of them counts for
the leaderboard. ± is half the width of a 95 % interval: other images of the same kind would give a
somewhat different number. Layers count from 1; an empty cell is a missing number, not a zero, and the last
section says why it is missing."""

ASKED = "The question: {asks}"

MEASURED = "The number: {measures}."

RANGES = "The other metrics, each from its lowest layer to its highest, layers in brackets:"

HEADS = "The numbers of single attention heads are in the table of all numbers and in figures."

COMPARED = "Numbers of two backbones, each as a whole:"

WHOLE = "Numbers of each backbone as a whole:"

COSTS_NOTE = """\
Times are **medians on the machine that is named**, measured while nothing else of the run computed: they tell
backbones and depths apart there, and differ elsewhere. One forward is timed at every layer, so what stands at
a layer is what a backbone costs that is cut after it. Images lie on the device already; decoding and resizing
are not in the times. GFLOPs count additions and multiplications apart. Peak memory is of a forward at the
best batch, weights included: what a graphics card's allocator tells; on a CPU, the tensors alive at once."""

COSTS_UP_TO = "{title}, up to each layer:"

ELSEWHERE = "What the backbones do inside, which ranks none of them, is on a page of its own: `{name}`."


def reading(*, intervals: bool, ties: bool) -> Text:
    """How to read the leaderboard.

    Args:
        intervals: Whether scores have them.
        ties: Whether backbones were compared with the best of their column.
    """
    text = ROWS_AND_COLUMNS.format(
        cell=UNCERTAIN_CELL if intervals else CERTAIN_CELL,
        sure=INTERVAL if intervals else "",
        tied=COLUMN_TIES if ties else "",
    )
    return _wrapped(text)


def floor_note(*, intervals: bool) -> Text:
    """What the random floor is, told apart from intervals where there are some."""
    return _wrapped(FLOOR_NOTE.format(unlike=UNLIKE_INTERVALS if intervals else ""))


def layers_note(*, intervals: bool, least: str) -> Text:
    """How to read the tables of every layer.

    Args:
        intervals: Whether scores have them, and layers were compared.
        least: From which share on blocks are listed that were chosen; "" where none was chosen.
    """
    choices = CHOICES_NOTE.format(least=least) if least else ""
    return _wrapped(LAYERS_NOTE.format(tied=LAYER_TIES if intervals else "", choices=choices))


def _wrapped(notation: str) -> Text:
    """A paragraph in lines of at most `WIDTH`."""
    return said(fill(notation, WIDTH, break_long_words=False, break_on_hyphens=False))
