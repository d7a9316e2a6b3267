from collections.abc import Callable, Iterator
from functools import cache as once
from pathlib import Path

import pytest
import torch

from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec
from tests.zoo.reduced import Reduced, reduce

CPU = torch.device("cpu")
Loader = Callable[[BackboneSpec], Backbone]
Small = Callable[[str], Reduced]


@pytest.fixture(scope="package", autouse=True)
def _quiet_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No network, no cache of the user, and one thread, with which small networks are fastest."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path_factory.mktemp("own-cache")))
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache directory with the generated weights of the mini suite."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def loader(cache: Path) -> Loader:
    """Loads a backbone in float32 on the CPU."""
    return lambda spec: load_backbone(spec, device=CPU, cache_dir=cache)


@pytest.fixture(scope="session")
def kept(loader: Loader) -> Loader:
    """The same for what comes with the package, each loaded once; not to be changed."""
    return once(loader)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """Writes a reduced checkpoint of a named entry."""
    return lambda name: reduce(find([name])[0], tmp_path / name)
