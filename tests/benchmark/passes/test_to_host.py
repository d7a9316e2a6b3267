"""How tensors leave their device."""

import torch

from layerboard.benchmark.passes.collectors import to_host


def test_arrays_of_the_host_are_contiguous_and_in_order() -> None:
    table = torch.arange(6.0).reshape(2, 3)
    found = to_host({"t": table.T, "whole": table, "flag": torch.tensor(True)})
    assert [*found] == ["t", "whole", "flag"]
    assert found["t"].is_contiguous()
    assert found["t"].tolist() == table.T.tolist()
    assert found["whole"] is table


class Elsewhere(torch.Tensor):
    """A tensor that counts how often it is copied to the host; it says that it is on a device."""

    copies = 0

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("cuda:0")

    def cpu(self) -> torch.Tensor:  # type: ignore[override]
        Elsewhere.copies += 1
        return self.as_subclass(torch.Tensor)


def test_arrays_of_a_device_are_copied_once_for_each_dtype() -> None:
    numbers = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.tensor(7.0),
        "none": torch.zeros(0, 4),
        "c": torch.tensor([1, 2]),
        "d": torch.ones(3, 2).T,
    }
    found = to_host({name: array.as_subclass(Elsewhere) for name, array in numbers.items()})
    assert Elsewhere.copies == 2
    for name, array in numbers.items():
        assert type(found[name]) is torch.Tensor
        assert found[name].shape == array.shape
        assert found[name].dtype == array.dtype
        assert found[name].tolist() == array.tolist()
