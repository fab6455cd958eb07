"""Errors of the package become HTTP status codes by their kind."""

from __future__ import annotations

import pytest

from aanet.errors import (
    AanetError,
    InputError,
    MissingExtraError,
    ReadError,
    UnsupportedError,
    WriteError,
)
from aanet.web.errors import refused


@pytest.mark.parametrize("kind", [InputError, ReadError, UnsupportedError])
def test_an_error_that_another_request_avoids_is_422_with_its_message(kind: type[AanetError]) -> None:
    response = refused("some_code", kind("The images are too small."))
    assert (response.status, response.code, response.message) == (
        422,
        "some_code",
        "The images are too small.",
    )


@pytest.mark.parametrize("kind", [MissingExtraError, WriteError])
def test_an_error_of_the_installation_is_500_and_only_logged(
    kind: type[AanetError], caplog: pytest.LogCaptureFixture
) -> None:
    response = refused("some_code", kind("/srv/secret is full."))
    assert (response.status, response.code) == (500, "internal")
    assert "secret" not in response.message
    assert "/srv/secret is full." in caplog.text
