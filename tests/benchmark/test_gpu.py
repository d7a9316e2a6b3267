"""The same records from a GPU as from the CPU."""

from pathlib import Path

import pytest
import torch

from tests.benchmark.runs import run, write_data

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def test_a_gpu_gives_the_scores_of_the_cpu(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    frames = []
    for device in ("cpu", "cuda"):
        frame = run(tmp_path / device, ["mini-dino", "mini-resnet"], data=data, device=device)
        assert not frame.attrs["failures"]
        frames.append(frame[frame["metric"].isin(["top-1", "mAP medium", "J&F", "PCK@0.1", "CKA"])])
    on_cpu, on_gpu = (frame["value"].to_numpy() for frame in frames)
    assert set(frames[1]["device"]) == {"cuda"}
    assert abs(on_cpu - on_gpu).max() < 1.0
