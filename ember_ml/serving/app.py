"""The web application: routes and their endpoints."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from ember_ml.serving.api_errors import ApiError, of_exception
from ember_ml.serving.formats import Format
from ember_ml.serving.guard import Guard
from ember_ml.serving.http import (
    Disconnected,
    EventStream,
    json_response,
    read_body,
    unless_disconnected,
    whole,
)
from ember_ml.serving.jobs import Job
from ember_ml.serving.language_service import LanguageService
from ember_ml.serving.predict_service import PredictService, to_json
from ember_ml.serving.schemas import ChatBody, CompletionBody, GenerationBody, PredictBody

Service = LanguageService | PredictService
Endpoint = Callable[[Request], Awaitable[Response]]
LONG_BODY = 1 << 14
"""Number of bytes from which on a body is converted to tokens in a thread."""
CLOSED_REQUEST = 499
"""Status for a client that has gone; nobody receives it."""


class ServerApp:
    """Endpoints of one model.

    Args:
        service: Completions or predictions of the model.
        token: Bearer token. None: no token is needed.
        hosts: Allowed host names. None: any.
    """

    def __init__(
        self,
        service: Service,
        token: str | None = None,
        hosts: Collection[str] | None = None,
    ) -> None:
        self.service = service
        self.created = int(time.time())
        self.is_draining = False
        inner = Starlette(
            routes=[
                Route(path, _with_errors(endpoint), methods=[method])
                for path, method, endpoint in self._routes()
            ],
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _http_error, Exception: _unexpected},
        )
        self.asgi = Guard(inner, token, hosts)

    def _routes(self) -> list[tuple[str, str, Endpoint]]:
        routes: list[tuple[str, str, Endpoint]] = [
            ("/health", "GET", self.health),
            ("/metrics", "GET", self.metrics),
            ("/v1/models", "GET", self.models),
            ("/v1/models/{name:path}", "GET", self.model),
        ]
        if isinstance(self.service, PredictService):
            return [*routes, ("/predict", "POST", self.predict)]
        routes += [("/", "GET", self.page), ("/v1/completions", "POST", self.completions)]
        if self.service.has_chat:
            routes.append(("/v1/chat/completions", "POST", self.chat))
        return routes

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        service = self.service
        if isinstance(service, PredictService):
            await service.start()
            yield
            await service.pipeline.aclose(drain=False)
        else:
            async with service.engine:
                yield

    async def drain(self, timeout: float) -> None:
        """Finish what runs, and refuse everything else.

        Args:
            timeout: Seconds after which the rest fails.
        """
        self.is_draining = True
        if isinstance(self.service, PredictService):
            await self.service.pipeline.aclose(drain=True, timeout=timeout)
            return
        self.service.engine.drain()
        if not await self.service.engine.wait_idle(timeout):
            await self.service.engine.aclose(timeout=1.0)

    async def health(self, _: Request) -> Response:
        """Return whether the server works and accepts requests."""
        service = self.service
        if self.is_draining:
            return json_response({"status": "shutting down"}, 503)
        is_healthy = (
            service.pipeline.healthy
            if isinstance(service, PredictService)
            else service.engine.is_healthy
        )
        return json_response(
            {"status": "ok" if is_healthy else "failed"}, 200 if is_healthy else 503
        )

    async def metrics(self, _: Request) -> Response:
        """Return the measurements in the text format of Prometheus."""
        service = self.service
        if isinstance(service, PredictService):
            text = service.pipeline.stats().metrics("ember_predict")
        else:
            text = service.engine.counts.metrics()
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def models(self, _: Request) -> Response:
        """Return the model, in a list."""
        return json_response({"object": "list", "data": [self._entry()]})

    async def model(self, request: Request) -> Response:
        """Return the model of a name."""
        self._check_name(request.path_params["name"])
        return json_response(self._entry())

    def _entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "id": self.service.name,
            "object": "model",
            "created": self.created,
            "owned_by": "ember",
        }
        if isinstance(self.service, LanguageService):
            entry["max_length"] = self.service.engine.max_length
        return entry

    async def page(self, _: Request) -> Response:
        """Return the page to try a prompt."""
        return HTMLResponse(_page(), headers={"Content-Security-Policy": _POLICY})

    async def completions(self, request: Request) -> Response:
        """Complete prompts."""
        assert isinstance(self.service, LanguageService)
        body = await self._body(request, CompletionBody)
        return await self._generate(request, body, self.service.completion)

    async def chat(self, request: Request) -> Response:
        """Continue a chat."""
        assert isinstance(self.service, LanguageService)
        body = await self._body(request, ChatBody)
        return await self._generate(request, body, self.service.chat)

    async def predict(self, request: Request) -> Response:
        """Return predictions."""
        assert isinstance(self.service, PredictService)
        body = await self._body(request, PredictBody)
        work = self.service.predict(body.inputs)
        predictions = to_json(await unless_disconnected(request.receive, work))
        head = json_response({"model": self.service.name}).body
        content = bytes(head)[:-1] + b',"predictions":' + predictions + b"}"
        return Response(content, media_type="application/json")

    async def _body(self, request: Request, schema: Any) -> Any:
        if self.is_draining:
            raise ApiError(503, "the server is shutting down", "shutting_down")
        body = await read_body(request, schema, self.service.limits.body_bytes)
        if body.model is not None:
            self._check_name(body.model)
        return body

    def _check_name(self, name: str) -> None:
        if name != self.service.name:
            message = f"there is no model {name!r:.80}; this server has {self.service.name!r}"
            raise ApiError(404, message, "model_not_found", "model")

    async def _generate(
        self,
        request: Request,
        body: GenerationBody,
        prepare: Callable[[Any], tuple[Job, Format]],
    ) -> Response:
        # the tokenizer needs a second for megabytes of text, in which the event loop must go on
        is_long = int(request.headers.get("content-length", LONG_BODY)) >= LONG_BODY
        job, form = await asyncio.to_thread(prepare, body) if is_long else prepare(body)
        job.submit()
        if body.stream:
            options = body.stream_options
            return EventStream(job, form, options is not None and options.include_usage)
        try:
            return await unless_disconnected(request.receive, whole(job, form))
        finally:
            job.cancel()


def _with_errors(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose errors are responses in the shape of OpenAI's API."""

    @functools.wraps(endpoint)
    async def run(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ApiError as error:
            return error.response()
        except Disconnected:
            return Response(status_code=CLOSED_REQUEST)

    return run


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return ApiError(error.status_code, str(error.detail), "http_error").response()


async def _unexpected(_: Request, error: Exception) -> Response:
    return of_exception(error).response()


_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@functools.cache
def _page() -> str:
    return (resources.files("ember_ml.serving") / "page.html").read_text(encoding="utf-8")
