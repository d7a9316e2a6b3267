"""A number appears from one place: one record is changed, and everything that shows its score follows."""

import base64
import gzip
import re

from layerboard import export, report, show
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.report import figures
from layerboard.leaderboards.writers.build import write_board
from tests.leaderboards.builder import frame, layers, unsure

FIGURE = "knn-best"


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
    (figure,) = (path for path in report(output=folder, figures="svg").paths if path.stem == FIGURE)
    texts["figure"] = figure.read_text()
    texts["latex"] = "".join(path.read_text() for path in export(output=folder, form="latex").paths)
    capsys.readouterr()
    show(output=folder)
    return texts | {"terminal": capsys.readouterr().out}


def test_a_changed_record_changes_page_report_csv_figure_latex_and_terminal(tmp_path, capsys, monkeypatch):
    drawn = figures.figures_of  # one is looked at, and the others take as long each
    monkeypatch.setattr(figures, "figures_of", lambda asked: [(n, s) for n, s in drawn(asked) if n == FIGURE])
    before, after = (written(tmp_path / str(score), score, capsys) for score in (62.25, 47.25))
    assert {*before} == {".csv", ".md", "report", "charts", "figure", "latex", "terminal"}
    for name in before:
        # these lie between two decimals: Python's formats take the even one, JavaScript's the upper one
        for text, score, other in ((before[name], "62.2", "47.2"), (after[name], "47.2", "62.2")):
            shown = f"{score}5" if name == ".csv" else f"{score} ± 1.5"
            assert shown in text.replace(r" $\pm$ ", " ± "), name
            assert f"{score[:3]}3" not in text, name
            assert other not in text, name
