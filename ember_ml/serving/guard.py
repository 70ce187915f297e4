"""Access control: bearer token and host names."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ember_ml.serving.api_errors import ApiError

OPEN = ("/", "/health")
"""Paths without access control: the page asks for the token, and `/health` reveals nothing."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """Checks the bearer token, and the host name of requests to a local server.

    A web page on another site cannot use a local server without a token: its requests have the
    name of the site as host, or another content type than JSON.

    Args:
        app: Application behind it.
        token: Bearer token. None: no token is needed.
        hosts: Allowed host names. None: any.
    """

    def __init__(self, app: ASGIApp, token: str | None, hosts: Collection[str] | None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            try:
                self._check(scope["path"], Headers(scope=scope))
            except ApiError as error:
                await error.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> None:
        if self._hosts is not None and _name(headers.get("host", "")) not in self._hosts:
            raise ApiError(
                403, f"the host {headers.get('host', '')!r:.60} is not allowed", "wrong_host"
            )
        if self._token is None or path in OPEN:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            given.strip().encode("latin-1", "replace"), self._token
        ):
            message = "the bearer token is missing or wrong: send `Authorization: Bearer TOKEN`"
            raise ApiError(401, message, "invalid_api_key")


def _name(host: str) -> str:
    """Return a host name without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host.

    Args:
        host: Name or address to bind to.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
