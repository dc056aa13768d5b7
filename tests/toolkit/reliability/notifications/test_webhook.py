"""A message is delivered, or fails within seconds with an error that does not contain the address."""

from __future__ import annotations

import threading

import pytest

from tests.toolkit.reliability.notifications.receiver import hint, receiving
from toolkit.reliability.notifications.webhook import post


def test_a_message_arrives_as_json() -> None:
    with receiving() as receiver:
        assert post(receiver.url, {"text": "grüß dich"}) is None
    assert receiver.messages == [{"text": "grüß dich"}]
    assert receiver.types == ["application/json"]


@pytest.mark.parametrize(
    "answers, tries, problem",
    [
        ((503, 200), 2, None),
        ((500,), 2, "it answers 500 Internal Server Error"),
        ((404,), 1, "it answers 404 Not Found"),
    ],
)
def test_only_server_errors_are_retried_and_only_once(
    answers: tuple[int, ...], tries: int, problem: str | None
) -> None:
    with receiving(*answers) as receiver:
        assert post(receiver.url, {}) == problem
    assert len(receiver.messages) == tries


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_reported_and_not_followed(code: int) -> None:
    with receiving(code) as receiver:
        problem = post(receiver.url, {})
    assert f"it answers {code} " in problem
    assert "secret" not in problem
    assert len(receiver.messages) == 1
    assert receiver.gets == []


def test_a_server_that_never_answers_times_out() -> None:
    with hint() as url:
        problem = post(url, {}, try_s=0.1)
    assert "secret" not in problem


def test_a_name_lookup_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time limit of a socket counts while its name is being resolved."""
    hangs = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: hangs.wait())
    try:
        assert post("http://somewhere.example/very-secret", {}, whole_s=0.1) == "no answer within 0.1 s"
    finally:
        hangs.set()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "very-secret", "", "ftp://x/very-secret"])
def test_addresses_of_other_schemes_are_refused(url: str) -> None:
    assert post(url, {}) == "the address does not begin with http:// or https://"


@pytest.mark.parametrize("url", ["http://very-secret:port/", "http://very secret/", "http://[very-secret/"])
def test_an_invalid_address_is_reported_without_repeating_it(url: str) -> None:
    problem = post(url, {})
    assert "secret" not in problem
