"""What is drawn of probes, which are scores of the leaderboard: the same over depth by what is read.

Source: Raghu et al., NeurIPS 2021, figures 11 and 13.
"""

import pandas as pd

from leaderboards.choices.selection import is_floor
from leaderboards.display import pooling_name, pooling_rank
from leaderboards.pages.inside.depth import PANELS
from leaderboards.pages.inside.evidence import by_layer, choose, shown, slug
from leaderboards.pages.notation import said
from tasks.blocks import Block, Heading, Plot

PROBES = ("fewshot", "linear")
"""Tasks whose scores are drawn."""

READ = """\
How well a probe reads the class in each block, by what it reads: the class token, the mean of the patch
tokens, the mean of both, or one patch token (after Raghu et al., NeurIPS 2021, figure 11). These are scores
of the leaderboard, which has their table; one patch token is tested on other images than the rest, so compare
how the lines go, not how high they are."""

TOKEN = ("token-probes", "fewshot-10", "token")
"""Task, metric and pooling of the analysis whose line stands beside the few-shot probes'."""


def probe_blocks(ranked: pd.DataFrame, analyses: pd.DataFrame) -> list[Block]:
    """A section on the probes of a suite; nothing where it has none.

    Args:
        ranked: Records of tasks that rank.
        analyses: Records of analyses.
    """
    blocks: list[Block] = []
    rows = ranked[ranked["task"].isin(PROBES) & (ranked["tap"] == "block") & ~is_floor(ranked)]
    # the primary metric in every pooling, not only in that of tables
    rows = rows[rows["metric"].isin(rows.loc[rows["primary"].astype(bool), "metric"]) & rows["value"].notna()]
    for key in sorted(set(zip(*(rows[name] for name in ("task", "dataset", "protocol")), strict=True))):
        own = rows[(rows["task"] == key[0]) & (rows["dataset"] == key[1]) & (rows["protocol"] == key[2])]
        blocks.append(_figure(own, analyses, key))
    return [Heading(2, "Accuracy of probes over depth"), said(READ), *blocks] if blocks else []


def _figure(rows: pd.DataFrame, analyses: pd.DataFrame, key: tuple[str, str, str]) -> Plot:
    """A panel a backbone and a line a pooling, of one task on one dataset."""
    task, dataset, protocol = key
    tokens = analyses[(analyses["task"] == TOKEN[0]) & analyses["value"].notna()]
    tokens = choose(tokens, TOKEN[1], pooling=TOKEN[2], dataset=dataset, protocol=protocol)
    metrics = sorted(set(rows["metric"]))
    series = {
        pooling_name(pooling): rows[(rows["pooling"] == pooling) & (rows["metric"] == metrics[0])]
        for pooling in sorted(set(rows["pooling"]), key=pooling_rank)
    }
    if task == PROBES[0] and len(tokens):
        series["one patch token"] = tokens
    points = [
        (one.label, name, layer, value)
        for one in shown(rows)
        for name, own in series.items()
        for layer, value in by_layer(own[(own["backbone"] == one.name) & (own["layer"] >= 0)])
    ]
    frame = pd.DataFrame(points, columns=PANELS)
    name = slug(f"{task}.{dataset}.{protocol}.poolings")
    title = f"Accuracy by what is read: {task} on {dataset} ({protocol})"
    return Plot(frame, "lines", title, "block", f"{metrics[0]}, %", name=name)
