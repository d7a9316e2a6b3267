"""Cells labelled by the memories of several layers together: by the mean of their cosines."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from tasks.checks import varies
from tasks.fused import MIXED, Gathered, of_one_grid
from tasks.metrics.label_vote import most_similar_of_sets
from tasks.segmentation.in_context import Memories, QueryMeasurer
from tasks.sets import members_of
from zoo.spec import Layer


class SetsQueryMeasurer:
    """Labels the cells of a few images by sets of layers, of which it is fed each layer.

    The images of a batch wait until all layers have shown them. Layers of one grid remember the same cells,
    so rows of their memories stand for the same places.
    """

    def __init__(self, labels: QueryMeasurer, memories: Memories, sets: Sequence[Layer]) -> None:
        """Start a group.

        Args:
            labels: What the votes of each set are given to.
            memories: What the layers remember.
            sets: The sets.
        """
        self._labels = labels
        self._memories = memories
        self._sets = sets
        self._gathered = Gathered(members_of(sets))
        self._reasons: dict[Layer, str] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        """Keep what a layer shows; once it is the last of all, let the memories vote."""
        done = self._gathered.add(layer, positions, grids)
        if not done:
            return
        shown = {one: torch.stack([images[one] for images in done.values()]) for one in done[min(done)]}
        memory = self._remembered(shown)
        shapes = {one: (grids.shape[1], grids.shape[2]) for one, grids in shown.items()}
        usable = [each for each in self._sets if {*each.members} <= {*memory}]
        for sets in of_one_grid(usable, shapes).values():
            members = members_of(sets)
            queries = {one: functional.normalize(shown[one].float().flatten(0, 2), dim=-1) for one in members}
            rows, named = {one: memory[one][0] for one in members}, {each: each.members for each in sets}
            voters = most_similar_of_sets(queries, rows, named, self._labels.most)
            for each, found in voters.items():
                own = [shown[one] for one in each.members]
                voted = self._labels.take(each, list(done), found, memory[each.members[0]][1], own[0])
                voted.varies += map(varies, own)
                voted.finite += [one.isfinite().all() for one in own]

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Label vectors of every image, as of `QueryMeasurer`."""
        for one in layer.members:
            if one in self._reasons:
                raise ValueError(self._reasons[one])
        if not self._labels.has(layer):
            raise ValueError(MIXED)
        return self._labels.finish(layer)

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]]) -> dict[Layer, dict[str, Tensor]]:
        """Confusion matrices, as of `QueryMeasurer`."""
        return self._labels.settle(finished)

    def _remembered(self, shown: Mapping[Layer, Tensor]) -> dict[Layer, tuple[Tensor, Tensor]]:
        """Unit vectors and label vectors of the layers that remember something."""
        found = {}
        for layer, grids in shown.items():
            try:
                found[layer] = self._memories.of(layer, grids.device)
            except ValueError as error:
                self._reasons[layer] = str(error)
        return found
