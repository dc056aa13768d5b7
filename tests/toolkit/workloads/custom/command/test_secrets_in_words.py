"""The value of a secret variable does not get into the record of a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolkit.config import check, load_to_run, to_yaml
from toolkit.errors import ConfigError, Fault

VALUE = "hf_hush12345678"


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """MYTOKEN is set."""
    monkeypatch.setenv("MYTOKEN", VALUE)


def command(*run: str, **keys: Any) -> Any:
    return check({"name": "train", "task": {"kind": "command", "run": ["python", *run]}, **keys})


def fault(*run: str, **keys: Any) -> Fault:
    with pytest.raises(ConfigError) as refused:
        command(*run, **keys)
    (found,) = refused.value.faults
    return found


@pytest.mark.parametrize(
    "around", ["{}", "--hub-token={}", '{{"token": "{}"}}', "https://{}@host/me", "export MYTOKEN={}; a"]
)
def test_the_value_of_a_secret_variable_is_refused_and_not_repeated(around: str) -> None:
    found = fault("train.py", around.format(VALUE))
    assert found.key == "task.run.2"
    assert "'${oc.env:MYTOKEN}'" in found.hint
    assert "hush" not in str(found)
    assert "hush" not in to_yaml(command("train.py", around.format("${oc.env:MYTOKEN}")))


@pytest.mark.parametrize("value, key", [(VALUE, "params.api_key"), (["a", VALUE], "params.api_key.1")])
def test_the_value_of_a_secret_variable_is_refused_as_a_parameter(value: Any, key: str) -> None:
    assert fault(params={"api_key": value}).key == key
    text = json.dumps(value).replace(VALUE, "${oc.env:MYTOKEN}")
    assert "hush" not in to_yaml(command(params={"api_key": json.loads(text)}))


def test_a_password_in_a_url_has_one_fault() -> None:
    assert "URL with a password" in fault("a", f"postgres://me:{VALUE}@host/db").problem


def test_the_value_is_allowed_in_other_keys() -> None:
    known = command(name=VALUE, resources={"account": VALUE})
    assert (known.name, known.resources.account) == (VALUE, VALUE)


@pytest.mark.parametrize("value", ["EMPTY", "sk-no-key-required", "OPENAI_API_KEY", "", None])
def test_a_placeholder_is_no_secret(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", str(value))
    assert command(params={"api_key": value}).params == {"api_key": value}


def test_a_run_that_has_recorded_the_value_continues(tmp_path: Path) -> None:
    text = to_yaml(command("a", "${oc.env:MYTOKEN}")).replace("${oc.env:MYTOKEN}", VALUE)
    (tmp_path / "config.yaml").write_text(text)
    assert load_to_run(tmp_path / "config.yaml").task.run[-1] == VALUE


@pytest.mark.parametrize(
    "value, text",
    [
        ("user12", "user12"),
        ("classification", "classification"),
        ("123456789012", "123456789012"),
        ("/home/me/key-2024.json", "/home/me/key-2024.json"),
        ("redis://host-1:6379", "redis://host-1:6379"),
        ("redis-host-1:6379", "redis-host-1:6379"),
        ("redis-host-1:6379/0", "redis-host-1:6379/0"),
        ("redis-host-1", "redis-host-1:6379"),
        ("service-account-2024.json", "service-account-2024.json"),
        ("project-2024-a", "project-2024-a.json"),
        ("project-2024-a", "/scratch/project-2024-a/table.tsv"),
        ("project-2024-a", "my-project-2024-a"),
    ],
)
def test_a_name_word_path_or_address_is_not_taken_for_the_value_of_a_secret(
    monkeypatch: pytest.MonkeyPatch, value: str, text: str
) -> None:
    monkeypatch.setenv("PROJECT_KEY", value)
    monkeypatch.setenv("REDIS_URL", value)
    assert command("a", text).task.run[-1] == text


@pytest.mark.parametrize(
    "variable, value",
    [
        ("REDIS_URL", "gpu-login-node1"),
        ("REDIS_URL", "redis-7d9f8b6c5-x2x4z"),
        ("REDIS_URL", "Login_Node1,Login_Node2"),
        ("DB_URL", "bert-base-uncased2"),
        ("REPORT_DSN", "warehouse-north-1"),
        ("MINIO_ACCESS_KEY", "research-team1"),
        ("AWS_ACCESS_KEY_ID", "research_team_2024"),
        ("DATASET_KEY", "imagenet-1k-2012"),
    ],
)
def test_the_name_of_a_host_an_account_or_data_is_no_secret(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert command("--group", value).task.run[-1] == value


@pytest.mark.parametrize(
    "variable, value",
    [
        ("HF_TOKEN", "hf_abcdefghijklmnopqrstuvwxyz12345678"),
        ("GITHUB_TOKEN", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "my-own-secret-1"),
        ("MINIO_ACCESS_KEY", "1f0c9a7be2d84c55"),
        ("MINIO_ACCESS_KEY", "550e8400-e29b-41d4-a716-446655440000"),
        ("MINIO_ACCESS_KEY", "dGhpcy1pcy1zZWNyZXQ5"),
        ("API_ACCESS_KEY", "deploy-prod-2024"),
        ("AZURE_STORAGE_ACCESS_KEY", "my-pass-word-12"),
        ("ORACLE_DB_URL", "scott1/tiger123456"),
        ("SENTRY_DSN_ID", "key@sentry-12345"),
        ("DB_PASSWORD", "correct-horse-battery-staple9"),
        ("SERVICE_API_KEY", "token-abc-123456"),
        ("REDIS_URL", "me:hush-12345678@redis-host"),
        ("DATABASE_URL", "host=db1;password=hush12345678"),
    ],
)
def test_a_token_or_password_is_found(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    assert variable in fault("--group", value).problem
