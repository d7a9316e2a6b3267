"""The backbones of a run, as they are shown images, and messages about inferred ones."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, product
from pathlib import Path

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.forms.request import InterpolationChoice, Request
from layerboard.benchmark.plan.layers import select_layers, with_taps
from layerboard.benchmark.plan.series import Series, find_series
from layerboard.benchmark.plan.suites import Suite
from layerboard.tasks.framework.sets import FREE, is_possible
from layerboard.zoo.errors import InputError, ensure, some
from layerboard.zoo.load.backbone import describe_backbone
from layerboard.zoo.references import is_local, split_part
from layerboard.zoo.registry.find import all_specs, find_each, read_local_names, registry_first
from layerboard.zoo.spec import NO_FILE, OWN_POSITIONS, BackboneSpec, Variant
from layerboard.zoo.spec.origin import ORIGINAL, TIMM, TRANSFORMERS
from layerboard.zoo.view.geometry import nearest_multiple

NO_WEIGHTS = (
    "the weights are in no cache of the Hugging Face Hub, which cannot be reached; connect once, or add "
    "--weights NAME=FILE"
)


def find_backbones(request: Request, suite: Suite, report: Reporter) -> tuple[BackboneSpec, ...]:
    """The requested backbones and the floors, as they are shown images; reports what was inferred.

    Raises InputError for an unknown backbone or layer, or for options that a backbone does not support.
    """
    series = find_series(request)
    patterns = series.backbones or (() if series.steps else _runnable(suite, request, report))
    specs, named = _found(patterns, request)
    specs = with_weights([*specs, *_checkpoints(series, request, report)], series.weights or {})
    if request.floor and not any(spec.is_floor for spec in specs):
        sizes, floors = {spec.input_size for spec in specs}, [each for each in all_specs() if each.is_floor]
        alike = [floor for floor in floors if {floor.input_size} == sizes]  # that all backbones share
        specs += alike or [floor for floor in floors if floor.name in suite.floors]
    usual = _wanted(Variant(""), request)
    every = [*chain(*named.values())] or usual
    # the floors have all sizes of the backbones, in one dtype
    sides = dict.fromkeys(each.input_size for each in every)
    of_floors = [Variant("", side, every[0].dtype) for side in sides]
    placed: list[BackboneSpec] = []
    for spec in (with_rule(spec, request.interpolation) for spec in specs):
        variants = of_floors if spec.is_floor else named.get(spec.name, usual)
        shown, lines = shown_as_each(spec, variants)
        placed += shown
        report.say(*lines)
    placed, left_out = with_taps(placed, request.taps)
    report.say(*left_out)
    for spec in {(Variant.of(spec.entry).checkpoint[0], spec.input_size): spec for spec in placed}.values():
        report.say(*filter(None, [describe_backbone(spec, request.cache)]))
    for spec in placed:
        select_layers(request.layers, spec, request.taps)  # wrong ones are reported before any work
    report.say(*_without_sets(request, [spec for spec in placed if not spec.is_floor]))
    return tuple(placed)


def _without_sets(request: Request, specs: Sequence[BackboneSpec]) -> Iterator[str]:
    """Sets given by their blocks that some backbones lack, in words.

    Raises InputError for any other set that one of them lacks, and for one that all lack.
    """
    for name in request.fuse:
        lacking = [
            spec
            for spec in specs
            if not is_possible(name, spec.depth, select_layers(request.layers, spec, request.taps))
        ]
        if lacking and (len(lacking) == len(specs) or not FREE.fullmatch(name)):
            raise InputError(
                f"--fuse {name} needs blocks of {lacking[0].name} that are not scored: at least two of its "
                f"{lacking[0].depth}, and all of a set; leave --layers and --taps out, or that name"
            )
        if lacking:
            names = some([spec.name for spec in lacking])
            yield f"left out: the set {name} of {names}, of which not all of its blocks are scored"


def _runnable(suite: Suite, request: Request, report: Reporter) -> list[str]:
    """The backbones of a suite that can be run as they are; reports the others, with what adds them.

    Raises InputError if none can be run.
    """
    from layerboard.zoo.own.timm_models import unavailable

    known = {spec.name: spec for spec in all_specs()}
    lacking: dict[str, str] = {}
    of_timm = [each for each in suite.backbones if each.startswith(TIMM.mark) and each not in request.weights]
    with suppress(InputError):  # without timm, which each of them says
        lacking = dict.fromkeys(unavailable(of_timm, request.cache) if of_timm else [], NO_WEIGHTS)
    for name in suite.backbones:
        spec = known.get(name)
        if spec is not None and not spec.repository and name not in request.weights:
            lacking[name] = f"fetch {spec.original} and add --weights {name}=FILE"
        elif name.startswith(TIMM.mark) and name not in lacking:
            try:
                find_each([name], request.cache)
            except InputError as error:
                lacking[name] = str(error)
    alike = {reason: [name for name in lacking if lacking[name] == reason] for reason in lacking.values()}
    lines = [
        f"left out: {some(names)} of the suite {suite.name}: {reason}" for reason, names in alike.items()
    ]
    ensure(len(lacking) != len(suite.backbones), "; ".join(lines))
    report.say(*lines)
    return [name for name in suite.backbones if name not in lacking]


def _found(
    patterns: Sequence[str], request: Request
) -> tuple[Sequence[BackboneSpec], dict[str, list[Variant]]]:
    """The backbones that match patterns, and the variants that these name, by name of the backbone."""
    variants = named_variants(patterns)
    entries = dict.fromkeys(variant.entry for variant in variants)
    meant = find_each(entries, request.cache, read_local_names(request.output))
    specs = registry_first(meant.values())
    if all(variant == Variant(variant.entry) for variant in variants):
        return specs, {}
    if request.input_size and any(variant.input_size for variant in variants):
        raise InputError("--backbones names input sizes (NAME@448px); leave these or --input-size out")
    if request.dtype != ("float32",) and any(variant.dtype for variant in variants):
        raise InputError("a backbone's name gives a format (NAME@bfloat16); leave it or --dtype out")
    named: dict[str, list[Variant]] = {}
    for variant in variants:
        for spec in meant[variant.entry]:
            named.setdefault(spec.name, []).extend(_wanted(variant, request))
    return specs, named


def _checkpoints(series: Series, request: Request, report: Reporter) -> list[BackboneSpec]:
    """The checkpoints of trainings as backbones, named by training and step; reports what was found."""
    trainings = series.names(request.output)
    report.say(*series.lines(trainings))
    meant = find_each({each.weights_of or each.backbone: None for each in series.steps}, request.cache)
    specs = []
    for each in series.steps:
        name = f"{trainings[each.training]}@step{each.step}"
        bases = meant[each.weights_of or each.backbone]
        if each.weights_of:
            ensure(len(bases) == 1, f"--weights names {each.weights_of!r}, which are several backbones")
            bases = tuple(with_weights(bases, {bases[0].name: Path(each.backbone)}))
        specs.append(replace(bases[0], name=name))
    return specs


def named_variants(patterns: Sequence[str]) -> list[Variant]:
    """The variants that names of backbones mean; a directory keeps its name."""
    return [Variant(text) if is_local(text) else Variant.of(text) for text in patterns]


def _wanted(named: Variant, request: Request) -> list[Variant]:
    """What is run of a backbone: what its name leaves open, the options say."""
    dtypes = (named.dtype,) if named.dtype else request.dtype
    sizes = (named.input_size,) if named.input_size else request.input_size or (None,)
    return [replace(named, input_size=size, dtype=dtype) for dtype, size in product(dtypes, sizes)]


def shown_as(spec: BackboneSpec, variant: Variant) -> BackboneSpec:
    """A backbone as a variant of it, under that variant's name; raises InputError if it has a fixed size.

    The size is rounded to the nearest multiple of the patch size: halves go up, and it is at least one patch.
    The backbone's own size, float32 and the one format of floors are in no name.
    """
    size = variant.input_size
    side = spec.input_size if size is None else nearest_multiple(size, spec.patch_size)
    if spec.fixed_size and side != spec.input_size:
        raise InputError(
            f"{spec.name} takes images of {spec.input_size} px only, not {side}: leave it or --input-size out"
        )
    dtype = variant.dtype or "float32"
    named = None if dtype == "float32" or spec.is_floor else dtype
    name = str(Variant(spec.name, None if side == spec.input_size else side, named, variant.fast_resize))
    return replace(spec, name=name, input_size=side, dtype=dtype, fast_resize=variant.fast_resize)


def shown_as_each(spec: BackboneSpec, variants: Sequence[Variant]) -> tuple[list[BackboneSpec], list[str]]:
    """A backbone as each variant, each once, and in words what is rounded, the same or left out.

    Raises InputError if it takes images of one size only, and none of the variants has it.
    """
    shown: dict[BackboneSpec, int] = {}  # with the size that was asked for
    lines: list[str] = []
    unfit: dict[int, InputError] = {}  # sizes that it does not take
    for variant in variants:
        asked = variant.input_size or spec.input_size
        try:
            placed = shown_as(spec, variant)
        except InputError as error:
            unfit.setdefault(asked, error)
            continue
        before, side = shown.setdefault(placed, asked), placed.input_size
        if before != asked:
            lines.append(f"{spec.name}: {before} and {asked} px are both {side} px to it, run once")
        elif side != asked and not spec.is_floor:
            lines.append(
                f"{spec.name}: images at {side} px, the multiple of its patch size of {spec.patch_size} px "
                f"nearest to {asked}"
            )
    if not shown:
        raise next(iter(unfit.values()))
    if unfit:
        left = " and ".join(map(str, unfit))
        lines.append(f"{spec.name} takes images of {spec.input_size} px only: it is left out at {left} px")
    return [*shown], [*dict.fromkeys(lines)]


def with_rule(spec: BackboneSpec, interpolation: InterpolationChoice) -> BackboneSpec:
    """A backbone with another rule for position embeddings, if it has any that the rule fits."""
    convnet = spec.heads is None
    if interpolation == "auto" or spec.is_floor or convnet or not OWN_POSITIONS.isdisjoint(spec.model_types):
        return spec
    return replace(spec, interpolation=interpolation)


def with_weights(specs: Sequence[BackboneSpec], weights: Mapping[str, Path]) -> list[BackboneSpec]:
    """Backbones with given weights: a directory in Hugging Face format, or a file of the authors.

    Raises InputError if a name is not among them, if a path does not exist, or if a floor has no weights.
    """
    by_name = {spec.name: spec for spec in specs}
    for name, path in weights.items():
        ensure(name in by_name, f"--weights names {name!r}, which is not run; it runs {', '.join(by_name)}")
        file, _ = split_part(str(path))
        ensure(file.exists(), f"expected the weights of {name} at {path}, which does not exist")
        spec = by_name[name]
        ensure(spec.origin.takes_weights, f"--weights names {name!r}, whose features come from no file")
        usual = ORIGINAL if file.is_file() else TRANSFORMERS
        origin = usual if spec.origin.has_architecture else spec.origin
        # a file of the published name should be that file
        known = spec.file if spec.original and file.name == spec.file.name else NO_FILE
        by_name[name] = replace(
            spec, repository=str(path), revision=None, file=known, origin=origin, trained=True
        )
    return list(by_name.values())
