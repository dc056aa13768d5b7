"""A webhook's other end, as a test wishes it: it listens, refuses, breaks, or never answers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """What was received; answers are given in their order, and the last one for ever."""

    def __init__(self, answers: Sequence[int], address: str) -> None:
        self.messages: list[dict[str, Any]] = []
        self.types: list[str | None] = []
        self.gets: list[str] = []
        self._answers = list(answers)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.messages.append(json.loads(body))
                outer.types.append(self.headers["Content-Type"])
                code = outer._answer()
                self.send_response(code)
                if 300 <= code < 400:
                    self.send_header("Location", outer.url + "/elsewhere")
                self.end_headers()

            def do_GET(self) -> None:
                outer.gets.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer((address, 0), Handler)

    def _answer(self) -> int:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    @property
    def url(self) -> str:
        host, port = self.server.server_address[:2]
        return f"http://{host!s}:{port}/hook/very-secret"


@contextmanager
def receiving(*answers: int, address: str = "127.0.0.1") -> Iterator[Receiver]:
    receiver = Receiver(answers or (200,), address)
    thread = threading.Thread(target=receiver.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()


@contextmanager
def hint() -> Iterator[str]:
    """The address of one who takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/very-secret"


def closed_address() -> str:
    """Return an address at which no program listens."""
    # Not a port that is free at present: another test may have it by the time that it is called.
    return "http://127.0.0.1:1/very-secret"
