"""From a request to what there is to do: everything before the first forward."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from benchmark.engines.choose import find_devices
from benchmark.engines.progress import Reporter
from benchmark.jobs.prepare import Prepared, prepare
from benchmark.plan.backbones import find_backbones
from benchmark.plan.folders import require_writable
from benchmark.plan.location import find_data
from benchmark.plan.plan import Plan, PlanRecipe, make_plan
from benchmark.plan.sizes import shown_alike
from benchmark.plan.suites import choose_suite, images_suite
from benchmark.request import Request
from tasks.protocols import EvaluationProtocol


@dataclass(frozen=True)
class Ready:
    """A request that was understood.

    Attributes:
        suite: Name under which its records are filed.
        devices: Where backbones run; the first is also that of what is done once for all of them.
        plan: What it asks for.
        prepared: What of it is not there yet.
    """

    suite: str
    devices: tuple[torch.device, ...]
    plan: Plan
    prepared: Prepared


def make_ready(
    request: Request, report: Reporter, *, writes: bool = True, protocols: Sequence[EvaluationProtocol] = ()
) -> Ready:
    """Find backbones and data, plan, and see what is there already.

    Args:
        request: What was asked for.
        report: Hears what was understood.
        writes: Whether the folders of the run are made and must be writable. Otherwise nothing is written but
            to the cache, what a run would fetch or render: weights, and the mini suite's data.
        protocols: In place of those that the request names.

    Raises:
        InputError: The request is wrong.
    """
    suite, devices = choose_suite(request), find_devices(request)
    if writes:
        require_writable(request.output, request.cache)
    backbones = find_backbones(request, suite, report)
    location = find_data(request, suite, report, protocols)
    plan = make_plan(PlanRecipe(backbones, request.tasks, location, request.transform, request.fuse))
    for line in (*plan.tasks.understood, *shown_alike(plan)):
        report.say(line)
    name = images_suite(plan.datasets) if request.images else suite.name
    return Ready(name, devices, plan, prepare(plan, request, name, devices[0]))
