"""LaTeX that compiles whatever the data contain: escaped, balanced, with booktabs and marks."""

import re

import pandas as pd
import pytest

import layerboard
from layerboard.leaderboards.blocks.blocks import Cell
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.writers.latex import escaped, latex_cell, latex_table
from tests.leaderboards.builder import frame, layers, pair
from tests.leaderboards.report.boards import cost


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("my_net & 50 % {x}", r"my\_net \& 50 \% \{x\}"),
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("a^2 ~ $1 #3", r"a\textasciicircum{}2 \textasciitilde{} \$1 \#3"),
        ("1.0 ± 0.5 †", r"1.0 $\pm$ 0.5 \dag{}"),
        ("-2.5 to 1.0; 3-5; vit-16; (-0.2)", r"$-$2.5 to 1.0; 3-5; vit-16; ($-$0.2)"),
        ("a <b> |c|\n d", r"a \textless{}b\textgreater{} \textbar{}c\textbar{} d"),
    ],
)
def test_nothing_in_the_data_is_a_command(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_cells_have_their_marks() -> None:
    assert latex_cell(Cell("61.2 ± 0.8", "best")) == r"\textbf{61.2 $\pm$ 0.8}"
    assert latex_cell(Cell("60.9", "maybe")) == r"60.9$^{\approx}$"
    assert latex_cell("mini_fs") == r"mini\_fs"


def test_a_table_is_whole() -> None:
    frame = pd.DataFrame({"backbone": ["a_b", "c"], "knn top-1 †": [Cell("1.0", "best"), Cell("")]})
    text = latex_table(frame, 1, ["One.", "Two."], "mini_{x}")
    assert text.splitlines()[1:] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{One. Two.}",
        r"\label{tab:mini-x-}",
        r"\begin{adjustbox}{max width=\linewidth}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"backbone & knn top-1 \dag{} \\",
        r"\midrule",
        r"a\_b & \textbf{1.0} \\",
        r"c &  \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{adjustbox}",
        r"\end{table}",
    ]
    plain = re.sub(r"\\[\\{}$&#%_]", "", text)
    assert plain.count("{") == plain.count("}")


def test_similarities_and_costs_have_tables_of_their_own(tmp_path) -> None:
    random = {"family": "random", "trained": False}
    every = [
        pair(*places, value, pooling=pooling, **(random if places[0] == "random" else {}))
        for pooling in ("cls", "mean", "patch")
        for *places, value in (
            ("mini-dino", 3, "mini-dino", 3, 1.0),
            ("mini-dino", 3, "mini-clip", 3, 0.5),
            ("mini-clip", 3, "mini-clip", 3, 1.0),
            ("random", 3, "random", 3, 1.0),
        )
    ]
    scores = [*layers([50.0, 60.0]), *layers([40.0, 30.0], backbone="mini-clip")]
    write_checked(frame(scores, every), tmp_path / "records" / "all.parquet", {})
    costs = [cost("mini-clip", -1, "latency", 7.0), cost("mini-clip", -1, "images-per-second", 9.0)]
    write_checked(frame(costs), tmp_path / "records" / "costs.parquet", {})
    texts = {path.name: path.read_text() for path in layerboard.export("latex", output=tmp_path).paths}
    assert [*texts] == [f"mini.{name}.tex" for name in ("cka-1", "cka-2", "cka-3", "cost-1")] + ["mini.tex"]
    assert r"mini-clip & 7.00 & 9 &" in texts["mini.cost-1.tex"]
    assert "class token, mini-imagenet (standard)." in texts["mini.cka-1.tex"]
    assert "floor" in texts["mini.cka-1.tex"]
    chosen = layerboard.export("latex", output=tmp_path, to=tmp_path, backbones=["mini-dino", "mini-c*"])
    assert "floor" not in (tmp_path / "mini.cka-1.tex").read_text()
    assert len(chosen.paths) == 5  # without items of both there is no comparison
