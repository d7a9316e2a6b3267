"""The same records from a GPU as from the CPU, and no waiting for it."""

import warnings
from pathlib import Path

import pytest
import torch

from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # of torch, in torch, while it compiles
@pytest.mark.parametrize("compiled", [False, True])
def test_no_forward_waits_for_the_card(tmp_path: Path, *, compiled: bool) -> None:
    backbone = load_backbone(find(["mini-dino"])[0], device=torch.device("cuda"), cache_dir=tmp_path)
    images = torch.zeros((4, 3, 64, 64), dtype=torch.uint8).pin_memory()
    seen: list[Layer] = []
    if compiled:
        backbone.compile()
    backbone.visit(images, lambda shown: seen.append(shown.layer))  # what is prepared once may wait
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this mode may overlook some waits
        torch.cuda.set_sync_debug_mode("error")
    try:
        backbone.visit(images, lambda shown: seen.append(shown.layer))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(seen) == 2 * len(backbone.spec.layers)
