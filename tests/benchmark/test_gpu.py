"""The same records, trainings and matches from a GPU as from the CPU, and no waiting for it."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import layerboard
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
from tests import fakes
from tests.benchmark.runs import run, write_data
from tests.zoo.own.module.networks import SIZE, Vit

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def test_a_gpu_gives_the_scores_of_the_cpu(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    frames = []
    for device in ("cpu", "cuda"):
        frame = run(tmp_path / device, ["mini-dino", "mini-resnet"], data=data, device=device)
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


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_training_on_a_gpu_is_followed_and_goes_on_as_without(tmp_path: Path, device: str) -> None:
    fakes.write_fake_imagenet(tmp_path)
    options: dict[str, Any] = {
        "name": "run",
        "part": "encoder",
        "network": {"image_size": SIZE, "verbose": False},
    }
    options |= {"every": 2, "floor": False, "layers": "1-3", "device": device}
    options |= {"images": tmp_path / "imagenet", "output": tmp_path / "out", "cache": tmp_path / "cache"}
    follow = layerboard.Callback("knn", **options)
    alone, followed = _trained([]), _trained([follow])
    assert all(torch.equal(alone[name], tensor) for name, tensor in followed.items())
    scores = follow.scores
    assert {*scores["step"]} == {0, 2, 4}
    assert scores["value"].between(0, 100).all()


def _trained(callbacks: list[Any]) -> dict[str, Tensor]:
    """The weights after a training of four steps on the GPU, whose dropout draws there."""
    torch.manual_seed(0)
    encoder = Vit(0)
    width = encoder(torch.zeros(1, 3, SIZE, SIZE)).flatten(1).shape[1]
    net = nn.ModuleDict({"encoder": encoder, "drop": nn.Dropout(0.5), "head": nn.Linear(width, 4)}).to("cuda")
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    draw = torch.Generator().manual_seed(1)
    for step in range(5):
        if step:
            images = torch.randn(4, 3, SIZE, SIZE, generator=draw).to("cuda")
            features = net["drop"](net["encoder"](images).flatten(1))
            optimizer.zero_grad()
            nn.functional.cross_entropy(net["head"](features), torch.arange(4, device="cuda")).backward()
            optimizer.step()
        for follow in callbacks:
            if step % 2 == 0:
                follow(net, step)
    for follow in callbacks:
        follow.finish()
    return {name: tensor.cpu() for name, tensor in net.state_dict().items()}
