"""The web page and the HTTP API of `aanet serve` on a Ray cluster, as an application of Ray Serve.

    serve run aanet.cluster.service:app model=aanet_fast replicas=2

The application has one front, which is that of `aanet serve`: uploads, checks, limits, errors and the page.
It hands the pairs to replicas; each model is a deployment of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from ray import serve

from aanet.cluster.replica import Replica, Replicas, deployment_name
from aanet.cluster.service_arguments import ServiceArguments
from aanet.errors import AanetError, InputError, MissingExtraError
from aanet.web.models import named_models
from aanet.web.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI
    from ray.serve import Application

_EXTRA_SECONDS = 5.0  # more than a request may take, until a replica that is stopped is killed


class BuildError(InputError, click.ClickException):
    """The application cannot be built; `serve run` prints the sentence alone and exits with code 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        click.ClickException.__init__(self, message)


def app(arguments: dict[str, Any]) -> Application:
    """Build the application; what `serve run` and the configuration files of Ray Serve name.

    Args:
        arguments: Those of `ServiceArguments`. The environment variable AANET_TOKEN takes the place of
            `token`.
    """
    # Read when Ray starts, which `serve run` does afterwards; this package sends no statistics to anyone.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    token = os.environ.get("AANET_TOKEN")
    try:
        return build(**{**({"token": token} if token else {}), **arguments})
    except AanetError as error:
        raise BuildError(str(error)) from None


def build(**arguments: Any) -> Application:
    """Build the application, for `ray.serve.run`; the arguments are those of `ServiceArguments`.

    Raises:
        AanetError: If an argument is wrong or a model does not exist.
    """
    try:
        from aanet.web.protocol import MAX_CONNECTIONS
    except ModuleNotFoundError as error:
        message = f"The service needs the package {error.name}; install it with pip install 'aanet[web]'."
        raise MissingExtraError(message) from None
    parsed = ServiceArguments.parse(arguments)
    settings = parsed.settings()
    of_replicas = Settings(max_pixels=settings.max_pixels, network_spec=settings.network_spec)
    matchers = [
        serve.deployment(
            name=deployment_name(name),
            max_ongoing_requests=1,
            graceful_shutdown_timeout_s=settings.timeout + _EXTRA_SECONDS,
            ray_actor_options={"num_cpus": parsed.threads},
            **parsed.scaling(),
        )(Replica).bind(name, source, of_replicas, parsed.threads)
        for name, source in named_models(settings.models).items()
    ]
    front = serve.deployment(
        name="front",
        max_ongoing_requests=MAX_CONNECTIONS,
        max_queued_requests=MAX_CONNECTIONS,  # in each proxy, for example while the front is started again
        graceful_shutdown_timeout_s=settings.timeout + _EXTRA_SECONDS,
        ray_actor_options={"num_cpus": 0},  # it waits most of the time
    )
    return front(serve.ingress(_creator(settings, parsed.most_replicas))()).bind(*matchers)


def _creator(settings: Settings, replicas: int) -> Callable[[], FastAPI]:
    """Return a function that creates the application of a front; Ray calls it in the front's process."""

    def create() -> FastAPI:
        from aanet.web.app import create_app

        created = create_app(settings, start=partial(Replicas, at_once=replicas))
        # A front is ready when its default model is. Not in this thread, in which an event loop runs.
        with ThreadPoolExecutor(1) as waiting:
            waiting.submit(created.state.service.catalog.default.open).result()
        return created

    return create
