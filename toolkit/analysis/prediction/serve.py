"""Answer rows over HTTP with a finished run, with the run's own code:

python -P -m toolkit.analysis.prediction.serve RUN_DIR '{"host": …}'

A request needs the token. Many requests are read at once; the model answers one at a time.
"""

from __future__ import annotations

import hmac
import io
import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import TYPE_CHECKING, ClassVar, TextIO

from toolkit.analysis.prediction.formats import JSON_LINES
from toolkit.analysis.prediction.output import writer
from toolkit.analysis.prediction.source import TextLines
from toolkit.errors import StkError, UserError
from toolkit.run.run_dir import RunDir
from toolkit.system.process_main import exit_status, process_main, take_stdout

if TYPE_CHECKING:
    from toolkit.analysis.prediction.predict import Answering

#: The environment variable with the token; without it, a token is generated.
TOKEN = "STK_SERVE_TOKEN"
_PATH = "/predict"
#: Maximum number of bytes in a request, and of seconds that a client may be silent.
_LARGEST, _SILENT_S = 1 << 26, 30
_BLOCK = 1 << 16
#: Maximum number of bytes that are discarded after a refusal.
_DISCARDED = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The address, and the rows of a batch; None: as in the run's evaluations."""

    host: str
    port: int
    batch_size: int | None = None


class Handler(BaseHTTPRequestHandler):
    """One request: JSON lines in, a prediction for each in JSON lines out. An error is JSON, too."""

    answering: ClassVar[Answering]
    token: ClassVar[str]
    protocol_version = "HTTP/1.1"
    timeout = _SILENT_S
    #: A model answers one request at a time.
    _model = threading.Lock()

    def handle(self) -> None:
        # A client may disconnect at any time.
        with suppress(ConnectionError):
            super().handle()
        with suppress(OSError):
            self._read_the_rest()

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not self._is_known():
            self._refuse(HTTPStatus.UNAUTHORIZED, "send the token, as in Authorization: Bearer TOKEN")
        elif self.path != _PATH:
            self._refuse(HTTPStatus.NOT_FOUND, f"the only path is {_PATH}")
        elif "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "send the header Content-Length, and no chunks")
        elif len(length) > len(str(_LARGEST)) or int(length) > _LARGEST:
            problem = f"expected at most {_LARGEST:,} bytes: send the rows in several requests"
            self._refuse(HTTPStatus(413), problem)
        elif len(body := self.rfile.read(int(length))) < int(length):
            self._refuse(HTTPStatus.BAD_REQUEST, f"the body ended after {len(body)} of {length} bytes")
        else:
            self._answer(body)

    def do_GET(self) -> None:
        if self._is_known():
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, f"POST rows as JSON lines to {_PATH}")
        else:
            self._refuse(HTTPStatus.UNAUTHORIZED, "send the token, as in Authorization: Bearer TOKEN")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse an invalid request with the same kind of answer as others."""
        self._refuse(HTTPStatus(code), message or HTTPStatus(code).phrase)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""

    def _is_known(self) -> bool:
        sent = self.headers.get("Authorization", "").encode("utf-8", "replace")
        return hmac.compare_digest(sent, f"Bearer {self.token}".encode())

    def _answer(self, body: bytes) -> None:
        text = io.StringIO()
        write, read = writer(text, JSON_LINES), io.BytesIO(body).read
        lines = TextLines("the request", "utf-8", lambda: read(_BLOCK))
        try:
            with self._model:
                for part in self.answering.parts(lines, JSON_LINES):
                    write(part)
        except StkError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        except Exception:
            self._refuse(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "the task has failed: the output of stk serve has the traceback",
            )
            # The server prints it, and continues.
            raise
        self._send(HTTPStatus.OK, "application/x-ndjson", text.getvalue())

    def _refuse(self, status: HTTPStatus, problem: str) -> None:
        # An unread body would be read as the next request.
        self.close_connection = True
        self._send(status, "application/json", json.dumps({"error": problem}) + "\n")

    def _read_the_rest(self) -> None:
        """Discard the rest of a refused request: the client may read the answer only after sending it."""
        self.connection.shutdown(socket.SHUT_WR)
        left = _DISCARDED
        while left > 0 and (found := self.connection.recv(_BLOCK)):
            left -= len(found)

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        content = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


class Server(ThreadingHTTPServer):
    """Listens without looking up this host's name on a name server, which may take long."""

    def server_bind(self) -> None:
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]


def serve(run: RunDir, service: Service, output: TextIO) -> None:
    """Answer requests until the process ends. Raises as `answer`, and UserError if it cannot listen there.

    output  for the address and the token
    """
    # Imported late, since it takes seconds in which Ctrl-C may be pressed.
    from toolkit.analysis.prediction.predict import answering

    given = _given_token()
    token = given or secrets.token_urlsafe(24)
    try:
        if not service.host:
            # Python would listen on all addresses.
            raise ValueError("the host is empty")
        server = Server((service.host, service.port), Handler)
    # For an invalid name Python raises a TypeError or a ValueError.
    except (OSError, OverflowError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"cannot listen on {service.host}, port {service.port}: {reason}. Choose others with --host and "
            "--port; port 0 is any free one"
        ) from error
    with server:
        Handler.answering, Handler.token = answering(run, service.batch_size), token
        address = f"http://{service.host}:{server.server_port}{_PATH}"
        output.write(f"address  {address}\ntoken    {f'that of {TOKEN}' if given else token}\n")
        output.flush()
        if service.host not in ("127.0.0.1", "localhost"):
            sys.stderr.write("warning: requests and the token are not encrypted in transit\n")
        server.serve_forever()


def _given_token() -> str:
    """The token of the environment; empty without one. Raises UserError if no header can hold it."""
    token = os.environ.get(TOKEN, "")
    if not (token.isascii() and token.isprintable() and token == token.strip()):
        raise UserError(
            f"{TOKEN} has characters that an HTTP header cannot hold: use ASCII letters and digits"
        )
    return token


def main(argv: Sequence[str]) -> int:
    """Serve a run; return the exit status."""
    # Output of the user's code must not mix with the address.
    output = take_stdout()
    return exit_status(lambda: serve(RunDir(Path(argv[0])), Service(**json.loads(argv[1])), output))


if __name__ == "__main__":
    process_main(main)
