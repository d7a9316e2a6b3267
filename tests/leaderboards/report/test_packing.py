import base64
import gzip
import json

import pandas as pd

from layerboard.leaderboards.report.packing import json_script, packed, packed_json, script_digest
from tests.leaderboards.report.boards import HOSTILE


def test_json_cannot_leave_its_element():
    text = json_script({HOSTILE: [HOSTILE, "<!--", "\u2028"]})
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == {HOSTILE: [HOSTILE, "<!--", "\u2028"]}


def unpacked(text):
    return gzip.decompress(base64.b64decode(text)).decode()


def test_numbers_are_short_and_missing_ones_are_null():
    frame = pd.DataFrame({"a": ["x", HOSTILE], "b": [1.0, float("nan")], "c": [2.123456, 3.0]})
    text = unpacked(packed_json({"frame": frame, "lists": ([1.0, float("nan")], True, None)}))
    columns = {"a": ["x", HOSTILE], "b": [1, None], "c": [2.1235, 3]}
    assert json.loads(text) == {"frame": columns, "lists": [[1, None], True, None]}
    assert "1.0" not in text


def test_a_text_comes_out_as_it_went_in_and_packs_to_the_same_bytes():
    text = "a,b\n≈,1\n" * 100
    assert unpacked(packed(text)) == text
    assert packed(text) == packed(text)


def test_a_digest_is_what_a_policy_takes():
    # RFC 6234's abc
    assert script_digest("abc") == "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"
