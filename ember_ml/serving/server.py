"""The server process: socket, signals and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from ember_ml._core.errors import ArgumentError
from ember_ml.serving.app import ServerApp, Service
from ember_ml.serving.guard import LOCAL_NAMES, is_loopback

MIN_CONNECTIONS = 1024
"""Smallest limit of open connections; those beyond it are refused with status 503."""
SWITCH_INTERVAL = 0.0002
"""Seconds after which a thread that computes lets the event loop run."""


class Server(uvicorn.Server):
    """Server of one model, which ends cleanly at SIGTERM and SIGINT.

    After the first signal it finishes what runs and refuses the rest with status 503, for at most
    `grace` seconds. The second signal ends it at once.

    Args:
        app: The application.
        grace: Seconds from the signal to the end of the process.
        announce: Called with the address when the server accepts requests.
    """

    def __init__(self, app: ServerApp, grace: float, announce: Callable[[str], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app.asgi,
                lifespan="on",
                log_level="warning",
                access_log=False,
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=max(1, round(grace)),
                limit_concurrency=max(MIN_CONNECTIONS, 4 * app.service.limits.places),
            )
        )
        self._served = app
        self._grace = grace
        self._announce = announce
        self._drain: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests, and announce it."""
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        if self.started and sockets:
            self._announce(_address(sockets[0]))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to shut down; at the second signal, end at once."""
        if not self.started or self._drain is not None:
            self.should_exit = self.force_exit = True
            return
        self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._drain is None:
            self._drain = self._loop.create_task(self._finish())

    async def _finish(self) -> None:
        end = time.monotonic() + self._grace
        try:
            await self._served.drain(max(0.1, self._grace - 1.0))
        finally:
            self.config.timeout_graceful_shutdown = max(1, round(end - time.monotonic()))
            self.should_exit = True


def serve(
    service: Service,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    insecure: bool = False,
    grace: float = 10.0,
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve a model over HTTP until SIGTERM or SIGINT.

    Args:
        service: Completions or predictions of a model.
        host: Address to bind to.
        port: Port; 0 takes a free one.
        token: Bearer token that clients must send. Default: none.
        insecure: Whether a server that other machines can reach may have no token.
        grace: Seconds for running requests after the signal.
        announce: Called with the address when the server accepts requests.
    """
    if token is not None and not token.strip():
        raise ArgumentError("serve: the token is empty")
    if not is_loopback(host) and token is None and not insecure:
        raise ArgumentError(
            f"serve: other machines can reach {host}, and there is no token; pass --token or set "
            "EMBER_SERVE_TOKEN, or pass --insecure"
        )
    hosts = (*LOCAL_NAMES, host) if is_loopback(host) and token is None else None
    app = ServerApp(service, token, hosts)
    with _bind(host, port) as listener, _switching_threads():
        Server(app, grace, announce).run(sockets=[listener])


@contextlib.contextmanager
def _switching_threads() -> Iterator[None]:
    """Let the event loop send a token before the thread of the model computes many more.

    Sending takes several turns of the event loop. By default Python lets it wait 5 ms for each,
    while a small model computes ten tokens.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        raise ArgumentError(f"serve: cannot bind to {host}, port {port}: {error}") from None
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
