"""The application for Ray Serve, in a real Ray on this machine: two replicas, and what happens when one dies.

What it has in common with `aanet serve` is tested in `tests/web`, with both kinds of servers.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from helpers.pairs import whole, window
from helpers.ray_server import COMMAND, processes, replicas, require_ray
from helpers.server import Server, start_server

pytestmark = pytest.mark.slow

PAIR = window(180, 200, 200, 120)
SLOW = {"scale": 1.8, "format": "disparity.npy"}  # the whole pair takes some seconds
PATIENCE = 60.0  # seconds


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Two replicas, and room for two requests more."""
    require_ray()
    started = start_server("--model", "sgbm", "--replicas", "2", "--queue", "2", command=COMMAND)
    children = psutil.Process(started.process.pid).children(recursive=True)
    yield started
    errors = started.stop()
    assert "Traceback" not in errors, errors
    assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []


@pytest.fixture(scope="module")
def local() -> Iterator[Server]:
    """`aanet serve`, to compare with."""
    started = start_server("--model", "sgbm")
    yield started
    started.stop()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def answered(server: Server, status: int) -> float:
    wanted = f'aanet_responses_total{{method="POST",status="{status}"}} '
    lines = server.get("/metrics").text.splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith(wanted))


def both_busy(server: Server, clients: ThreadPoolExecutor) -> list[object]:
    """Send two requests that take some seconds, and wait until each replica works on one."""
    asked = [clients.submit(server.match, whole(), **SLOW) for _ in range(2)]
    wait_until(lambda: server.taken() == 2)
    before = [_seconds(each) for each in replicas(server)]
    wait_until(lambda: all(_seconds(r) > b + 0.3 for r, b in zip(replicas(server), before, strict=True)))
    assert not any(each.done() for each in asked)  # otherwise the test would show nothing
    return asked


def _seconds(replica: psutil.Process) -> float:
    """Processor time of the matcher, which is the child of a replica."""
    return sum(each.cpu_times().user for each in replica.children())


def test_the_bytes_are_those_of_aanet_serve(server: Server, local: Server) -> None:
    for wanted in ("disparity.npy", "color", "arrays", "ply", "depth"):
        here, there = (each.match(PAIR, format=wanted, check=True) for each in (local, server))
        assert (here.status_code, there.status_code) == (200, 200), there.text
        assert here.content == there.content
        added = {"x-request-id", "server"}  # by Ray Serve
        assert set(there.headers) - added == set(here.headers) - added
    for path in ("/", "/static/icon.svg", "/api/v1/openapi.json"):
        assert server.get(path).content == local.get(path).content


@pytest.mark.extended
def test_a_replica_that_is_killed_under_load_is_not_noticed(server: Server) -> None:
    expected = server.match(PAIR, format="disparity.npy").content
    before, killed = answered(server, 200), replicas(server)[0]
    with ThreadPoolExecutor(4) as clients:
        asked = [clients.submit(server.match, PAIR, format="disparity.npy") for _ in range(60)]
        wait_until(lambda: sum(each.done() for each in asked) >= 10)
        killed.kill()
        responses = [each.result() for each in asked]
    assert [each.status_code for each in responses] == [200] * 60
    assert all(each.content == expected for each in responses)
    assert answered(server, 200) == before + 60  # each of them once
    wait_until(lambda: len(replicas(server)) == 2)
    assert killed.pid not in [each.pid for each in replicas(server)]


@pytest.mark.extended
def test_a_pair_on_a_replica_that_dies_is_matched_by_another(server: Server) -> None:
    expected = server.match(whole(), **SLOW).content
    with ThreadPoolExecutor(2) as clients:
        asked = both_busy(server, clients)
        replicas(server)[0].kill()
        responses = [each.result() for each in asked]
    assert [each.status_code for each in responses] == [200, 200]
    assert all(each.content == expected for each in responses)
    wait_until(lambda: len(replicas(server)) == 2)


