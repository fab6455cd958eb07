"""Run `aanet` commands in a process that is killed when it, its libraries or its children open a socket.

    python without_sockets.py '[["doctor"], ["predict", "left.png", "right.png"]]'

Sockets between processes of the same machine (AF_UNIX) are allowed. On systems other than Linux only the
sockets of Python code are noticed.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import struct
import sys

AF_UNIX = 1
COMMAND = os.getpid()  # not that of its children
# The number of the system call `socket` by processor.
SOCKET = {"x86_64": 41, "aarch64": 198}
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000
NUMBER, FIRST_ARGUMENT = 0, 16  # offsets in `struct seccomp_data`
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2


def forbid_sockets() -> None:
    """Kill this process and its children as soon as they open a socket."""
    sys.addaudithook(_refuse)
    if sys.platform != "linux" or platform.machine() not in SOCKET:
        return
    program = [
        (LOAD, 0, 0, NUMBER),
        (JUMP_IF_EQUAL, 1, 0, SOCKET[platform.machine()]),
        (RETURN, 0, 0, ALLOW),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_IF_EQUAL, 0, 1, AF_UNIX),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, KILL),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    filtered = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filtered, 0, 0)  # refused inside some containers


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    opened = event == "socket.__new__" and arguments[1] != AF_UNIX
    if opened or event in ("socket.getaddrinfo", "socket.gethostbyname"):
        print(f"{event} {arguments}", file=sys.stderr, flush=True)
        os.kill(COMMAND, signal.SIGKILL)  # a library may open it in a child process, whose end goes unnoticed
        os._exit(70)


if __name__ == "__main__":
    forbid_sockets()
    from aanet.cli.main import app

    for command in json.loads(sys.argv[1]):
        app(command, standalone_mode=False)
