import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.records.checksum import companions_of, read_checked, write_checked
from layerboard.leaderboards.records.record import read_frame, to_frame
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import frame, layers, record


@pytest.fixture
def path(tmp_path):
    write_checked(frame(layers([1.5, 2.5, 3.0])), tmp_path / "a.parquet", {"items": "0f"})
    return tmp_path / "a.parquet"


def test_no_flipped_bit_of_a_record_file_is_read(path):
    written = path.read_bytes()
    places = np.random.default_rng(0).integers(len(written) * 8, size=400)
    for place in places:
        content = bytearray(written)
        content[place // 8] ^= 1 << (place % 8)
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot read records .*a\.parquet: .*delete the file and run"):
            read_frame(path)


@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: text + b"\0", lambda text: b""])
def test_a_file_of_another_length_is_not_read(path, change):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match="cannot read records"):
        read_frame(path)


def test_a_file_names_what_belongs_to_it(path):
    content = read_checked(path)
    assert companions_of(content) == {"items": "0f"}


def test_a_mark_among_the_values_is_no_checksum(tmp_path):
    hostile = to_frame([record(reason="layerboard-seal:" + "0" * 32)])
    write_checked(hostile, tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(read_frame(tmp_path / "a.parquet"), hostile)


def test_records_that_lost_their_checksum_are_damaged(tmp_path):
    to_frame([record()]).to_parquet(tmp_path / "a.parquet", index=False)
    with pytest.raises(InputError, match="it has lost its checksum"):
        read_frame(tmp_path / "a.parquet")
