"""The command `report`, as a user types it, on records that no run was needed for."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from layerboard import report
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import add_suite
from layerboard.zoo.errors import InputError
from tests.benchmark.runs import Cli
from tests.leaderboards.builder import frame, layers


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with two backbones."""
    folder = tmp_path_factory.mktemp("output")
    records = frame(layers([50.0, 60.0], backbone="mini-clip"), layers([40.0, 30.0], backbone="mini-dino"))
    write_checked(records, folder / "records" / "all.parquet")
    return folder


def test_the_page_is_written_with_the_facts_of_the_registry(cli: Cli, output: Path) -> None:
    said = cli("report", "--output", output)
    assert said.code == 0
    assert said.out.split() == [str(output / "report" / "mini.html")]
    text = (output / "report" / "mini.html").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if 'data-backbone="mini-clip"' in line)
    assert 'data-licence="Apache-2.0"' in row
    assert 'data-supervision="texts"' in row
    assert 'data-parameters="1367232"' in row


def test_figures_are_written_where_they_are_asked_for_and_one_backbone_stands_out(
    output: Path, tmp_path: Path
) -> None:
    paths = report(output=output, to=tmp_path / "to", figures="both", highlight="mini-dino").paths
    names = {path.relative_to(tmp_path).as_posix() for path in paths}
    assert {"to/mini.html", "to/mini/knn-layers.svg", "to/mini/knn-layers.pdf"} < names
    assert all(path.is_file() for path in paths)
    assert page_data(tmp_path / "to" / "mini.html")["highlight"] == "mini-dino"
    with pytest.raises(InputError, match="no backbone 'mini-din'"):
        report(output=output, highlight="mini-din")


def page_data(path: Path) -> dict[str, Any]:
    """What the page's script reads."""
    (text,) = re.findall(r'id="data">([^<]*)<', path.read_text(encoding="utf-8"))
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    return data


def test_several_suites_have_a_page_each(tmp_path: Path) -> None:
    records = frame(layers([50.0, 60.0], backbone="mini-fs"))
    write_checked(add_suite(records, "<other>"), tmp_path / "records" / "all.parquet")
    pages = report(output=tmp_path).paths
    assert {path.parent for path in pages} == {tmp_path / "report"}
    assert len(pages) == 2
    assert any("&lt;other&gt;" in path.read_text(encoding="utf-8") for path in pages)
    assert len(report(output=tmp_path, suite="mini").paths) == 1
