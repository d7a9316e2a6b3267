"""What is measured, topic by topic, in the order of the table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from perf.attention import attention_rows
from perf.board import board_rows
from perf.commands import command_rows, mini_rows
from perf.engines import engine_rows
from perf.keypoints import keypoint_rows
from perf.memory import memory_rows
from perf.neighbours import neighbour_rows
from perf.passes import gram_rows, pass_rows
from perf.regions import region_rows
from perf.report import report_rows
from perf.rounds import Setting
from perf.rows import Row
from perf.segments import segment_memory_rows, segment_rows
from perf.sets import set_memory_rows, set_rows
from perf.similarity import cka_rows, gram_matrix_rows
from perf.throughput import throughput_rows
from perf.videos import video_rows


@dataclass(frozen=True, slots=True)
class Topic:
    """Rows that are measured together.

    Attributes:
        name: By which it is asked for.
        rows: Measures them.
    """

    name: str
    rows: Callable[[Setting], Iterator[Row]]


TOPICS = (
    Topic("pass", pass_rows),
    Topic("pass-cka", gram_rows),
    Topic("throughput", throughput_rows),
    Topic("attention", attention_rows),
    Topic("memory", memory_rows),
    Topic("gram", gram_matrix_rows),
    Topic("cka", cka_rows),
    Topic("davis", video_rows),
    Topic("jf", region_rows),
    Topic("spair", keypoint_rows),
    Topic("segment", segment_rows),
    Topic("segment-memory", segment_memory_rows),
    Topic("knn", neighbour_rows),
    Topic("sets", set_rows),
    Topic("sets-memory", set_memory_rows),
    Topic("board", board_rows),
    Topic("engines", engine_rows),
    Topic("report", report_rows),
    Topic("commands", command_rows),
    Topic("mini", mini_rows),
)
