"""`stk serve` answers rows over HTTP as `stk predict` does."""

from __future__ import annotations

import json
import shutil
import signal
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.slurm.support.user import User
from tests.support.patience import PATIENCE_S
from toolkit.exit_codes import ExitCode
from toolkit.run.run_dir import RunDir

ROWS = '{"x": 0.5}\n{"x": 2}\n'


class Server:
    """A server of a run that was trained once."""

    def __init__(self, user: User, run_id: str) -> None:
        self.process = user.start("serve", run_id, "--port", "0", environ={"STK_SERVE_TOKEN": "right"})
        address = self.process.stdout.readline().split()[1]
        assert address.startswith("http://127.0.0.1:")
        self.port = int(address.split(":")[2].split("/")[0])
        self.about_token = self.process.stdout.readline()

    def ask(
        self, body: str = ROWS, *, method: str = "POST", path: str = "/predict", **headers: str
    ) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request(method, path, body.encode(), {"Authorization": "Bearer right", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def server(user: User, finished: RunDir) -> Iterator[Server]:
    found = Server(user, finished.run_id)
    yield found
    found.process.send_signal(signal.SIGINT)
    assert found.process.wait(PATIENCE_S) == ExitCode.INTERRUPTED


def test_serve_answers_like_predict(user: User, finished: RunDir, server: Server, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(ROWS)
    expected = user.call("predict", finished.run_id, file).out
    assert expected.count("\n") == 2
    assert server.ask() == (200, expected)
    assert server.ask("") == (200, "")


def test_connection_is_reused(server: Server) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    for _ in range(2):
        connection.request("POST", "/predict", ROWS, {"Authorization": "Bearer right"})
        assert connection.getresponse().read().count(b"\n") == 2


@pytest.mark.parametrize("sent", ["", "Bearer wrong", "right", "Bearer right ", "Bearer r\xefght"])
def test_requests_without_the_token_are_refused(server: Server, sent: str) -> None:
    for method in ("POST", "GET"):
        status, said = server.ask(method=method, Authorization=sent)
        assert status == 401
        assert "prediction" not in said


@pytest.mark.parametrize("row", ['{"y": 1}', "{", "\0", '{"x": "many"}'])
def test_bad_row_is_named_and_the_server_keeps_running(server: Server, row: str) -> None:
    status, said = server.ask(f'{{"x": 1}}\n{row}\n')
    assert status == 400
    assert json.loads(said)["error"].startswith("the request:2: ")
    assert server.ask()[0] == 200


def test_another_path_method_or_size_is_refused(server: Server) -> None:
    assert server.ask(path="/")[0] == 404
    assert server.ask(method="GET")[0] == 405
    assert server.ask("", **{"Content-Length": str(1 << 27)})[0] == 413
    assert server.ask("", **{"Content-Length": "9" * 400})[0] == 413
    assert server.ask("", **{"Content-Length": "-1"})[0] == 411
    assert server.ask()[0] == 200


def test_a_port_that_is_taken_is_named(user: User, finished: RunDir) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = user.call("serve", finished.run_id, "--port", port)
    assert answer.code == 2
    assert f"port {port}" in answer.err
    assert "Traceback" not in answer.err


def test_token_is_generated_if_none_is_given(user: User, finished: RunDir) -> None:
    process = user.start("serve", finished.run_id, "--port", "0")
    process.stdout.readline()
    _, token = process.stdout.readline().split()
    assert len(token) >= 32
    process.terminate()
    assert process.wait(PATIENCE_S) == -signal.SIGTERM


@pytest.mark.slow
def test_code_that_others_may_write_is_served_only_with_trust_folder(
    user: User, finished: RunDir, tmp_path: Path
) -> None:
    run = RunDir(Path(shutil.copytree(finished.path, tmp_path / "run", symlinks=True)))
    run.code.chmod(0o777)
    # With an invalid port, or it would keep running.
    assert "--trust-folder" in user.call("serve", run.path, "--port", "-1").err
    assert "port -1" in user.call("serve", run.path, "--port", "-1", "--trust-folder").err


def test_a_token_that_was_given_is_not_printed(server: Server) -> None:
    assert "STK_SERVE_TOKEN" in server.about_token
    assert "right" not in server.about_token
