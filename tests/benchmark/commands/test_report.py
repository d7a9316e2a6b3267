"""The command `report`, as a user types it, on records that no run was needed for."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from layerboard import report
from layerboard.benchmark.plan.facts import known_facts
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import add_suite
from layerboard.leaderboards.report.site import LINK
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import all_specs
from tests.benchmark.runs import command
from tests.leaderboards.builder import frame, layers
from tests.leaderboards.report.boards import small

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with a small suite."""
    folder = tmp_path_factory.mktemp("output")
    write_checked(small(), folder / "records" / "all.parquet")
    return folder


def test_help_has_an_example(capsys: Capture) -> None:
    said = command(capsys, "report", "--help")
    assert said.code == 0
    assert "layerboard report" in said.out.split("Example:")[1]


def test_the_page_is_written_with_the_facts_of_the_registry(capsys: Capture, output: Path) -> None:
    said = command(capsys, "report", "--output", output)
    assert said.code == 0
    assert said.out.split() == [str(output / "report" / "mini.html")]
    text = (output / "report" / "mini.html").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if 'data-backbone="mini-clip"' in line)
    assert 'data-licence="Apache-2.0"' in row
    assert 'data-supervision="texts"' in row
    assert 'data-parameters="1367232"' in row


def test_the_page_says_what_trainings_have_seen(tmp_path: Path) -> None:
    records = frame(layers([50.0, 60.0], backbone="dino-b16", dataset="imagenet", suite="standard"))
    write_checked(records, tmp_path / "records" / "all.parquet")
    (page,) = report(output=tmp_path).paths
    text = page.read_text(encoding="utf-8")
    seen = text[text.index("<summary>What the trainings have seen</summary>") :]
    assert re.search(r"dino-b16</th><td>images</td>", seen)


def test_figures_and_a_site_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    records = frame(layers([50.0, 60.0], backbone="mini-fs"), layers([40.0, 30.0], backbone="mini-dino"))
    write_checked(records, tmp_path / "records" / "all.parquet")
    site = tmp_path / "site"
    paths = report(output=tmp_path, to=tmp_path / "to", figures="both", site=site).paths
    names = {path.relative_to(tmp_path).as_posix() for path in paths}
    assert {"to/mini.html", "to/mini/knn-layers.svg", "to/mini/knn-layers.pdf"} < names
    assert {"site/index.html", "site/README.md", "site/mini.csv"} < names
    assert {"site/literature.html", "site/literature.csv"} < names
    assert all(path.is_file() for path in paths)
    page = (tmp_path / "to" / "mini.html").read_text(encoding="utf-8")
    assert page.count("</footer>") == 1
    assert (site / "index.html").read_text(encoding="utf-8") == page.replace("</footer>", LINK)
    card = yaml.safe_load((site / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert (card["sdk"], card["app_file"]) == ("static", "index.html")
    assert (site / "mini.csv").read_text(encoding="utf-8").count("\n") == 5


def test_a_backbone_to_highlight_stands_out_and_must_be_there(tmp_path: Path) -> None:
    records = frame(layers([50.0, 60.0], backbone="mini-fs"), layers([40.0, 30.0], backbone="mini-dino"))
    write_checked(records, tmp_path / "records" / "all.parquet")
    (page,) = report(output=tmp_path, highlight="mini-dino").paths
    assert page_data(page)["highlight"] == "mini-dino"
    with pytest.raises(InputError, match="no backbone 'mini-din'"):
        report(output=tmp_path, highlight="mini-din")


def page_data(path: Path) -> dict[str, Any]:
    """What the page's script reads."""
    (text,) = re.findall(r'id="data">([^<]*)<', path.read_text(encoding="utf-8"))
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    return data


def test_several_suites_have_a_page_each_and_the_site_a_list_of_them(tmp_path: Path) -> None:
    records = frame(layers([50.0, 60.0], backbone="mini-fs"))
    write_checked(add_suite(records, "<other>"), tmp_path / "records" / "all.parquet")
    paths = report(output=tmp_path, site=tmp_path / "site").paths
    pages = sorted(path.name for path in paths if path.parent == tmp_path / "report")
    assert len(pages) == 2
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert sorted(re.findall(r'href="([^"]+)"', index)) == sorted([*pages, "literature.html"])
    assert LINK in (tmp_path / "site" / pages[0]).read_text(encoding="utf-8")
    assert "&lt;other&gt;" in index
    assert len(report(output=tmp_path, suite="mini").paths) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--suite", "maxi"), "mini"),
        (("--figures", "gif"), "--figures takes svg, pdf or both"),
        (("--site", "file"), "--site takes a folder; found the file file"),
        (("--published", "file"), "cannot read the published numbers in file"),
    ],
)
def test_wrong_input_is_one_sentence(
    capsys: Capture, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...],
    sentence: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"\xff\xfe")
    assert sentence in command(capsys, "report", "--output", output, *words).error


def test_facts_are_those_of_the_entries() -> None:
    spec = next(spec for spec in all_specs() if spec.name == "mini-clip")
    facts = known_facts()[spec.name]
    assert (facts.licence, facts.parameters, facts.supervision) == ("Apache-2.0", 1367232, "texts")
    assert facts.widths == (spec.width,) * spec.depth
    assert all(len(known_facts()[spec.name].widths) == spec.depth for spec in all_specs())
