"""A response that is sent in pieces, in limited time, while its slot in the queue is still held."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from contextlib import ExitStack

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from aanet.web.formats import Encoded

_PIECE = 1 << 17  # bytes; between two pieces the server waits until the client has taken the first


class MatchResponse(Response):
    """Frees what `held` holds when the last byte is on its way or the deadline has passed.

    A client that asks for much and reads nothing thus cannot make results pile up in memory.
    """

    def __init__(
        self, encoded: Encoded, headers: Mapping[str, str], deadline: float, held: ExitStack
    ) -> None:
        name = f'attachment; filename="{encoded.file_name}"'
        super().__init__(
            encoded.data, headers={**headers, "Content-Disposition": name}, media_type=encoded.media_type
        )
        self._deadline = deadline
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        del scope, receive
        remaining = self._deadline - asyncio.get_running_loop().time()
        # Whoever has not taken it by then is cut off: uvicorn closes a connection whose response has no end.
        with self._held, contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._send_pieces(send), max(remaining, 1.0))

    async def _send_pieces(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        for start in range(0, len(body), _PIECE):
            piece = bytes(body[start : start + _PIECE])
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
