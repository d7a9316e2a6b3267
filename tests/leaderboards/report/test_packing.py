import base64
import gzip
import json

import numpy as np
import pandas as pd

from layerboard.leaderboards.report.packing import (
    json_script,
    packed,
    packed_file,
    packed_matrix,
    script_digest,
)
from layerboard.leaderboards.sections.similarity import BlockCka
from tests.leaderboards.report.boards import HOSTILE


def test_json_cannot_leave_its_element():
    text = json_script({HOSTILE: [HOSTILE, "<!--", "\u2028"]})
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == {HOSTILE: [HOSTILE, "<!--", "\u2028"]}


def test_a_frame_is_packed_by_columns():
    frame = pd.DataFrame({"a": ["x", "y", "x"], "b": [1.0, float("nan"), 2.123456], "c": [1, 2, 3]})
    assert packed(frame) == {
        "a": {"texts": ["x", "y"], "at": [0, 1, 0]},
        "b": [1, None, 2.1235],
        "c": [1, 2, 3],
    }


def test_a_matrix_keeps_four_decimals_and_its_holes():
    values = np.array([[1.0, -0.12345], [np.nan, 0.5]])
    found = packed_matrix(BlockCka("t", "a", "b", values))
    whole = np.frombuffer(base64.b64decode(found["data"]), "<i2").reshape(found["rows"], found["columns"])
    assert whole.tolist() == [[10000, -1234], [-32768, 5000]]


def test_a_file_comes_out_as_it_went_in_and_packs_to_the_same_bytes():
    text = "a,b\n≈,1\n" * 100
    assert gzip.decompress(base64.b64decode(packed_file(text))).decode() == text
    assert packed_file(text) == packed_file(text)


def test_a_digest_is_what_a_policy_takes():
    # RFC 6234's abc
    assert script_digest("abc") == "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"
