"""Gram matrices against the bare product, CKA against the loop of released code, k-NN against faiss."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import faiss
import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.neighbours import Cosines, as_unit_rows, nearest
from layerboard.tasks.similarity.cka import Grams
from layerboard.tasks.similarity.metric import CkaAccumulator
from workshop.perf.grids import normal_tensor
from workshop.perf.measuring import Budget, Row, Setting, take_turns
from workshop.perf.memory import forget_peak, peak_memory
from workshop.perf.networks import one_batch

PATCHES = 196 * 768  # channels of all patch tokens of an image of a ViT-B/16
FEW = 16
# Why the Gram matrix of few images takes about twice the product and more on a CPU.
SMALL = "a value takes part in 16 products only: its mean and its difference take as long, from the cache too"


def gram_matrix_rows(setting: Setting) -> Iterator[Row]:
    """The Gram matrix of a batch's patch tokens, as CKA's measurer computes it, over the product alone."""
    for images in (4,) if setting.quick else (FEW, 256):
        features = normal_tensor((images, PATCHES), setting)
        candidates = {
            "product": partial(torch.matmul, features, features.mT),
            "gram": partial(Grams(one_batch(images), config_of(STANDARD, "cka")).gram, features),
        }
        what = f"Gram matrix of {images} x {PATCHES:,}, over the bare product"
        note = "" if images > FEW else SMALL
        yield take_turns(setting, candidates, 4).row(what, ("gram", "product"), Budget(1.6), note)


def cka_rows(setting: Setting) -> Iterator[Row]:
    """CKA of the layers of two backbones, of 12 and of 24 layers each, Gram matrices included."""
    images, width = (16, 32) if setting.quick else (256, 768)
    for depth in (3,) if setting.quick else (12, 24):
        layers = [normal_tensor((images, width), setting, seed) for seed in range(2 * depth)]
        halves = layers[:depth], layers[depth:]
        candidates = {"loop": partial(loop_cka, *halves), "ours": partial(our_cka, *halves)}
        difference = float((loop_cka(*halves) - our_cka(*halves)).abs().max())
        what = f"CKA of {depth} x {depth} layers, a loop over pairs with one Gram matrix a layer, over ours"
        note = f"{images} images, {width} channels; largest difference {difference:.0e}"
        yield take_turns(setting, candidates, 2).row(what, ("loop", "ours"), Budget(1, at_least=True), note)


def loop_cka(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """Unbiased CKA [first second]: Gram matrices once per layer, then the estimator for every pair."""

    def gram(x: Tensor) -> Tensor:
        centred = x - x.mean(0)
        product = centred @ centred.T
        return product - torch.diag(product.diagonal())

    def hsic(k: Tensor, other: Tensor) -> Tensor:
        n = len(k)
        total = (k * other).sum() + k.sum() * other.sum() / ((n - 1) * (n - 2))
        return (total - 2 / (n - 2) * (k.sum(0) @ other.sum(0))) / (n * (n - 3))

    rows, columns = [gram(x) for x in first], [gram(x) for x in second]
    own, others = [hsic(k, k) for k in rows], [hsic(k, k) for k in columns]
    pairs = [
        [hsic(k, o) / (a * b).sqrt() for o, b in zip(columns, others, strict=True)]
        for k, a in zip(rows, own, strict=True)
    ]
    return torch.stack([torch.stack(row) for row in pairs])


def our_cka(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """CKA by the package, which computes all pairs of all layers by one product."""
    problem = Grams(one_batch(len(first[0])), config_of(STANDARD, "cka"))
    accumulator = CkaAccumulator()
    accumulator.add(problem.centred(torch.stack([problem.gram(x) for x in (*first, *second)])))
    return accumulator.matrix()[: len(first), len(first) :]


CHUNK = 500  # batch of queries for torch


def neighbour_rows(setting: Setting) -> Iterator[Row]:
    """100,000 vectors of 384 channels, 2,000 queries, and the largest number of neighbours that k-NN uses."""
    bank, queries = (2000, 100) if setting.quick else (100_000, 2000)
    k = max(config_of(STANDARD, "knn").k, *config_of(STANDARD, "knn").others)
    random = np.random.default_rng(0)
    vectors, asked = (random.standard_normal((n, 384), np.float32) for n in (bank, queries))
    for values in (vectors, asked):
        values /= np.linalg.norm(values, axis=1, keepdims=True)

    def by_torch() -> list[Tensor]:
        """Neighbours on the device, from the same arrays in memory of the host as ours, and back there."""
        there, wanted = (torch.from_numpy(each).to(setting.device) for each in (vectors, asked))
        return [(part @ there.T).topk(k).indices.cpu() for part in torch.split(wanted, CHUNK)]

    candidates = {
        "faiss": lambda: faiss.knn(asked, vectors, k, metric=faiss.METRIC_INNER_PRODUCT),
        "torch": by_torch,
        "ours": lambda: nearest(vectors, asked, k, device=setting.card),
    }
    rounds = take_turns(setting, candidates, 0.5)
    size = f"{bank:,} x 384, {queries:,} queries, k {k}"
    faster = min(("faiss", "torch"), key=rounds.milliseconds)
    yield rounds.row(f"k-NN, {size}, faiss over torch", ("faiss", "torch"))
    gaps = np.diff(nearest(vectors, asked, k).similarity)
    close = (gaps > -Cosines([(as_unit_rows(vectors), asked)]).doubt).mean()
    note = f"unit lengths, ties and duplicates included; float32 alone leaves {close:.1%} of the order open"
    what = f"the same, ours over {faster}, which is faster here"
    yield Row(
        what, rounds.ratio("ours", faster), budget=Budget(1.1 if setting.card is None else 1.3), note=note
    )


def large_bank_rows(setting: Setting) -> Iterator[Row]:
    """512 queries in banks of up to a million vectors on the processor: seconds of its threads, and memory.

    Each search runs once, without a warm-up; vectors are drawn from a seed.
    """
    sizes = (2000,) if setting.quick else (100_000, 300_000, 1_000_000)
    for count, dim in product(sizes, (384, 768)):
        random = np.random.default_rng(0)
        bank, asked = (random.standard_normal((n, dim), np.float32) for n in (count, 512))
        for k in (20, 200):
            before = forget_peak()
            begin = time.process_time()
            nearest(bank, asked, k)
            seconds = time.process_time() - begin
            note = f"{peak_memory() - before:,.0f} MiB beside the bank's {bank.nbytes / 2**20:,.0f} MiB"
            what = f"k-NN, {count:,} x {dim}, {len(asked)} queries, k {k}: seconds of processors"
            yield Row(what, seconds, "s", note=note)
