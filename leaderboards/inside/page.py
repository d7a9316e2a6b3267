"""The page of analyses of a suite: what its backbones do inside, without ranking."""

from layerboard.leaderboards.blocks.blocks import Block, Heading, Page, Plot, said, section, slug
from layerboard.leaderboards.blocks.display import pooling_name, pooling_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import is_floor
from layerboard.leaderboards.inside.analysis import analysis_blocks
from layerboard.leaderboards.inside.evidence import Evidence, backbone_points, matching
from layerboard.leaderboards.inside.glance import glance_blocks
from layerboard.leaderboards.sections.provenance import provenance_blocks

INSIDE_NOTE = """\
Analyses of each layer: attention maps, attention distance, overlap with objects, skip-connection norms,
receptive fields. They **describe and do not rank**: higher is not better, and none of them counts for the
leaderboard. ± is the 95 % margin of error, or both ends are given. Layers count from 1; an empty cell is a
missing number, not a zero, and the last section gives the reason."""

PROBES = ("fewshot", "linear")  # tasks whose scores are drawn

PROBED = """\
Accuracy of probes in each block by their input: the class token, the mean of the patch tokens, the mean of
both, or one patch token (after Raghu et al., NeurIPS 2021, figure 11). The scores are those of the
leaderboard, which has their table. One patch token is tested on other images than the rest, so compare the
shapes of the lines, not their heights."""


def inside_page(board: Board) -> Page:
    """The page of analyses of one suite, which must have some; ranking tasks are only drawn."""
    title, analyses = f"Inside the backbones: {board.suite}", board.analyses
    evidence = [Evidence(analysis, analyses.backbones, analyses.arrays) for analysis in analyses.groups]
    further = [*probe_blocks(board), *provenance_blocks(analyses)]
    titles = [block.text for block in further if isinstance(block, Heading) and block.level == 2]
    blocks: list[Block] = [said(INSIDE_NOTE), *glance_blocks(evidence, titles)]
    blocks += [block for each in evidence for block in analysis_blocks(each)]
    nothing = "{title}: 0 in every block of every backbone."
    shown = (
        said(nothing, title=block.title)
        if isinstance(block, Plot) and [*block.frame["y"].dropna().unique()] == [0]
        else block
        for block in (*blocks, *further)
    )
    return Page(analyses.page, title, tuple(shown))


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
            tokens = tokens[tokens["backbone"].isin(scores["backbone"]) & (tokens["layer"] >= 0)]
            tokens = tokens[tokens["head"] == -1]
            where = {"metric": "fewshot-10", "pooling": "token", "dataset": dataset, "protocol": protocol}
            tokens = matching(tokens, where)
            series |= {"one patch token": tokens} if len(tokens) else {}
        title = f"Accuracy by what is read: {task} on {dataset} ({protocol})"
        points, name = backbone_points(board.backbones, series), slug(f"{task}.{dataset}.{protocol}.poolings")
        blocks.append(Plot(points, "lines", title, "block", f"{metric}, %", name=name))
    return section(Heading(2, "Accuracy of probes over depth"), said(PROBED), *blocks)
