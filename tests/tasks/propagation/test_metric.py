import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import interpolate

from layerboard.tasks.propagation import metric as module
from layerboard.tasks.propagation.metric import (
    Neighbourhood,
    Propagation,
    decode,
    decode_on_frame,
    seed_labels,
)
from tests.tasks.standard import LayerPropagation


class Obvious:
    """Dense affinities, a window built token by token, and a threshold at the k-th largest."""

    def __init__(self, features, labels, n_last_frames, topk, radius, temperature, circle=False):
        self.circle = circle
        self.first, self.queue = (features, labels), []
        self.n, self.k, self.radius, self.temperature = n_last_frames, topk, radius, temperature

    def step(self, features):
        height, width, _ = features.shape
        sources = [self.first, *self.queue]
        unit = [torch.nn.functional.normalize(f, dim=-1).flatten(0, 1) for f, _ in sources]
        query = torch.nn.functional.normalize(features, dim=-1).flatten(0, 1)
        cosine = torch.stack([query @ source.T for source in unit])
        row, column = np.divmod(np.arange(height * width), width)
        norm = np.hypot if self.circle else np.maximum
        far = norm(abs(row[:, None] - row), abs(column[:, None] - column)) > (self.radius or 10**6)
        affinity = (cosine / self.temperature).exp() * torch.from_numpy(~far)
        together = affinity.transpose(0, 1).flatten(1)
        least = together.topk(min(self.k, together.shape[1]), dim=1).values[:, -1]
        together = torch.where(together >= least[:, None], together, 0)
        together = together / together.sum(1, keepdim=True)
        soft = together @ torch.cat([labels.flatten(0, 1) for _, labels in sources])
        soft = soft.view(height, width, -1)
        self.queue = [*self.queue, (features, soft)][-self.n :] if self.n else []
        return soft


def video(seed, frames, height, width, dim, dtype=torch.float64, distinct=None):
    """Frames of random tokens; of so many different ones, so that affinities tie exactly, if asked."""
    generator = torch.Generator().manual_seed(seed)
    shape = (frames, height, width)
    if distinct:
        tokens = torch.eye(max(distinct, dim), dtype=dtype)[:distinct, :dim]
        features = tokens[torch.randint(0, distinct, shape, generator=generator)]
    else:
        features = torch.randn((*shape, dim), dtype=dtype, generator=generator)
    labels = torch.rand((height, width, 3), dtype=dtype, generator=generator)
    return features, labels / labels.sum(-1, keepdim=True)


def check(features, labels, **options):
    heard = Neighbourhood(**{"circle": False, **options})
    ours, theirs = LayerPropagation(features[0], labels, heard), Obvious(features[0], labels, **options)
    for frame in features[1:]:
        torch.testing.assert_close(ours.step(frame), theirs.step(frame), rtol=0, atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    height=st.integers(1, 7),
    width=st.integers(1, 9),
    n_last_frames=st.integers(0, 3),
    topk=st.integers(1, 9),
    radius=st.integers(0, 4),
    distinct=st.sampled_from([None, None, 1, 3, 6]),
)
def test_equals_the_obvious_propagation(seed, height, width, n_last_frames, topk, radius, distinct):
    features, labels = video(seed, 5, height, width, 6, distinct=distinct)
    options = {"n_last_frames": n_last_frames, "topk": topk, "radius": radius, "temperature": 0.2}
    check(features, labels, **options)


@pytest.mark.parametrize("distinct", [None, 16])
@pytest.mark.parametrize("radius", [0, 3, 12])
def test_tiles_equal_the_obvious_propagation(monkeypatch, radius, distinct):
    monkeypatch.setattr(module, "WHOLE", 1)
    monkeypatch.setattr(module, "TILE_CPU", (3, 5))
    monkeypatch.setattr(module, "SIMILARITIES", 2000)
    features, labels = video(1, 4, 7, 13, 16, distinct=distinct)
    check(features, labels, n_last_frames=2, topk=5, radius=radius, temperature=0.1)


@pytest.mark.parametrize("radius", [0.5, 1, 1.5, 3, 12])
def test_a_circle_equals_dense_affinities(radius):
    check(*video(3, 5, 9, 13, 6), n_last_frames=2, topk=4, radius=radius, temperature=0.2, circle=True)


