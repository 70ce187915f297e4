"""Which runs a sweep still needs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.architecture import Architecture
from ember_ml.mad.scales import SCALES, make_runs
from ember_ml.mad.scores import task_of
from ember_ml.mad.store import run_name


def missing_runs(scale: str, seen: Sequence[RunConfig]) -> list[RunConfig]:
    """The runs that belong to a sweep and have neither a result nor an error.

    Args:
        scale: its name. Where it is a known one, its runs of the architectures, tasks and seeds
            seen are the whole; elsewise what any architecture was run on, for all of them.
        seen: the runs that are done or failed.
    """
    names = {run_name(run) for run in seen}
    planned = _of_scale(scale, seen)
    if not names <= {run_name(run) for run in planned}:  # a scale of one's own, or changed since
        planned = _of_grid(seen)
    return [run for run in planned if run_name(run) not in names]


def _architectures(seen: Sequence[RunConfig]) -> list[Architecture]:
    found = {(run.architecture, json.dumps(run.to_dict()["layers"])): run for run in seen}
    return [Architecture(run.architecture, run.layers) for run in found.values()]


def _of_scale(scale: str, seen: Sequence[RunConfig]) -> list[RunConfig]:
    if scale not in SCALES or not seen:
        return []
    seeds = sorted({run.seed for run in seen})
    tasks = dict.fromkeys(task_of(run) for run in seen)
    return make_runs(SCALES[scale], _architectures(seen), tasks, seeds)


def _of_grid(seen: Sequence[RunConfig]) -> list[RunConfig]:
    kinds = {}
    for run in seen:
        plain = run.to_dict()
        kinds[json.dumps({**plain, "architecture": "", "layers": ""}, sort_keys=True)] = run
    return [
        run.model_copy(update={"architecture": each.name, "layers": each.layers})
        for run in kinds.values()
        for each in _architectures(seen)
    ]