def test_a_matcher_that_crashes_costs_its_request_and_not_the_replica(server: Server) -> None:
    before = {each.pid for each in replicas(server)}
    with ThreadPoolExecutor(2) as clients:
        asked = both_busy(server, clients)
        for child in replicas(server)[0].children():
            child.kill()
        responses = [each.result() for each in asked]
    assert sorted(each.status_code for each in responses) == [200, 500]
    (failed,) = (each.json() for each in responses if each.status_code == 500)
    assert failed["code"] == "matcher_failed"
    assert [server.match(PAIR).status_code for _ in range(4)] == [200] * 4
    assert {each.pid for each in replicas(server)} == before


def test_a_full_service_refuses_and_a_client_that_leaves_frees_its_slot(server: Server) -> None:
    (model,) = server.get("/api/v1/models").json()["models"]
    assert model["slots"] == 4
    with ThreadPoolExecutor(3) as clients:
        asked = both_busy(server, clients)
        waiting = clients.submit(server.match, PAIR)
        wait_until(lambda: server.taken() == 3)
        with connection(server) as raw:
            raw.sendall(
                b"POST /api/v1/disparity HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n"
                b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b"
            )
            wait_until(lambda: server.taken() == 4)
            full = server.match(PAIR)
            assert (full.status_code, full.json()["code"]) == (503, "full")
            assert int(full.headers["Retry-After"]) >= 1
        wait_until(lambda: server.taken() < 4)
        assert [each.result().status_code for each in (*asked, waiting)] == [200] * 3
    wait_until(lambda: server.taken() == 0)


def connection(server: Server) -> socket.socket:
    host, port = server.url.removeprefix("http://").rstrip("/").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


@pytest.mark.extended
def test_a_front_that_dies_comes_back(server: Server) -> None:
    (front,) = processes(server, "front")
    front.kill()

    def is_back() -> bool:
        try:
            return server.get("/readyz").status_code == 200 and processes(server, "front") != [front]
        except httpx.TransportError:
            return False

    wait_until(is_back)
    assert server.match(PAIR).status_code == 200


CONFIGURATION = """
applications:
  - name: stereo
    route_prefix: /stereo
    import_path: aanet.cluster.service:app
    args: {model: sgbm, max_replicas: 2, allowed_host: a.example, allow_origin: "https://app.example.com"}
    deployments:
      - name: matcher-sgbm
        autoscaling_config:
          max_replicas: 2
          target_ongoing_requests: 1
          upscale_delay_s: 1
          look_back_period_s: 2
"""


@pytest.mark.extended
def test_replicas_are_added_under_load(tmp_path: Path) -> None:
    require_ray()
    (tmp_path / "serve.yaml").write_text(CONFIGURATION)
    server = start_server("--config", str(tmp_path / "serve.yaml"), command=COMMAND)
    try:
        check_prefix_and_origin(server)
        server.url += "stereo/"
        assert len(replicas(server)) == 1
        with ThreadPoolExecutor(4) as clients:
            end = time.monotonic() + PATIENCE

            def keep_asking() -> set[int]:
                statuses = set()
                while len(replicas(server)) < 2 and time.monotonic() < end:
                    statuses.add(server.match(PAIR, scale=2).status_code)
                return statuses

            asked = [clients.submit(keep_asking) for _ in range(4)]
            assert set().union(*(each.result() for each in asked)) == {200}
        assert len(replicas(server)) == 2
    finally:
        server.stop()


def check_prefix_and_origin(server: Server) -> None:
    headers = {"Host": "a.example", "Origin": "https://app.example.com"}
    for path in ("/stereo/", "/stereo/docs", "/stereo/static/icon.svg", "/stereo/healthz"):
        response = server.get(path, headers=headers)
        assert response.status_code == 200, path
        assert response.headers["Access-Control-Allow-Origin"] == "https://app.example.com"
    assert server.get("/stereo").headers["Location"] == "/stereo/"
    assert server.get("/stereo/api/v1/openapi.json").json()["servers"][0]["url"] == "/stereo"


def test_foreign_hosts_and_pages_are_refused(server: Server) -> None:
    wrong = server.get("/api/v1/models", headers={"Host": "evil.example"})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "wrong_host")
    foreign = httpx.post(
        f"{server.api}/disparity", headers={"Origin": "https://evil.example"}, timeout=20, trust_env=False
    )
    assert (foreign.status_code, foreign.json()["code"]) == (403, "foreign_origin")
    elsewhere = server.get("/api/v1/models", headers={"X-Forwarded-For": "192.0.2.1"})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (403, "foreign_client")
