"""Training images with labels and captions, and the seeded draws that everything in a training comes from."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.zoo.errors import InputError

_KEPT = 8 * 1024**3  # bytes of images that may stay on a GPU


@dataclass(frozen=True, slots=True)
class Examples:
    """A batch."""

    images: Tensor  # uint8 [batch 3 height width]
    labels: Tensor  # int64 [batch]
    captions: tuple[str, ...]  # one for each image


@dataclass(frozen=True, slots=True)
class Pictures:
    """Images to train on; the arrays may be memory-mapped."""

    images: NDArray[np.uint8]  # [images 3 height width]
    labels: NDArray[np.int64]  # [images], from 0
    captions: tuple[str, ...]  # one for each image

    def __post_init__(self) -> None:
        """Raise InputError where the parts do not fit together."""
        if self.images.ndim != 4 or self.images.shape[1] != 3 or self.images.dtype != np.uint8:
            raise InputError(
                "training images must be uint8 [images 3 height width]; found "
                f"{self.images.dtype} {list(self.images.shape)}"
            )
        if not len(self.images) == len(self.labels) == len(self.captions) > 0:
            raise InputError(
                f"every training image needs a label and a caption; found {len(self.images)} images, "
                f"{len(self.labels)} labels and {len(self.captions)} captions"
            )
        if int(self.labels.min()) < 0:
            raise InputError(f"labels count from 0; found {int(self.labels.min())}")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def classes(self) -> int:
        """Number of classes: the largest label and one."""
        return int(self.labels.max()) + 1

    def take(self, indices: NDArray[np.int64]) -> Examples:
        """A batch of those images, copied."""
        return Examples(
            torch.from_numpy(np.asarray(self.images[indices])),
            torch.from_numpy(np.asarray(self.labels[indices])),
            tuple(self.captions[index] for index in indices),
        )

    def part(self, share: float, seed: int) -> "Pictures":
        """A seeded share (above 0, else InputError) of the images of every class, at least one of each."""
        require_share(share)
        if share == 1:
            return self
        order = torch.randperm(len(self), generator=seeded("part", seed)).numpy()
        classes = [order[self.labels[order] == label] for label in np.unique(self.labels)]
        chosen = [members[: max(1, round(share * len(members)))] for members in classes]
        part = self.take(np.sort(np.concatenate(chosen)))
        return Pictures(part.images.numpy(), part.labels.numpy(), part.captions)


class TrainingBatches:
    """Gives the batches of a training on its device; on a GPU the images are kept there if they are few."""

    def __init__(self, data: Pictures, device: torch.device) -> None:
        self._data, self._device = data, device
        kept = device.type == "cuda" and data.images.nbytes <= _KEPT
        self._images = torch.from_numpy(np.array(data.images)).to(device) if kept else None

    def of(self, indices: NDArray[np.int64]) -> Examples:
        """The batch of those images on the device."""
        labels = torch.from_numpy(np.asarray(self._data.labels[indices])).to(self._device)
        captions = tuple(self._data.captions[index] for index in indices)
        if self._images is None:
            images = torch.from_numpy(np.asarray(self._data.images[indices])).to(self._device)
        else:
            images = self._images[torch.from_numpy(indices).to(self._device)]
        return Examples(images, labels, captions)


def seeded(*words: object, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator whose state follows from those words alone."""
    digest = hashlib.blake2b(repr(words).encode(), digest_size=7).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest, "big"))


def require_share(share: float) -> None:
    """Raise InputError where a share is not above 0 and at most 1."""
    if not 0 < share <= 1:
        raise InputError(f"the fraction of the images must be above 0 and at most 1; found {share:g}")


def require_batch(batch_size: int, count: int) -> None:
    """Raise InputError if there are too few images for a batch."""
    if not 0 < batch_size <= count:
        raise InputError(
            f"a batch of {batch_size} cannot be drawn from {count} training images; "
            "choose a batch size from 1 to their number"
        )


def step_indices(step: int, count: int, batch_size: int, seed: int) -> NDArray[np.int64]:
    """Indices of the images in a step (from 0), [batch].

    Every epoch is another permutation, without an incomplete last batch.
    """
    epoch, batch = divmod(step, count // batch_size)
    return _permutation(count, seed, epoch)[batch * batch_size : (batch + 1) * batch_size]


@lru_cache(maxsize=1)
def _permutation(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    return torch.randperm(count, generator=seeded("order", seed, epoch)).numpy()
