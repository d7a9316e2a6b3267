"""What is drawn of the shares of attention: to special tokens, to itself, and how spread it is."""

from leaderboards.pages.inside.depth import depth_facets
from leaderboards.pages.inside.evidence import Evidence
from tasks.blocks import Block

ASKING = {"patch": "patch tokens", "cls": "the class token"}


def draw_shares(evidence: Evidence) -> list[Block]:
    """A figure for each kind of token that asks, a panel a metric."""
    blocks: list[Block] = []
    for pooling, asking in ASKING.items():
        panels = {metric: evidence.select(metric, pooling=pooling) for metric in evidence.one.metrics}
        panels = {metric: rows for metric, rows in panels.items() if len(rows)}
        if panels:
            title = f"What {asking} attend{'s' if pooling == 'cls' else ''} to"
            blocks.append(depth_facets(evidence, panels, title, "share, or entropy", pooling))
    return blocks
