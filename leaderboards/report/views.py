"""The places of the report's charts and controls as HTML; the page's script fills them."""

from dataclasses import dataclass
from html import escape

from leaderboards.report.alike import Likeness
from leaderboards.report.board import ReportFrames
from leaderboards.report.cost import Costs


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page.

    Attributes:
        anchor: Its ``id``.
        short: What it is called in the list of sections.
        title: Its heading.
        html: What stands below.
    """

    anchor: str
    short: str
    title: str
    html: str


FILTERS = """\
<form id="filters" class="controls needs-script" aria-label="Filters">
<label>find <input type="search" name="find" placeholder="name" autocomplete="off"></label>
<label>family <select name="family"></select></label>
<label>size <select name="size"></select></label>
<label>learned from <select name="supervision"></select></label>
<label>licence <select name="licence"></select></label>
<button type="reset">clear</button>
<output id="count" aria-live="polite"></output>
</form>
"""
"""Filters of the table, which hold for all charts, too."""

DOWNLOAD = """\
<p class="tools needs-script"><a class="csv" data-view="best" href="#best">CSV of these rows</a>
<span class="files"></span></p>
"""

NOTES = {
    "ranking": "Each backbone's best layer, with its 95 % interval. The dark and the light blue ones "
    "together hold the true best with 95 %; among them there is no order. Dashed: random features. Diamonds: "
    "published numbers.",
    "curves": "The score after every block; the band is the 95 % interval, the ring the layer that scores "
    "best. Neighbours inside of the band may be as good. Dashed: random features. Diamonds: published "
    "numbers.",
    "depth_map": "One row a backbone, from its first block on the left to its last; the frame marks the best "
    "layer.",
    "tradeoff": "A point is a backbone cut after one layer. The line joins those that no other exceeds at "
    "the same cost or less: the Pareto front of what is shown. A lead within the intervals may be luck.",
    "task_map": "Each row is scaled to the backbone's best layer in that task, since scores of different "
    "tasks cannot be compared; the number is the score, the frame the best layer.",
    "alike": "CKA is 1 where two layers find the same images alike, 0 where they are unrelated. It says how "
    "similar features are, not how good.",
}
"""What each chart shows, below its title."""

GUESSED = (
    "No cost was measured here: weights up to a layer are taken as an equal share a block, and nothing is "
    "known of time. <code>python -m benchmark run --tasks cost</code> measures both."
)
MEASURED = (
    "Measured on the machine that ran the analysis <code>cost</code>: one image at a time, up to that layer."
)
PARTLY = "Backbones without a measured cost have no point over time."


def one_task_part(board: ReportFrames) -> Part:
    """The section of the charts of one task, with what chooses the task and the backbones."""
    tasks = "".join(
        f'<option value="{escape(str(name))}">{escape(str(name))}</option>'
        for name in board.columns["column"]
    )
    controls = (
        '<div class="controls sticky needs-script">\n'
        f'<label>task <select id="task">{tasks}</select></label>\n'
        '<details id="pick"><summary>backbones</summary>'
        '<div class="menu"><p><button type="button" data-pick="top">the best seven</button> '
        '<button type="button" data-pick="family">one a family</button> '
        '<button type="button" data-pick="none">none</button></p>'
        '<fieldset><legend class="hidden">Backbones in the charts</legend></fieldset></div></details>\n'
        "</div>\n"
    )
    views = "".join(
        _view(name, title)
        for name, title in (
            ("curves", "Layer by layer"),
            ("ranking", "Who may be the best"),
            ("depth_map", "All backbones over their depth"),
        )
    )
    return Part("task-section", "one task", "One task, layer by layer", f"{controls}{views}")


def cost_part(costs: Costs) -> list[Part]:
    """The section on quality and cost; none where nothing is known of costs."""
    if not costs.axes:
        return []
    axes = "".join(f'<option value="{name}">{escape(title)}</option>' for name, title in costs.axes)
    note = MEASURED if costs.measured else GUESSED
    note += f" {PARTLY}" if costs.measured and costs.layers["ms"].isna().any() else ""
    controls = (
        '<div class="controls needs-script"><label>task <select class="task-twin"></select></label>\n'
        f'<label>cost <select id="cost">{axes}</select></label></div>\n'
    )
    return [
        Part(
            "cost-section",
            "cost",
            "What quality costs",
            f"<p>{note}</p>\n{controls}{_view('tradeoff', 'Quality and cost')}",
        )
    ]


def one_backbone_part() -> Part:
    """The section of one backbone in all tasks."""
    controls = (
        '<div class="controls needs-script"><label>backbone <select id="backbone"></select></label></div>\n'
    )
    return Part(
        "backbone-section",
        "one backbone",
        "One backbone, every task",
        controls + _view("task_map", "Where in the network each task is solved"),
    )


def likeness_part(likeness: Likeness) -> Part:
    """The section on CKA."""
    several = "" if likeness.left_out == 0 else (
        f"<p>{likeness.left_out:,} more matrices are in the records; this page has no room for them.</p>\n"
    )  # fmt: skip
    controls = (
        '<div class="controls needs-script"><label>tokens <select id="cka-table"></select></label>\n'
        '<label>backbone <select id="cka-first"></select></label>\n'
        '<label>against <select id="cka-second"></select></label></div>\n'
    )
    return Part(
        "alike-section",
        "similarity",
        "How alike layers are (CKA)",
        several + controls + _view("alike", "Every layer against every other"),
    )


def _view(name: str, title: str) -> str:
    """The place of a chart with its title, its note and its numbers."""
    return (
        f'<figure class="view" id="view-{name}" data-view="{name}">\n'
        f'<figcaption><b>{escape(title)}</b><span class="what"></span><small>{escape(NOTES[name])}</small>'
        "</figcaption>\n"
        f'<div class="chart needs-script" role="img" aria-label="{escape(title)}"></div>\n'
        f'<div class="tools needs-script"><a class="csv" data-view="{name}" href="#view-{name}">CSV</a>'
        f'<button type="button" class="svg" data-view="{name}">SVG</button>'
        f'<details class="numbers"><summary>the numbers</summary><div class="scroll" tabindex="0" '
        f'role="region" aria-label="{escape(title)}: the numbers"></div></details></div>\n'
        '<noscript><p class="note">This chart needs JavaScript; its numbers stand in the tables at the end.'
        "</p></noscript>\n</figure>\n"
    )
