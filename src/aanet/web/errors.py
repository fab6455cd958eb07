"""Error responses, which all have the same form: a code for programs and a sentence for people."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aanet.errors import AanetError, MissingExtraError, OptionError, WriteError

if TYPE_CHECKING:  # child processes raise these errors without the framework
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException

log = logging.getLogger("aanet.web")

MAX_RETRY_AFTER = 60  # seconds
# What the HTTP API calls the options that an error names; the page replaces these words by its own (api.js).
_OPTIONS = {
    "calibration": "the part calib",
    "check": "check=true",
    "second_file": "the part calib_right",
    "unit": "unit=mm, cm or m",
    "rectified": "rectified=true",
    "resized": "resized=true",
}
_CODES = {404: "not_found", 405: "method_not_allowed"}


class ServiceError(Exception):
    """An error response; its message never contains a path or a traceback."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        message = message.encode("utf-8", "replace").decode()  # a file may contain surrogates
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = dict(headers or {})

    def response(self) -> JSONResponse:
        """Return the HTTP response."""
        from fastapi.responses import JSONResponse

        content = {"code": self.code, "message": self.message}
        return JSONResponse(content, self.status, headers=self.headers)

    def as_dict(self) -> dict[str, Any]:
        """Return the arguments that make the same error in another process."""
        return vars(self).copy()


def busy(code: str, message: str, retry_after: int) -> ServiceError:
    """Return a 503: the same request may succeed in `retry_after` seconds."""
    return ServiceError(503, code, message, {"Retry-After": str(retry_after)})


def stopping() -> ServiceError:
    """Return the 503 of a server that is stopping."""
    return busy("stopping", "The server is stopping and accepts no more requests.", MAX_RETRY_AFTER)


def unusable(code: str, message: str) -> ServiceError:
    """Return a 422: the request was understood but cannot be processed."""
    return ServiceError(422, code, message)


def internal() -> ServiceError:
    """Return a 500; the details are only in the server's log."""
    return ServiceError(500, "internal", "An internal error occurred; see the server's log.")


def refused(code: str, error: AanetError) -> ServiceError:
    """Return the response to an error of the package: 422, or 500 if no other request would avoid it."""
    if isinstance(error, MissingExtraError | WriteError):
        log.error("the server is not set up correctly", exc_info=error)
        return internal()
    return unusable(code, error.worded(_OPTIONS) if isinstance(error, OptionError) else str(error))


def add_error_handlers(app: FastAPI) -> None:
    """Give all errors of the application and of the framework the same form."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

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
        return unusable("wrong_parameter", f"The parameter {name} has an invalid value: {reason}.").response()
