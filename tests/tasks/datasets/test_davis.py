from pathlib import Path

from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.datasets.reading.masks import read_mask
from tests.fakes import write_fake_davis
from tests.tasks.datasets.helpers import keys

MINI = DavisEntry(sequences=2, frames=8, objects=4)


def test_layout(tmp_path: Path) -> None:
    write_fake_davis(tmp_path)
    dataset = MINI.read(tmp_path)
    video = dataset.videos[0]
    assert (video.name, video.size) == ("sequence-0", (48, 32))
    assert keys(video.frames) == [f"sequence-0/{index:05d}" for index in range(4)]
    assert [path.name for path in video.masks] == [f"{index:05d}.png" for index in range(4)]
    assert {1, 2} <= {*read_mask(video.masks[0]).ravel().tolist()} <= {0, 1, 2, 255}


def test_a_sequence_without_a_frame_that_counts_is_named(tmp_path: Path) -> None:
    folder = write_fake_davis(tmp_path)
    for kind, ending in (("JPEGImages", "jpg"), ("Annotations", "png")):
        for frame in ("00002", "00003"):
            (folder / kind / "480p" / "sequence-1" / f"{frame}.{ending}").unlink()
    said = str(MINI.read(tmp_path).coverage)
    assert said.endswith("4 of 4 objects; 1 sequence of fewer than 3 frames not scored (sequence-1)")
