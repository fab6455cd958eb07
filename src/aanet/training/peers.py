"""The processes of a run under torchrun: what is wrong in one of them ends all of them, in the same words.

An error in one process would otherwise leave the others waiting for it, in a collective operation, until a
timeout. Messages go through the store by which torchrun's processes find each other: it exists before
any process group, for every accelerator, and survives the process that failed.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from aanet.errors import AanetError, UnsupportedError

# Long, because the first process may be validating; torchrun ends those who wait for one that has died.
PATIENCE = timedelta(days=1)
FAREWELL = timedelta(seconds=30)
POLL_SECONDS = 0.05
VISIBLE_SECONDS = 5.0  # a file that one host has written must be seen by the others within this time
MAX_MESSAGE = 600  # characters of another process's error


@dataclass(frozen=True)
class Message:
    """What a process says; empty if there is nothing to say."""

    rank: int
    host: str
    text: str

    @property
    def sender(self) -> str:
        """Name the process for people."""
        return f"process {self.rank} on {self.host}"


class Peers:
    """All processes of a run, this one included; torch is imported only if there are others."""

    def __init__(self, rank: int = 0, count: int = 1, hosts: int = 1, launched: bool = False) -> None:
        """`launched` tells whether torchrun has started this process, and starts it again if it fails."""
        self.rank, self.count, self.hosts, self.launched = rank, count, hosts, launched
        self._rounds = 0
        self._store: Any = None

    @classmethod
    def from_environment(cls) -> Peers:
        """Those that torchrun has started; this process alone without it."""
        rank, count, hosts = (
            int(os.environ.get(name, default))
            for name, default in (("RANK", "0"), ("WORLD_SIZE", "1"), ("GROUP_WORLD_SIZE", "1"))
        )
        return cls(rank, count, hosts, launched=True) if "LOCAL_WORLD_SIZE" in os.environ else cls()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Run a block that succeeds in every process or raises an error in every process."""
        try:
            yield
        except Exception as error:
            # The error of this process is raised, even if the others cannot be told any more.
            with contextlib.suppress(AanetError):
                self._exchange(_words(error))
            self._leave()
            raise
        failed = next((each for each in self._exchange("") if each.text), None)
        if failed is not None:
            self._leave()
            raise UnsupportedError(f"The run cannot go on in {failed.sender}: {failed.text}")

    def compare(self, facts: Mapping[str, str]) -> None:
        """Raise an error in every process if the facts of one are not those of the first."""
        first, *others = self._exchange(json.dumps(facts))
        expected: dict[str, str] = json.loads(first.text)
        for other in others:
            found: dict[str, str] = json.loads(other.text)
            for name, value in expected.items():
                if found.get(name) != value:
                    self._leave()
                    raise UnsupportedError(
                        f"All processes of a run must have the same {name}: {first.sender} has {value}, "
                        f"{other.sender} has {found.get(name)}."
                    )

    def require_shared(self, folder: Path) -> None:
        """Raise an error in every process unless all hosts see the same folder.

        After a restart, torchrun may number the hosts differently: the checkpoints that one of them has
        written must be there for the one that continues.
        """
        if self.hosts == 1:
            return
        mark = folder / f".shared-{secrets.token_hex(8)}"
        try:
            with self.together():
                if self.rank == 0:
                    folder.mkdir(parents=True, exist_ok=True)
                    mark.touch()
            first = self._exchange(mark.name)[0]
            with self.together():
                if not _appears(folder / first.text):
                    raise UnsupportedError(
                        f"The folder {folder} is not shared: a file that {first.sender} wrote into it is not "
                        f"seen by process {self.rank} on {socket.gethostname()}; --output must name a folder "
                        "on storage that all hosts share, by the same path."
                    )
        finally:
            if self.rank == 0:
                mark.unlink(missing_ok=True)

    def store(self) -> Any:
        """Return a key-value store of torch that only the processes of this start have written to."""
        if self._store is None:
            self._store = self._meet()
        return self._store

    def _exchange(self, text: str) -> list[Message]:
        """Return what all processes say, by rank."""
        if self.count == 1:
            return [Message(0, socket.gethostname(), text)]
        self._rounds += 1
        try:
            return self._ask(str(self._rounds), text, PATIENCE)
        except RuntimeError as error:  # all of torch's errors about connections and timeouts
            raise UnsupportedError(
                "The other processes of this run have ended or cannot be reached; their own messages say why."
            ) from error

    def _meet(self) -> Any:
        """Find the other processes by torchrun's store, which may keep what was written before a restart.

        The prefix of all keys is a name that the first process makes up. The others take it from a list in
        which they find the name that they have made up themselves: a process of this start has written it.
        """
        from torch.distributed.distributed_c10d import PrefixStore
        from torch.distributed.rendezvous import rendezvous

        store, *_ = next(rendezvous("env://"))
        own = secrets.token_hex(8)
        hello = [f"aanet/hello/{rank}" for rank in range(self.count)]
        store.set(hello[self.rank], own)
        if self.rank == 0:
            store.wait(hello, PATIENCE)
            ready = [f"aanet/{own}/ready/{rank}" for rank in range(1, self.count)]
            while not store.check(ready):
                store.set("aanet/welcome", json.dumps([store.get(key).decode() for key in hello]))
                time.sleep(POLL_SECONDS)
            return PrefixStore(f"aanet/{own}", store)
        names: list[str] = []
        while len(names) != self.count or names[self.rank] != own:
            time.sleep(POLL_SECONDS)
            names = json.loads(store.get("aanet/welcome"))
        store.set(f"aanet/{names[0]}/ready/{self.rank}", "")
        return PrefixStore(f"aanet/{names[0]}", store)

    def _ask(self, key: str, text: str, patience: timedelta) -> list[Message]:
        store = self.store()
        store.set(f"{key}/{self.rank}", json.dumps({"host": socket.gethostname(), "text": text}))
        keys = [f"{key}/{rank}" for rank in range(self.count)]
        store.wait(keys, patience)
        return [Message(rank, **json.loads(store.get(each))) for rank, each in enumerate(keys)]

    def _leave(self) -> None:
        """Wait until all processes know of an error, then let each of them end by itself."""
        if self.count == 1:
            return
        # torchrun ends the other processes of a host as soon as one has ended, which would hide why they do.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with contextlib.suppress(RuntimeError):
            self._ask("end", "", FAREWELL)


def _words(error: Exception) -> str:
    """Return an error as one line."""
    text = str(error) if isinstance(error, AanetError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:MAX_MESSAGE]


def _appears(path: Path) -> bool:
    """Whether a file is there, or will be soon: the clients of network file systems cache folders."""
    deadline = time.monotonic() + VISIBLE_SECONDS
    while not path.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
