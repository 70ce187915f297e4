"""The timeline of a profile in Chrome's trace event format, which Perfetto reads too."""

from __future__ import annotations

import json
from typing import Any

from ember_ml.training.profiling.events import OUTSIDE, Event
from ember_ml.training.profiling.gather import OUTSIDE_NAME, ROOT
from ember_ml.training.profiling.result import Profile

PARTS, CALLS, REPLAYED = 1, 2, 3
"""Numbers of the rows of the timeline, which the format calls threads."""
ROWS = {PARTS: "steps", CALLS: "modules and ops", REPLAYED: "backward passes, measured alone"}
MARK = "ember_ml profile"


def trace_events(profile: Profile) -> dict[str, Any]:
    """Return the trace as plain data: a JSON object with the key "traceEvents".

    Times are microseconds since the first call. Calls are complete events ("ph": "X") within those
    of the modules that call them.

    Args:
        profile: The profile.
    """
    start = min((event.start for event in profile.timeline), default=0.0)
    rows = {_row(event) for event in profile.timeline}
    names: list[dict[str, Any]] = [_name("process_name", 0, f"{MARK}: {profile.title}")]
    for row in sorted(rows):
        names.append(_name("thread_name", row, ROWS[row]))
        names.append({**_name("thread_sort_index", row, ""), "args": {"sort_index": row}})
    events = sorted(profile.timeline, key=lambda event: (event.start, -event.seconds))
    return {
        "traceEvents": [*names, *(_complete(event, profile, start) for event in events)],
        "displayTimeUnit": "ms",
        "otherData": {
            "producer": MARK,
            "backend": profile.backend,
            "device": profile.device,
            "dropped_events": profile.dropped,
        },
    }


def trace_json(profile: Profile) -> str:
    """Return the trace as JSON, for chrome://tracing and https://ui.perfetto.dev.

    Args:
        profile: The profile.
    """
    return json.dumps(trace_events(profile), separators=(",", ":"))


def _row(event: Event) -> int:
    if event.replayed:
        return REPLAYED
    return PARTS if event.kind == "part" else CALLS


def _complete(event: Event, profile: Profile, start: float) -> dict[str, Any]:
    module = OUTSIDE_NAME if event.layer == OUTSIDE else profile.names[event.layer] or ROOT
    return {
        "name": event.name or ROOT,
        "cat": f"{event.kind},{event.phase}" if event.phase else event.kind,
        "ph": "X",
        "ts": 1e6 * (event.start - start),
        "dur": 1e6 * event.seconds,
        "pid": 0,
        "tid": _row(event),
        "args": {} if event.kind == "part" else {"module": module, "phase": event.phase},
    }


def _name(kind: str, row: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 0, "tid": row, "args": {"name": name}}
