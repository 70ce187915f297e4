"""Which runs a sweep still needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.architecture import Architecture
from ember_ml.mad.scales import SCALES, make_runs
from ember_ml.mad.store import run_name


def missing_runs(about: Mapping[str, Any], seen: Sequence[RunConfig]) -> list[RunConfig]:
    """The runs that belong to a sweep and have neither a result nor an error.

    Args:
        about: what was said of the sweep: its scale and its plans. If they do not tell of the runs
            seen, what any architecture was run on belongs to it, for all of them.
        seen: the runs that are done or failed.
    """
    names = {run_name(run) for run in seen}
    planned = _of_plans(about)
    if not names <= planned.keys():  # a scale of one's own, or changed since
        planned = _of_grid(seen)
    return [run for name, run in planned.items() if name not in names]


def _named(runs: Iterable[RunConfig]) -> dict[str, RunConfig]:
    return {run_name(run): run for run in runs}


def _of_plans(about: Mapping[str, Any]) -> dict[str, RunConfig]:
    found: dict[str, RunConfig] = {}
    for plan in about.get("plans", ()) if about.get("scale") in SCALES else ():
        architectures = [Architecture(*each) for each in plan["architectures"]]
        runs = make_runs(SCALES[about["scale"]], architectures, plan["tasks"], plan["seeds"])
        found |= _named(runs)
    return found


def _of_grid(seen: Sequence[RunConfig]) -> dict[str, RunConfig]:
    kinds = {}
    for run in seen:
        plain = run.to_dict()
        kinds[json.dumps({**plain, "architecture": "", "layers": ""}, sort_keys=True)] = run
    layers = {run.architecture: run.layers for run in seen}
    return _named(
        run.model_copy(update={"architecture": name, "layers": layers[name]})
        for run in kinds.values()
        for name in layers
    )
