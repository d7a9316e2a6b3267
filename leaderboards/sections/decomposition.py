"""The page that takes the difference between two protocols apart."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pandas as pd

from leaderboards.display import fixed, page_name
from leaderboards.scores.decomposition import Change
from tasks.blocks import Block, Bullets, Heading, Numbers, Page, Table, said
from tasks.paths import Steps

READ = """
Each row changes one choice, and keeps the changes of the rows above: the first score is that of {first},
the last that of {second}. `change` is what that choice does there, with its 95 % interval, paired over pairs
of images or over videos. Choices depend on each other, so two more columns say what it does elsewhere:
`alone`, if nothing else is changed in {first}; `last`, if everything else is changed already. `gained` and
`lost` count keypoints or objects whose value rises and falls. `ceiling` is what the ground truth itself gets
on the grid of that layer. `pull` is the share of a soft arg-max that lies where nothing is similar, and draws
points to the middle.
"""

BEST = "Best layer of each step"
FIXED = "The layer that is best by {first}, kept"


@dataclass(frozen=True, slots=True)
class Side:
    """A protocol that a page begins or ends with.

    Attributes:
        name: Its name, and what its features are where they are not the usual ones.
        unlike: What of its source it does not do, in whole sentences.
    """

    name: str
    unlike: tuple[str, ...]


def decomposition_page(
    task: str,
    suite: str,
    sides: tuple[Side, Side],
    steps: Steps,
    found: Sequence[Change],
) -> Page:
    """The page of one task and two protocols.

    Args:
        task: Name of the task.
        suite: Suite of the backbones and data.
        sides: The first protocol and the second.
        steps: Their choices.
        found: What each changes.
    """
    first, second = sides
    name = page_name(f"{suite}.decompose-{task}-{first.name}-{second.name}")
    blocks: list[Block] = [said(READ.strip(), first=first.name, second=second.name)]
    for backbone in dict.fromkeys(one.backbone for one in found):
        own = [one for one in found if one.backbone == backbone]
        best, kept = ([one for one in own if one.chosen == chosen] for chosen in ("best", "fixed"))
        blocks += [
            Heading(2, backbone),
            Table(changes_table(best, steps), left=4, caption=BEST),
            Heading(3, FIXED.format(first=first.name)),
            Table(changes_table(kept, steps), left=4, caption=FIXED.format(first=first.name)),
        ]
    notes = tuple(f"{one.name}: {sentence}" for one in sides for sentence in one.unlike)
    blocks += [Heading(2, "What the protocols are not"), Bullets(notes)] if notes else []
    blocks.append(Numbers(_numbers(found, steps, task), name))
    return Page(name, f"{task}: from {first.name} to {second.name}", tuple(blocks))


def changes_table(found: Sequence[Change], steps: Steps) -> pd.DataFrame:
    """What each choice changes, as text; the first row is the first protocol."""
    head = found[0]
    rows = [_row("", "", "", str(head.layers[0]), f"{head.before:.1f}")]
    rows[0]["ceiling"] = fixed(head.ceiling_before, 1)
    for one in found:
        choice = steps.choices[one.step - 1]
        row = _row(choice.name, choice.old, choice.new, str(one.layers[1]), f"{one.after:.1f}")
        known = one.low == one.low  # not NaN
        row["change"] = f"{one.delta:+.1f}" + (f" [{one.low:+.1f}, {one.high:+.1f}]" if known else "")
        row |= {"alone": f"{one.alone:+.1f}", "last": f"{one.last:+.1f}"}
        row |= {"gained": str(one.gained), "lost": str(one.lost)}
        row |= {"ceiling": fixed(one.ceiling_after, 1), "pull": fixed(one.pull, 1)}
        rows.append(row)
    frame = pd.DataFrame(rows).fillna("")
    return frame.drop(columns=[name for name in ("ceiling", "pull") if not frame[name].any()])


def _row(choice: str, old: str, new: str, layer: str, score: str) -> dict[str, str]:
    empty = dict.fromkeys(("change", "alone", "last", "gained", "lost", "ceiling", "pull"), "")
    return {"choice": choice, "from": old, "to": new, "layer": layer, "score": score, **empty}


def _numbers(found: Sequence[Change], steps: Steps, task: str) -> pd.DataFrame:
    """All numbers in full precision, as text."""
    rows = []
    for one in found:
        facts = asdict(one)
        facts.pop("layers")
        before, after = map(str, one.layers)
        choice = steps.choices[one.step - 1]
        metric = steps.stops[steps.path[one.step]].metric
        words = {"choice": choice.name, "old": choice.old, "new": choice.new, "metric": metric}
        layers = {"layer_before": before, "layer_after": after, "delta": one.delta}
        rows.append({"task": task, **facts, **words, **layers})
    return pd.DataFrame(rows).map(lambda cell: repr(cell) if isinstance(cell, float) else str(cell))
