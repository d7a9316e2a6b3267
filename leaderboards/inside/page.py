"""The page of analyses of a suite: what its backbones do inside, without ranking."""

from layerboard.leaderboards.blocks.blocks import Block, Heading, Page, Plot, said
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.inside.analysis import analysis_blocks
from layerboard.leaderboards.inside.evidence import Evidence
from layerboard.leaderboards.inside.glance import glance_blocks
from layerboard.leaderboards.inside.probes import probe_blocks
from layerboard.leaderboards.sections.provenance import provenance_blocks

INSIDE_NOTE = """\
Analyses of each layer: attention maps, attention distance, overlap with objects, skip-connection norms,
receptive fields. They **describe and do not rank**: higher is not better, and none of them counts for the
leaderboard. ± is the 95 % margin of error, or both ends are given. Layers count from 1; an empty cell is a
missing number, not a zero, and the last section gives the reason."""


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
