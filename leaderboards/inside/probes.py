"""The section on probes, whose scores are on the leaderboard: accuracy over depth by input."""

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, said, slug
from layerboard.leaderboards.blocks.display import pooling_name, pooling_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import is_floor
from layerboard.leaderboards.inside.evidence import backbone_points, rows_of_metric

PROBES = ("fewshot", "linear")  # tasks whose scores are drawn

PROBED = """\
Accuracy of probes in each block by their input: the class token, the mean of the patch tokens, the mean of
both, or one patch token (after Raghu et al., NeurIPS 2021, figure 11). The scores are those of the
leaderboard, which has their table. One patch token is tested on other images than the rest, so compare the
shapes of the lines, not their heights."""


def probe_blocks(board: Board) -> list[Block]:
    """The section on probes, whose scores are on the leaderboard: accuracy over depth by input.

    Source: Raghu et al., NeurIPS 2021, figures 11 and 13.
    """
    blocks: list[Block] = []
    rows = board.measured[board.measured["task"].isin(PROBES) & (board.measured["tap"] == "block")]
    # the primary metric in every pooling, not only in that of tables
    rows = rows[rows["metric"].isin(rows.loc[rows["primary"].astype(bool), "metric"])]
    rows = rows[rows["value"].notna() & ~is_floor(rows)]
    for key, scores in rows.groupby(["task", "dataset", "protocol"], sort=True):
        task, dataset, protocol = map(str, key)
        metric = min(scores["metric"])
        series = {
            pooling_name(pooling): scores[(scores["pooling"] == pooling) & (scores["metric"] == metric)]
            for pooling in sorted(set(scores["pooling"]), key=pooling_rank)
        }
        if task == PROBES[0]:
            tokens = board.analyses.records.query("task == 'token-probes'").dropna(subset="value")
            tokens = tokens[tokens["backbone"].isin(scores["backbone"])]
            tokens = rows_of_metric(tokens, "fewshot-10", pooling="token", dataset=dataset, protocol=protocol)
            series |= {"one patch token": tokens} if len(tokens) else {}
        title = f"Accuracy by what is read: {task} on {dataset} ({protocol})"
        points, name = backbone_points(board.backbones, series), slug(f"{task}.{dataset}.{protocol}.poolings")
        blocks.append(Plot(points, "lines", title, "block", f"{metric}, %", name=name))
    return [Heading(2, "Accuracy of probes over depth"), said(PROBED), *blocks] if blocks else []
