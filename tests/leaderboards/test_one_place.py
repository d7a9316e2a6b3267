"""A number appears from one place: one record is changed, and everything that shows its score follows."""

import base64
import gzip
import re

from layerboard import export, report, show
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.writers.build import write_board
from tests.leaderboards.builder import frame, layers, unsure


def written(folder, score, capsys):
    """What each way to look at the results says if one layer has that score."""
    scores = layers([20.0, score, 30.0], backbone="mini-fs"), layers([25.0, 35.0, 40.0], backbone="mini-dino")
    records = frame(*(unsure(each, half=1.5, chosen={2: 1.0}) for each in scores))
    write_checked(records, folder / "records" / "all.parquet")
    texts = {
        path.suffix: path.read_text() for path in write_board(Board.of(records, "mini"), folder / "tables")
    }
    (page,) = report(output=folder).paths
    texts["report"] = page.read_text()
    (data,) = re.findall(r'id="data">([^<]*)<', texts["report"])
    texts["charts"] = gzip.decompress(base64.b64decode(data)).decode()
    (figure,) = [path for path in report(output=folder, figures="svg").paths if path.name == "knn-best.svg"]
    texts["figure"] = figure.read_text()
    texts["latex"] = "".join(path.read_text() for path in export(output=folder, form="latex").paths)
    capsys.readouterr()
    show(output=folder)
    return texts | {"terminal": capsys.readouterr().out}


def test_a_changed_record_changes_page_report_csv_figure_latex_and_terminal(tmp_path, capsys):
    before, after = (written(tmp_path / str(score), score, capsys) for score in (61.5, 47.25))
    assert {*before} == {".csv", ".md", "report", "charts", "figure", "latex", "terminal"}
    for name, text in before.items():
        assert "61.5" in text, name
        assert "47.2" not in text, name
        assert "47.2" in after[name], name
        assert "61.5" not in after[name], name


def test_all_round_a_score_alike(tmp_path, capsys):
    # 61.25 lies between two decimals: Python's formats take the even one, JavaScript's the upper one
    for name, text in written(tmp_path, 61.25, capsys).items():
        assert ("61.25" if name == ".csv" else "61.2 ± 1.5") in text.replace(r" $\pm$ ", " ± "), name
        assert "61.3" not in text, name
