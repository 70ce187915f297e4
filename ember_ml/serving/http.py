"""Bodies, disconnects and event streams."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Coroutine
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ember_ml.serving.api_errors import ApiError, of_validation
from ember_ml.serving.formats import Format
from ember_ml.serving.jobs import Delta, Job
from ember_ml.serving.schemas import Body

B = TypeVar("B", bound=Body)
T = TypeVar("T")
BODY_SECONDS = 30.0
"""Time in which a client must send the body of a request."""
SEND_SECONDS = 10.0
"""Time after the deadline of a request in which a slow client can read the rest."""
DONE = b"data: [DONE]\n\n"


class Disconnected(Exception):  # noqa: N818
    """The client has closed the connection."""


async def read_body(request: Request, schema: type[B], limit: int) -> B:
    """Return the body of a request.

    Args:
        request: The request.
        schema: Fields of the body.
        limit: Maximum number of bytes.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        message = f"Content-Type must be application/json, not {kind!r:.60}"
        raise ApiError(415, message, "unsupported_media_type")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            content = await _content(request, limit)
    except TimeoutError:
        message = f"the body did not arrive within {BODY_SECONDS:g} s"
        raise ApiError(408, message, "body_timeout") from None
    try:
        return schema.model_validate_json(content)
    except ValidationError as error:
        raise of_validation(error) from None


async def _content(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def _too_large(limit: int) -> ApiError:
    return ApiError(413, f"the body exceeds the limit of {limit} bytes", "body_too_large")


async def unless_disconnected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of some work; cancel it if the client closes the connection.

    Args:
        receive: Messages of the client. The body must have been read.
        work: The work.

    Raises:
        Disconnected: The client has closed the connection.
    """
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Disconnected
    finally:
        await _cancel(task)
        await _cancel(watch)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task


async def whole(job: Job, form: Format) -> Response:
    """Return the response of a job that is not streamed.

    Args:
        job: The job, which was submitted.
        form: Format of the response.
    """
    parts = {choice: Delta() for choice in job.choices}
    async for news in job.deltas():
        for choice, delta in news:
            parts[choice].extend(delta)
    return json_response(form.whole(list(parts.items()), job.usage))


def json_response(data: object, status: int = 200) -> Response:
    """Return a response with JSON."""
    content = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # surrogates cannot be encoded; they come from no tokenizer, but from echoed text
    return Response(content.encode("utf-8", "replace"), status, media_type="application/json")


class EventStream(Response):
    """Server-sent events of a job.

    The response starts with the first token, so that an error before it has its own status.

    Args:
        job: The job, which was submitted.
        form: Format of the events.
        usage: Whether the last event has the numbers of tokens.
    """

    def __init__(self, job: Job, form: Format, usage: bool) -> None:
        super().__init__()
        self.job = job
        self.form = form
        self.usage = usage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until the end, an error, or the end of the connection."""
        try:
            with contextlib.suppress(Disconnected, TimeoutError):
                async with asyncio.timeout(self.job.seconds_left + SEND_SECONDS):
                    await unless_disconnected(receive, self._send(scope, receive, send))
        finally:
            self.job.cancel()

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_started = False
        try:
            async for content in self._events():
                if not is_started:
                    await send(_START)
                    is_started = True
                await _send_part(send, content)
        except ApiError as error:
            if not is_started:
                await error.response()(scope, receive, send)
                return
            await _send_part(send, _event(error.to_dict()))
        await send({"type": "http.response.body", "body": DONE, "more_body": False})

    async def _events(self) -> AsyncIterator[bytes]:
        async for news in self.job.deltas():
            yield b"".join(_event(self.form.chunk(choice, delta)) for choice, delta in news)
        if self.usage:
            yield _event(self.form.last_chunk(self.job.usage))


_START: dict[str, Any] = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ],
}


def _send_part(send: Send, content: bytes) -> Awaitable[None]:
    return send({"type": "http.response.body", "body": content, "more_body": True})


def _event(data: object) -> bytes:
    text = json.dumps(data, separators=(",", ":"))
    return b"data: " + text.encode() + b"\n\n"
