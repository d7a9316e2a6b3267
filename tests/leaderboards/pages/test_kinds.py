"""Scores by kind of keypoints, in the order of kinds, at the best layer."""

from layerboard.leaderboards.records.record import Record
from layerboard.leaderboards.sections.tables import KIND_NAMES, kind_of
from tests.leaderboards.builder import frame, layers
from tests.leaderboards.shown import render_page

SPAIR = {"task": "spair", "dataset": "mini-spair", "pooling": "grid", "metric": "PCK@0.1"}


def kind(name: str, values: list[float]) -> list[Record]:
    """Scores of a kind, layer by layer."""
    return layers(values, **{**SPAIR, "metric": f"PCK@0.1 {name}", "primary": False})


def test_azimuths_stand_between_levels_and_geometry_aware_points() -> None:
    assert KIND_NAMES[-7:] == (
        "occlusion both",
        *(f"azimuth {eighths}" for eighths in range(5)),
        "geometry-aware",
    )
    assert kind_of("spair", "PCK@0.1 azimuth 3") == "azimuth 3"
    assert kind_of("anomaly", "AU-PRO 0.05 bolt") == kind_of("anomaly", "AUROC bolt") == "bolt"
    assert kind_of("anomaly", "AU-PRO 0.05") == kind_of("mine:TASK", "AUROC bolt") == ""
    text = render_page(
        frame(
            layers([30.0, 45.0], **SPAIR),
            kind("geometry-aware", [1.0, 21.0]),
            kind("azimuth 4", [2.0, 22.0]),
            kind("azimuth 0", [3.0, 23.0]),
            kind("viewpoint easy", [4.0, 24.0]),
        ),
        "mini",
    )
    table = text[text.index("By kind") :]
    assert [table.index(each) for each in ("24.0", "23.0", "22.0", "21.0")] == sorted(
        table.index(each) for each in ("21.0", "22.0", "23.0", "24.0")
    )
    assert "how many eighths of a turn" in table


def test_azimuths_are_explained_only_where_there_are_some() -> None:
    text = render_page(frame(layers([30.0], **SPAIR), kind("viewpoint easy", [3.0])), "mini")
    assert "By kind" in text
    assert "eighths of a turn" not in text
