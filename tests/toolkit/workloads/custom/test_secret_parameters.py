"""A secret does not get into the record of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.config import load, load_resolved, to_yaml
from toolkit.errors import ConfigError

With = Callable[[str, str], Path]


@pytest.fixture
def with_param(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> With:
    """Writes the experiment of a command with one parameter; MYTOKEN is set."""
    monkeypatch.setenv("MYTOKEN", "hush-hush")

    def written(name: str, value: str) -> Path:
        path = tmp_path / "command.yaml"
        path.write_text(
            f"name: c\ntask: {{kind: command, run: [echo]}}\nparams: {{{name}: {value}}}\ncode: []\n"
        )
        return path

    return written


@pytest.mark.parametrize(
    "name, value",
    [
        ("WANDB_API_KEY", "hush-hush"),
        ("api-key", "hush"),
        ("client_secret", "$hush"),
        ("db_password", "[12, hush]"),
        ("HF_TOKEN", "hf_hush12345678"),
    ],
)
def test_a_parameter_with_the_name_of_a_secret_must_be_a_reference(
    with_param: With, name: str, value: str
) -> None:
    path = with_param(name, value)
    with pytest.raises(ConfigError) as refused:
        load(path)
    (fault,) = refused.value.faults
    assert fault.key.startswith(f"params.{name}")
    assert "hush" not in str(fault)
    # A run that an earlier version has made continues.
    assert "hush" in to_yaml(load_resolved(path))
    assert "hush" not in to_yaml(load(with_param(name, '"${oc.env:MYTOKEN}"')))


@pytest.mark.parametrize(
    "name, value",
    [
        ("pad_token", "token-of-2-words"),
        ("PAD_TOKEN", "<|reserved_special_token_0|>"),
        ("EOS_TOKEN", "end-of-text"),
        ("SORT_KEY", "created_at"),
        ("password", "12345678"),
        ("api_key", "null"),
        ("api_key", '""'),
        ("client_secret", '"${run.dir}/client.json"'),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/project-2024.json"),
    ],
)
def test_usual_parameters_are_not_taken_for_secrets(with_param: With, name: str, value: str) -> None:
    assert name in to_yaml(load(with_param(name, value)))
