"""Headless Chromium, controlled over a pipe with the DevTools protocol."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # it cannot be had as root
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PIPES = "import os, sys; r, w = map(int, sys.argv[1:3]); os.dup2(r, 3); os.dup2(w, 4); "
PIPES += "os.execv(sys.argv[3], sys.argv[3:])"
"""Chromium reads from 3 and writes to 4."""
SECONDS = 60
"""How long an answer may take."""


def find() -> str | None:
    """Return the path of an installed Chromium or Chrome."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a Chromium of its own.

    Args:
        program: the path of the browser.
        profile: an empty folder for its files.
    """

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self._out = (_high(end) for end in os.pipe())
        self._in, theirs_out = (_high(end) for end in os.pipe())
        command = [sys.executable, "-c", PIPES, str(theirs_in), str(theirs_out), program]
        self._process = subprocess.Popen(
            [*command, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._count = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """Ask for something, and wait for the answer."""
        self._count += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._count, "method": method, "params": params, **session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._count:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._in, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("Chromium ended, or does not answer")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, url: str, width: int, height: int = 900, scheme: str = "light") -> None:
        """Load a page in a window of a size, and forget what happened before."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def wait(self, method: str, **params: Any) -> None:
        """Wait for an event whose parameters are these among others."""
        while not any(
            event["method"] == method and params.items() <= event["params"].items()
            for event in self.events
        ):
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        params = {"expression": script, "returnByValue": True, "awaitPromise": True}
        found = self.call("Runtime.evaluate", **params)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def click(self, selector: str) -> None:
        """Click on the center of an element."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            params = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", **params)

    def press(self, key: str, code: str, number: int, typed: str = "") -> None:
        """Press a key."""
        keys = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=typed, **keys)
        self.call("Input.dispatchKeyEvent", type="keyUp", **keys)

    def complaints(self) -> list[str]:
        """Errors and warnings of the page since it was opened."""
        self.run("0")  # all earlier events have arrived with the answer
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(each) for each in self.events if each["method"] in kinds]

    def requests(self) -> list[str]:
        """Return the requests of the page since it was opened."""
        found = [each for each in self.events if each["method"] == "Network.requestWillBeSent"]
        return [each["params"]["request"]["url"] for each in found]

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)


def _high(end: int) -> int:
    """Move a file descriptor to a number other than 3 and 4."""
    found = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return found
