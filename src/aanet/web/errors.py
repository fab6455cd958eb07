"""The one shape of every error response: a code for programs and one plain sentence for people."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

log = logging.getLogger("aanet.web")

_CODES = {404: "not_found", 405: "method_not_allowed"}


class ServiceError(Exception):
    """A request that cannot be answered as asked; never carries a path or a traceback."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = dict(headers or {})

    def response(self) -> JSONResponse:
        """The response that says so."""
        content = {"code": self.code, "message": self.message}
        return JSONResponse(content, self.status, headers=self.headers)


def busy(code: str, message: str, retry_after: int) -> ServiceError:
    """503: the same request may succeed in `retry_after` seconds."""
    return ServiceError(503, code, message, {"Retry-After": str(retry_after)})


def unusable(code: str, message: str) -> ServiceError:
    """422: what was sent can be read, but not used."""
    return ServiceError(422, code, message)


def answer_in_one_shape(app: FastAPI) -> None:
    """Give every error of the application, also those of the framework, the same shape."""

    @app.exception_handler(ServiceError)
    async def _service(_: Request, error: ServiceError) -> JSONResponse:
        return error.response()

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        code = _CODES.get(error.status_code, "bad_request")
        message = f"{request.method} {request.url.path[:80]}: {str(error.detail).rstrip('.').lower()}."
        return ServiceError(error.status_code, code, message, error.headers).response()

    @app.exception_handler(RequestValidationError)
    async def _query(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        name = first["loc"][-1]
        reason = str(first["msg"]).replace("Input", "it", 1)
        return unusable("wrong_parameter", f"The parameter {name} has a wrong value: {reason}.").response()

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        message = "Something went wrong inside the server; its log says what."
        return ServiceError(500, "internal", message).response()
