"""Answers of a prediction server to clients that violate HTTP, disconnect, or send too much."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S
from toolkit.analysis.prediction.serve import TOKEN, Handler, Service, serve
from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir

#: More than the buffers of a connection hold.
LARGE = 1 << 25
KNOWN = "POST /predict HTTP/1.1\r\nAuthorization: Bearer right\r\n"


class Lines:
    """Answers each line with the line itself."""

    predictor = SimpleNamespace(format=SimpleNamespace(encoding="cp1252"))

    def parts(self, lines: Any, read_as: str) -> Iterator[list[object]]:
        for line in lines:
            if line == "break\n":
                raise RuntimeError("broken")
            yield [line]


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    handler = type("Asked", (Handler,), {"answering": Lines(), "token": "right"})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        # Ended requests are waited for where the server is closed.
        server.daemon_threads = False
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join(PATIENCE_S)


@pytest.fixture
def connect(server: ThreadingHTTPServer) -> Callable[[], socket.socket]:
    return lambda: socket.create_connection(("127.0.0.1", server.server_port), PATIENCE_S)


@pytest.fixture
def said(connect: Callable[[], socket.socket]) -> Callable[[str], tuple[int, str]]:
    """Status and body of the answer to a client that sends some bytes and no more."""

    def of(sent: str) -> tuple[int, str]:
        with connect() as client:
            client.sendall(sent.encode())
            client.shutdown(socket.SHUT_WR)
            head, _, body = b"".join(iter(lambda: client.recv(1 << 16), b"")).decode().partition("\r\n\r\n")
        return int(head.split()[1]), body

    return of


def test_a_request_is_utf_8_whatever_the_files_of_the_run_are(said: Callable[[str], tuple[int, str]]) -> None:
    assert said(f"{KNOWN}Content-Length: 2\r\n\r\nÄ") == (200, '"Ä"\n')


def test_a_truncated_body_is_refused(said: Callable[[str], tuple[int, str]]) -> None:
    status, body = said(f"{KNOWN}Content-Length: 40\r\n\r\na\nb\n")
    assert status == 400
    assert "4 of 40 bytes" in json.loads(body)["error"]


@pytest.mark.parametrize(
    "sent, expected",
    [
        ("PUT /predict HTTP/1.1\r\n\r\n", 501),
        ("POST 'a\\b\" c HTTP/1.1\r\n\r\n", 400),
        (f"GET /{'a' * 70_000} HTTP/1.1\r\n\r\n", 414),
        (f"{KNOWN}X: {'a' * 70_000}\r\n\r\n", 431),
        (f"{KNOWN}Transfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\na\n\r\n0\r\n\r\n", 411),
    ],
)
def test_every_refusal_is_json(said: Callable[[str], tuple[int, str]], sent: str, expected: int) -> None:
    status, body = said(sent)
    assert status == expected
    assert json.loads(body)["error"]


def test_a_client_that_disconnects_causes_no_error(
    connect: Callable[[], socket.socket],
    said: Callable[[str], tuple[int, str]],
    server: ThreadingHTTPServer,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for sent in ("", "POST", f"{KNOWN}Content-Length: 40\r\n\r\na\n", f"{KNOWN}Content-Length: 2\r\n\r\na\n"):
        with connect() as client:
            client.sendall(sent.encode())
            # Closing it then resets the connection.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert said(f"{KNOWN}Content-Length: 2\r\n\r\na\n")[0] == 200
    server.shutdown()
    server.server_close()
    assert capfd.readouterr().err == ""


def test_a_client_with_a_large_body_still_receives_the_refusal(server: ThreadingHTTPServer) -> None:
    client = HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE_S)
    client.request("POST", "/predict", b"a" * LARGE, {"Authorization": "Bearer wrong"})
    assert client.getresponse().status == 401
    client.close()


def test_an_exception_in_the_task_is_logged_and_hidden_from_the_client(
    server: ThreadingHTTPServer, said: Callable[[str], tuple[int, str]], capfd: pytest.CaptureFixture[str]
) -> None:
    status, body = said(f"{KNOWN}Content-Length: 6\r\n\r\nbreak\n")
    server.shutdown()
    server.server_close()
    assert status == 500
    assert "broken" not in json.loads(body)["error"]
    assert "RuntimeError: broken" in capfd.readouterr().err


@pytest.mark.parametrize("host", ["", "ä..b", "b\0"])
def test_an_invalid_host_is_refused(host: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--host"):
        serve(RunDir(tmp_path), Service(host=host, port=0), StringIO())


@pytest.mark.parametrize("token", [" right", "right\n", "rīght", "r\udcffght", "\t"])
def test_a_token_that_is_invalid_in_an_http_header_is_refused(
    token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, token)
    with pytest.raises(UserError, match=TOKEN):
        serve(RunDir(tmp_path), Service(host="127.0.0.1", port=0), StringIO())
