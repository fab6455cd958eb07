"""The builder: arguments as words, from YAML or from Python; each mistake is one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aanet.errors import AanetError, MissingExtraError
from aanet.web.settings import Settings

pytest.importorskip("ray.serve", reason="Ray is not installed (extra cluster)")

from aanet.cluster.service import app, build
from aanet.cluster.service_arguments import ServiceArguments

PAGE = Path(__file__).parents[2] / "docs" / "serving-cluster.md"


def test_words_and_values_mean_the_same() -> None:
    words = {"model": "sgbm, aanet", "replicas": "2", "threads": "3", "queue": "0", "timeout": "2.5"}
    words |= {"allowed_host": "a.example, *.b.example", "allow_origin": "https://a.example"}
    values = {"model": ["sgbm", "aanet"], "replicas": 2, "threads": 3, "queue": 0, "timeout": 2.5}
    values |= {"allowed_host": ["a.example", "*.b.example"], "allow_origin": ["https://a.example"]}
    assert ServiceArguments.parse(words) == ServiceArguments.parse(values)
    settings = ServiceArguments.parse({**words, "root_path": "/stereo"}).settings()
    assert settings.allowed_hosts == ("a.example", "*.b.example")
    assert (settings.allow_origins, settings.root_path) == (("https://a.example",), "/stereo")


def test_the_limits_are_those_of_aanet_serve() -> None:
    expected = Settings()
    settings = ServiceArguments.parse({"model": "sgbm"}).settings()
    for name in ("max_pixels", "max_upload_bytes", "queue", "timeout", "token", "isolate"):
        assert getattr(settings, name) == getattr(expected, name), name
    assert ServiceArguments.parse({"max_upload_mb": "0.2"}).settings().max_upload_bytes == 200_000


def test_only_a_token_lets_other_machines_in() -> None:
    closed, opened = (ServiceArguments.parse(given).settings() for given in ({}, {"token": "s3cret"}))
    assert (closed.local, closed.local_clients) == (True, True)
    assert (opened.local, opened.local_clients, opened.token) == (False, False, "s3cret")


def test_replicas_are_fixed_or_scale() -> None:
    fixed, scaling = ServiceArguments.parse({"replicas": 3}), ServiceArguments.parse({"max_replicas": 8})
    assert (fixed.scaling(), fixed.most_replicas) == ({"num_replicas": 3}, 3)
    assert scaling.scaling() == {
        "autoscaling_config": {"min_replicas": 1, "max_replicas": 8, "target_ongoing_requests": 1}
    }
    assert scaling.most_replicas == 8
    assert ServiceArguments.parse({}).scaling() == {"num_replicas": 1}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"replcas": "2"}, r"no argument 'replcas' \(did you mean 'replicas'\?\); known: model, .*timeout\."),
        ({"replicas": "two"}, r"The argument replicas has an invalid value: it should be a valid integer"),
        ({"replicas": 0}, r"The argument replicas .* greater than or equal to 1\."),
        ({"threads": 0}, r"The argument threads .* greater than or equal to 1\."),
        ({"timeout": "nan"}, r"The argument timeout .* finite number\."),
        ({"queue": -1}, r"The argument queue .*\."),
        ({"token": ""}, r"The argument token .*at least 1 character\."),
        ({"token": 5}, r"The argument token .* string\."),
        ({"model": []}, r"The argument model .*\."),
        ({"model": None}, r"The argument model .*\."),
        ({"replicas": 2, "max_replicas": 3}, r"replicas is for a fixed number"),
        ({"min_replicas": 2}, r"min_replicas needs max_replicas\."),
        ({"min_replicas": 3, "max_replicas": 2}, r"min_replicas is 3, .* max_replicas, 2\."),
        ({"model": "nothing.safetensors"}, r"nothing\.safetensors"),
        ({"model": "sgbm,sgbm"}, r"Two models have the same name"),
        ({"allowed_host": "https://a.example"}, r"is not a host name"),
        ({"allow_origin": "*"}, r"only if it has a token"),
        ({"root_path": "/api"}, r"one of the server's own"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: dict[str, Any], sentence: str) -> None:
    for function in (lambda: app(arguments), lambda: build(**arguments)):
        with pytest.raises(AanetError, match=sentence) as refusal:
            function()
        assert "\n" not in str(refusal.value)


def test_a_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aanet.web.protocol", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aanet\[web\]'"):
        build(model="sgbm")


@pytest.mark.slow
def test_serve_run_prints_the_sentence_alone() -> None:
    command = [sys.executable, "-m", "ray.serve.scripts", "run", "aanet.cluster.service:app", "threads=0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "The argument threads has an invalid value" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_token_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr("aanet.cluster.service.build", lambda **arguments: seen.append(arguments))
    monkeypatch.setenv("AANET_TOKEN", "s3cret")
    app({"model": "sgbm"})
    app({"token": "other"})
    assert seen == [{"token": "s3cret", "model": "sgbm"}, {"token": "other"}]


def test_no_statistics_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "unset below")
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED")
    app({"model": "sgbm"})
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_the_configuration_in_the_documentation_is_one() -> None:
    import yaml
    from ray.serve import Application
    from ray.serve.schema import ServeDeploySchema

    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    config = ServeDeploySchema.model_validate(yaml.safe_load(text))
    (application,) = config.applications
    assert application.import_path == "aanet.cluster.service:app"
    assert isinstance(app(application.args), Application)
    names = ["front", *(f"matcher-{name}" for name in ServiceArguments.parse(application.args).model)]
    assert {each.name for each in application.deployments} <= set(names)
