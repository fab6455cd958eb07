"""A response that is sent in chunks, within a deadline, while its slot in the queue is still held."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import ExitStack

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from aanet.web.matching import Matched

_CHUNK = 1 << 17  # bytes; the server waits until the client has received a chunk before it sends the next


class MatchResponse(Response):
    """Closes `held` when the last byte has been sent or the deadline has passed.

    Clients that send requests but do not read the responses therefore cannot fill the memory with results.
    """

    def __init__(self, matched: Matched, deadline: float, held: ExitStack) -> None:
        name = f'attachment; filename="{matched.file_name}"'
        headers = {**matched.headers, "Content-Disposition": name}
        super().__init__(matched.data, headers=headers, media_type=matched.media_type)
        self._deadline = deadline
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        del scope, receive
        remaining = self._deadline - asyncio.get_running_loop().time()
        # After a timeout, uvicorn closes the connection, because the response is incomplete.
        with self._held, contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._send_chunks(send), max(remaining, 1.0))

    async def _send_chunks(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        for start in range(0, len(body), _CHUNK):
            chunk = bytes(body[start : start + _CHUNK])
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
