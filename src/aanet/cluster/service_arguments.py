"""The arguments of the application for Ray Serve: words of a command line (`queue=8`), YAML or Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from aanet.errors import InputError, did_you_mean
from aanet.models.weights import files
from aanet.web.settings import MEGABYTE, Settings

_LIMITS = Settings()
_MAX_REPLICAS = 1000  # each of them has a thread in the front
_MAX_THREADS = 1024


class ServiceArguments(BaseModel):
    """What `serve run aanet.cluster.service:app` takes.

    Attributes:
        model: Names of bundled weights, weight files or "sgbm", with commas between them; the first is the
            default one of the API.
        network_spec: How to feed and read those of the models that are foreign networks; a TOML file on every
            host, or the name of a ready-made spec.
        replicas: Number of replicas of each model; None for one, or for autoscaling.
        min_replicas: Minimum number of replicas of each model, with autoscaling.
        max_replicas: Maximum number of replicas of each model; Ray Serve then chooses the number by the load.
        threads: Threads of each replica, for which Ray reserves as many processors.
        token: The token that every request must send; None to accept only clients on the same machine.
        allowed_host: Host names for which requests are accepted, in addition to those of the machine, with
            commas between them. If empty, every name with a token, and none without one.
        allow_origin: Origins of other sites whose pages may use the API, with commas between them.
        root_path: The path under which a reverse proxy offers the service, before the route prefix.
        max_pixels: Maximum number of pixels of an image at the scale at which it is matched.
        max_upload_mb: Maximum size of a request in megabytes.
        queue: Maximum number of requests per model that wait while all replicas are busy.
        timeout: Maximum seconds from the first byte of a request to its response.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: tuple[str, ...] = Field(default_factory=lambda: tuple(files.bundled_names()[:1]), min_length=1)
    network_spec: str | None = Field(None, min_length=1)
    replicas: int | None = Field(None, ge=1, le=_MAX_REPLICAS)
    min_replicas: int | None = Field(None, ge=1, le=_MAX_REPLICAS)
    max_replicas: int | None = Field(None, ge=1, le=_MAX_REPLICAS)
    threads: int = Field(1, ge=1, le=_MAX_THREADS)
    token: str | None = Field(None, min_length=1)
    allowed_host: tuple[str, ...] = ()
    allow_origin: tuple[str, ...] = ()
    root_path: str = ""
    max_pixels: int = Field(_LIMITS.max_pixels, ge=1)
    max_upload_mb: float = Field(_LIMITS.max_upload_bytes / MEGABYTE, ge=0.001, allow_inf_nan=False)
    queue: int = Field(_LIMITS.queue, ge=0)
    timeout: float = Field(_LIMITS.timeout, ge=0.1, allow_inf_nan=False)

    @field_validator("model", "allowed_host", "allow_origin", mode="before")
    @classmethod
    def _separate(cls, value: object) -> object:
        return tuple(word.strip() for word in value.split(",")) if isinstance(value, str) else value

    @classmethod
    def parse(cls, arguments: Mapping[str, Any]) -> ServiceArguments:
        """Check the arguments; raises `InputError`."""
        for name in arguments:
            if name not in cls.model_fields:
                known = ", ".join(cls.model_fields)
                close = did_you_mean(name, cls.model_fields)
                raise InputError(f"The service has no argument {name!r}{close}; known: {known}.")
        try:
            parsed = cls.model_validate(dict(arguments))
        except ValidationError as error:
            first = error.errors()[0]
            reason = str(first["msg"]).replace("Input", "it", 1)
            raise InputError(f"The argument {first['loc'][0]} has an invalid value: {reason}.") from None
        parsed._check_bounds()
        return parsed

    def _check_bounds(self) -> None:
        if self.replicas is not None and (self.min_replicas or self.max_replicas):
            raise InputError(
                "The argument replicas is for a fixed number and excludes min_replicas and max_replicas."
            )
        if self.min_replicas is not None and self.max_replicas is None:
            raise InputError("The argument min_replicas needs max_replicas.")
        if self.max_replicas is not None and (self.min_replicas or 1) > self.max_replicas:
            raise InputError(
                f"min_replicas is {self.min_replicas}, which is more than max_replicas, {self.max_replicas}."
            )

    @property
    def most_replicas(self) -> int:
        """The maximum number of replicas of each model."""
        return self.max_replicas or self.replicas or 1

    def scaling(self) -> dict[str, Any]:
        """Return the number of replicas as options of a deployment."""
        if self.max_replicas is None:
            return {"num_replicas": self.most_replicas}
        bounds = {"min_replicas": self.min_replicas or 1, "max_replicas": self.max_replicas}
        # A replica matches one pair at a time, so that every further request is work for another replica.
        return {"autoscaling_config": {**bounds, "target_ongoing_requests": 1}}

    def settings(self) -> Settings:
        """Return the settings of the application."""
        return Settings(
            models=self.model,
            network_spec=self.network_spec,
            token=self.token,
            allowed_hosts=self.allowed_host,
            allow_origins=self.allow_origin,
            root_path=self.root_path,
            max_pixels=self.max_pixels,
            max_upload_bytes=round(self.max_upload_mb * MEGABYTE),
            queue=self.queue,
            timeout=self.timeout,
            local=self.token is None,
            local_clients=self.token is None,
            open_at_once=False,
        )
