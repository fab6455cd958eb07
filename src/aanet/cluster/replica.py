"""A matcher as a deployment of Ray Serve: the replicas, and what hands pairs to them.

A replica is an actor of Ray with the same child process that `aanet serve` has. A pair that crashes a matcher
costs the child process and is answered with an error, as there; it never takes down one replica after the
other. A replica or a node that dies costs nothing: matching has no effects, so that another replica can
repeat it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ray import serve
from ray.exceptions import ObjectLostError, RayActorError
from ray.serve.exceptions import DeploymentUnavailableError

from aanet.errors import AanetError
from aanet.web.child import OPEN_SECONDS
from aanet.web.errors import ServiceError
from aanet.web.matching import Facts, Matched, MatchRequest
from aanet.web.models import ServedModel
from aanet.web.settings import Settings
from aanet.web.uploads import UploadedPair

log = logging.getLogger("aanet.web")

ATTEMPTS = 3  # replicas that may die with the same pair before it is refused
_LOST = (RayActorError, ObjectLostError)  # the replica, or its node with the result


class Outcome(NamedTuple):
    """What a replica returns: the result, or the arguments of a `ServiceError`, or nothing in time.

    Errors are not raised, because Ray would wrap them and write a traceback for each to its log.
    """

    matched: Matched | None = None
    error: dict[str, Any] | None = None


class Replica:
    """One matcher, which matches one pair at a time."""

    def __init__(self, name: str, source: str, settings: Settings, threads: int) -> None:
        # For the child process; OpenCV does not read the first one.
        os.environ.update(OMP_NUM_THREADS=str(threads), OPENCV_FOR_THREADS_NUM=str(threads))
        os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(settings.max_pixels))
        self._start = partial(ServedModel, name, source, settings)
        self._model = self._start()
        self._facts = self._model.matching.open()

    async def facts(self) -> Facts:
        """Return what is known about the open matcher."""
        return self._facts

    async def match(self, pair: UploadedPair, request: MatchRequest, seconds: float) -> Outcome:
        """Decode, match and encode a pair within some seconds; stops if the call is canceled."""
        model, deadline = self._model, time.monotonic() + seconds
        work = partial(_match, model, pair, request, deadline)
        try:
            return await asyncio.get_running_loop().run_in_executor(model.worker.threads, work)
        except asyncio.CancelledError:  # its time was up before that which was left when it was sent
            self._model = self._start()
            self._model.worker.threads.submit(self._model.open_again)  # before the next request comes
            model.matching.close()
            raise


def _match(model: ServedModel, pair: UploadedPair, request: MatchRequest, deadline: float) -> Outcome:
    try:
        return Outcome(model.match(pair, request, deadline, time.perf_counter()))
    except ServiceError as error:
        return Outcome(error=error.as_dict())
    except TimeoutError:
        return Outcome()


def deployment_name(model: str) -> str:
    """Return the name of the deployment with the replicas of a model."""
    return f"matcher-{model.replace('#', '-')}"  # Ray Serve reserves the character


class Replicas:
    """The `Matching` of a front: the replicas of a model, wherever they run."""

    memory = 0  # that of other machines; Ray has metrics of it

    def __init__(
        self, name: str, source: str, max_pixels: int, *, at_once: int, network_spec: str | None = None
    ) -> None:
        del source, max_pixels, network_spec  # which the replicas know
        self.at_once = at_once
        self._name = name
        self._handle = serve.get_deployment_handle(deployment_name(name))
        self._facts: Facts | None = None

    @property
    def is_open(self) -> bool:
        """See `Matching`."""
        return self._facts is not None

    def open(self) -> Facts:
        """See `Matching`; waits for the first replica."""
        if self._facts is None:
            try:
                facts: Facts = self._call(
                    lambda _: self._handle.facts.remote(), time.monotonic() + OPEN_SECONDS
                )
            except TimeoutError:
                message = f"{self._name} had no replica within {OPEN_SECONDS:g} seconds."
                raise AanetError(message) from None
            self._facts = facts
        return self._facts

    def match(self, pair: UploadedPair, request: MatchRequest, deadline: float) -> Matched:
        """See `Matching`; at the deadline the replica stops and `TimeoutError` is raised."""
        outcome: Outcome = self._call(
            lambda seconds: self._handle.match.remote(pair, request, seconds), deadline
        )
        if outcome.error is not None:
            raise ServiceError(**outcome.error)
        if outcome.matched is None:
            raise TimeoutError
        return outcome.matched

    def close(self) -> None:
        """See `Matching`; the replicas belong to Ray Serve."""

    def _call(self, call: Callable[[float], Any], deadline: float) -> Any:
        """Call a replica with the seconds that are left, and another one if that replica dies.

        Args:
            call: Makes the `DeploymentResponse`.
            deadline: A time of `time.monotonic`.
        """
        for _ in range(ATTEMPTS):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            response = call(remaining)
            try:
                return response.result(timeout_s=remaining)
            except TimeoutError:
                response.cancel()
                raise
            except _LOST as error:
                log.warning("a replica of %s was lost: %s", self._name, str(error).splitlines()[0])
            except DeploymentUnavailableError:
                raise AanetError(f"The replicas of {self._name} cannot be started.") from None
        log.error("%d replicas of %s were lost with one pair", ATTEMPTS, self._name)
        message = "The matcher failed on this pair and was started again."
        raise ServiceError(500, "matcher_failed", message)