@pytest.mark.parametrize("distinct", [None, 3])
def test_several_rules_carry_their_own_labels_by_the_same_products(monkeypatch, distinct):
    """Each says what it says alone, also where tokens tie, in tiles and with a narrower window."""
    monkeypatch.setattr(module, "WHOLE", 1)
    monkeypatch.setattr(module, "TILE_CPU", (3, 5))
    features, labels = video(2, 4, 7, 8, 6, distinct=distinct)
    shared = {"n_last_frames": 2, "topk": 4}
    rules = [
        Neighbourhood(**shared, radius=3, circle=False, temperature=0.2),
        Neighbourhood(**shared | {"topk": 7}, radius=2.99, circle=True, temperature=0.05),
        Neighbourhood(**shared, radius=3, circle=False, temperature=0.1),
    ]
    together = Propagation({0: features[0]}, labels, {0: (0,)}, rules)
    alone = [LayerPropagation(features[0], labels, rule) for rule in rules]
    for frame in features[1:]:
        every = [each.step(frame) for each in alone]
        torch.testing.assert_close(together.step({0: frame})[0], torch.stack(every), rtol=0, atol=1e-12)
        assert not torch.equal(every[0], every[1])


@pytest.mark.parametrize("scaled", [True, False])
def test_probabilities_go_bilinearly_to_the_frame(scaled):
    """As DINOv3's paper says, at sizes that no patch divides; a constant channel has no range to scale."""
    soft = torch.rand((5, 7, 4), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    soft[..., 3] = 0.9
    large = interpolate(soft.permute(2, 0, 1)[None], (23, 37), mode="bilinear")[0].numpy()
    if scaled:
        large[:3] -= large[:3].min((1, 2), keepdims=True)
        large[:3] /= large[:3].max((1, 2), keepdims=True)
        large[3] = 0
    found = decode_on_frame(soft, (37, 23), scaled=scaled)
    np.testing.assert_array_equal(found, large.argmax(0))
    assert (3 in found) == (not scaled)


def test_seed_labels_lose_or_keep_a_small_object():
    mask = np.zeros((40, 40), np.uint8)
    mask[0:20, 0:20], mask[30:32, 10:13] = 1, 3  # object 3 lies on columns 10..12: mostly token (3, 1)
    lost, kept = (seed_labels(mask, (4, 4), keep_vanished=keep) for keep in (False, True))
    assert lost.shape == (4, 4, 2)
    assert kept.shape == (4, 4, 4)
    assert kept.argmax(-1).numpy()[3].tolist() == [0, 3, 0, 0]
    assert kept.sum(dim=(0, 1)).tolist() == [11, 4, 0, 1]


def test_seed_labels_never_take_the_only_token_of_another_object():
    mask = np.zeros((20, 20), np.uint8)
    mask[5:8, 5:8] = 1  # the sampled pixel (5, 5) makes token (0, 0) the only one of object 1
    mask[2, 2:4] = 2
    mask[9:11, 9] = 3
    labels = seed_labels(mask, (2, 2), keep_vanished=True)
    assert labels[0, 0].tolist() == [0.0, 0.5, 0.5, 0.0]
    assert labels[1, 0].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert (labels.sum(-1) == 1).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
def test_every_object_of_the_mask_has_a_token(seed, height, width):
    rng = np.random.default_rng(seed)
    mask = (rng.integers(1, 6, (23, 31)) * (rng.random((23, 31)) < 0.02)).astype(np.uint8)
    labels = seed_labels(mask, (height, width), keep_vanished=True).numpy()
    np.testing.assert_allclose(labels.sum(axis=-1), 1, atol=1e-6)
    for number in set(mask.ravel().tolist()) - {0}:
        assert labels[..., number].max() > 0


def test_decode_counts_a_constant_channel_as_one():
    soft = torch.zeros(3, 4, 2)
    soft[..., 1] = 1 - 6e-8 * torch.arange(12.0).view(3, 4) / 12
    assert (decode(soft, (21, 10), 5) == 1).all()
    assert (decode(torch.ones(3, 4, 1), (21, 10), 5) == 0).all()
