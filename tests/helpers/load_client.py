"""Many clients at once: good, hostile and impatient ones.  A process of its own, run by `test_load.py`.

Prints one JSON object: how often each kind got which response, and the bodies of the good ones by checksum.
"""

from __future__ import annotations

import asyncio
import collections
import json
import sys
import zlib

import httpx


async def one(client: httpx.AsyncClient, url: str, request: dict[str, object]) -> str:
    """The status of one request, after as many attempts as a busy server asks for."""
    files = {name: (name, bytes.fromhex(data)) for name, data in request["files"].items()}  # type: ignore[attr-defined]  # from JSON
    while True:
        try:
            response = await client.post(
                url, files=files, params={"format": "disparity.npy"}, timeout=request["patience"]
            )
        except (httpx.ReadTimeout, httpx.WriteTimeout, httpx.ConnectTimeout, httpx.PoolTimeout):
            return "left"
        if response.status_code != 503:
            return (
                f"{response.status_code} {zlib.crc32(response.content)}"
                if response.is_success
                else str(response.status_code)
            )
        refusals["retry" if "Retry-After" in response.headers else "no Retry-After"] += 1
        await asyncio.sleep(0.05 + 0.1 * (refusals["retry"] % 4))


async def main(url: str, requests: list[dict[str, object]], at_once: int) -> dict[str, dict[str, int]]:
    seen: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    pending = iter(requests)
    async with httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=at_once)) as client:

        async def keep_asking() -> None:
            for request in pending:
                seen[str(request["kind"])][await one(client, url, request)] += 1

        await asyncio.gather(*(keep_asking() for _ in range(at_once)))
    return {**seen, "refusals": refusals}


refusals: collections.Counter[str] = collections.Counter()
if __name__ == "__main__":
    task = json.load(sys.stdin)
    print(json.dumps(asyncio.run(main(task["url"], task["requests"], task["at_once"]))))
