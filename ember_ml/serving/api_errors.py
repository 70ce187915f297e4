"""Errors in the shape of OpenAI's API."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError
from starlette.responses import Response

from ember_ml._core.errors import EmberError
from ember_ml.serving.errors import DeadlineExceeded, EngineError, Overloaded, PipelineClosed

RETRY_AFTER = "1"
"""Seconds after which a client should try again."""


class ApiError(Exception):
    """Error that a client receives.

    Args:
        status: HTTP status.
        message: What was wrong, and what is right.
        code: Short name of the error.
        param: Field of the body that is wrong.
        kind: Type in OpenAI's API.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        param: str | None = None,
        kind: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.kind = kind or ("invalid_request_error" if status < 500 else "server_error")

    def to_dict(self) -> dict[str, Any]:
        """Return the body of the response."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        }

    def response(self) -> Response:
        """Return the response."""
        headers = {}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status == 503:
            headers["Retry-After"] = RETRY_AFTER
        content = json.dumps(self.to_dict()).encode()
        return Response(content, self.status, headers, media_type="application/json")


def invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Return the error for a wrong request: status 400.

    Args:
        message: What was wrong.
        param: Field that is wrong.
        code: Short name of the error.
    """
    return ApiError(400, message, code, param)


def of_exception(error: Exception) -> ApiError:
    """Return what a client receives for an error of the engine or of a pipeline.

    Args:
        error: The error.
    """
    if isinstance(error, ApiError):
        return error
    if isinstance(error, Overloaded):
        return ApiError(503, str(error), "overloaded", kind="overloaded_error")
    if isinstance(error, PipelineClosed):
        return ApiError(503, str(error), "shutting_down")
    if isinstance(error, DeadlineExceeded):
        return ApiError(504, str(error), "timeout", kind="timeout_error")
    if isinstance(error, EngineError):
        return ApiError(500, f"the computation failed: {error}", "engine_error")
    if isinstance(error, EmberError):
        return ApiError(500, str(error), "model_error")
    return ApiError(500, f"internal error: {type(error).__name__}", "internal_error")


def of_validation(error: ValidationError) -> ApiError:
    """Return the error for a body that does not fit its schema, which names the first field.

    Args:
        error: Error of pydantic.
    """
    found = min(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in found["loc"])
    if found["type"] == "json_invalid":
        return invalid(f"the body is not valid JSON: {found['msg']}", code="invalid_json")
    if found["type"] == "extra_forbidden":
        return invalid(f"unknown field {place!r}", place, "unknown_field")
    name = str(found["loc"][0]) if found["loc"] else None
    given = "" if found["type"] == "missing" else f", not {found['input']!r:.60}"
    if name in _UNIONS:
        return invalid(f"{name}: must be {_UNIONS[name]}{given}", name, "invalid_value")
    return invalid(f"{place or 'the body'}: {found['msg']}{given}", name, "invalid_value")


_UNIONS = {
    "prompt": "a text, a list of token ids, or a list of texts or of lists of token ids",
    "stop": "a text, or a list of at most 16 texts",
}
"""Fields of several types: pydantic reports an error for each type."""
