"""A reverse proxy that offers a server under a path, and tells it nothing about that."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

_OWN_HEADERS = {
    "host",
    "connection",
    "transfer-encoding",
    "content-encoding",
    "content-length",
    "date",
    "server",
}


@contextmanager
def prefix_proxy(target: str, prefix: str) -> Iterator[str]:
    """Forward `prefix` + path to `target` + path, and nothing else; the address of the proxied page."""

    class Handler(BaseHTTPRequestHandler):
        def forward(self) -> None:
            if not self.path.startswith(prefix):
                self.send_error(404)
                return
            length = int(self.headers.get("Content-Length", 0))
            answer = httpx.request(
                self.command,
                target + self.path.removeprefix(prefix),
                content=self.rfile.read(length),
                headers={
                    name: value for name, value in self.headers.items() if name.lower() not in _OWN_HEADERS
                },
                timeout=60,
                trust_env=False,
            )
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name not in _OWN_HEADERS:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def do_GET(self) -> None:
            self.forward()

        def do_POST(self) -> None:
            self.forward()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}{prefix}"
        finally:
            proxy.shutdown()
            thread.join()
