"""A value from a secret environment variable is used and never written."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.config import load, load_on_file, load_resolved, load_to_run, to_plain, to_yaml
from toolkit.config.identity import identity
from toolkit.config.secrets import concealed, is_secret, masked, split_references
from toolkit.errors import UserError

SECRETS = [
    "DBPASSWD", "MYTOKEN", "PASSWD", "HF_TOKEN", "HF_TOKEN_2", "DATABASE_URL", "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "OPENAI_APIKEY", "PGPASSWORD", "MYSQL_PWD", "DB_PASS",
    "GH_PAT", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "REDIS_URL", "MONGODB_URI", "KEY", "TOKEN",
    "db_password", "SECRET_2", "GOOGLE_APPLICATION_CREDENTIALS", "PIP_EXTRA_INDEX_URL",
    "DB_PASSWORD_FILE", "NPM_AUTH",
]  # fmt: skip
OTHERS = [
    "PWD", "OLDPWD", "MONKEY", "KEYBOARD", "MAX_TOKENS", "TOKENIZERS_PARALLELISM",
    "STK_TOKEN_FULLY_CONNECTED", "STK_DATA_DIR", "PATH", "HOME", "AUTHOR", "DATA_URL", "SSH_KEY_PATH",
    "COMPASS", "SSH_AUTH_SOCK", "SLURM_JOB_ID", "STK_TOKENIZER",
]  # fmt: skip

EXPERIMENT = """\
name: told
task: {kind: toy_texts}
model: {kind: convolutions}
data: {path: movies.tsv, text_column: "${oc.env:MYTOKEN}"}
resources: {environment: {A: "<${oc.env:MYTOKEN}>"}}
"""


@pytest.fixture
def told(write, monkeypatch):
    """An experiment that takes two texts from a secret variable, which is set."""
    monkeypatch.setenv("MYTOKEN", "hush-hush")
    return write("told.yaml", EXPERIMENT)


@pytest.fixture
def stored(told, write):
    """The same as a run stores it."""
    return write("run/config.yaml", to_yaml(load(told)))


@pytest.mark.parametrize("name", SECRETS)
def test_names_of_secret_variables_are_recognized(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", OTHERS)
def test_names_of_ordinary_variables_are_not_secret(name):
    assert not is_secret(name)


def test_variables_in_our_own_experiments_are_not_secret():
    configs = Path(__file__).parents[3] / "configs"
    text = "".join(path.read_text() for path in configs.rglob("*.yaml"))
    assert all(not is_name for _, is_name in split_references(text))


def test_the_value_is_used_and_the_reference_is_written(told):
    experiment = load(told)
    assert experiment.data.text_column == "hush-hush"
    assert experiment.resources.environment == {"A": "<hush-hush>"}
    assert to_plain(experiment)["data"]["text_column"] == "${oc.env:MYTOKEN}"
    assert "hush" not in to_yaml(experiment) + to_yaml(experiment.resources)


def test_the_identity_depends_on_the_variable_name_not_on_its_value(told, write, monkeypatch):
    before = identity(load(told))
    monkeypatch.setenv("MYTOKEN", "another")
    monkeypatch.setenv("MY_OTHER_TOKEN", "another")
    assert identity(load(told)) == before
    assert identity(load(told, ["data.text_column=${oc.env:MY_OTHER_TOKEN}"])) != before


def test_a_stored_experiment_uses_the_current_value_of_the_variable(stored, monkeypatch):
    before = identity(load_to_run(stored))
    monkeypatch.setenv("MYTOKEN", "renewed")
    assert load_to_run(stored).data.text_column == "renewed"
    assert identity(load_to_run(stored)) == before


def test_a_run_without_its_variable_can_be_read_but_not_started(stored, monkeypatch):
    before = to_yaml(load_resolved(stored))
    monkeypatch.delenv("MYTOKEN")
    assert to_yaml(load_resolved(stored)) == before
    for start in (load_to_run, lambda path: load_on_file(path, Path("other.tsv"))):
        with pytest.raises(UserError, match=r"MYTOKEN.*data\.text_column, resources\.environment\.A"):
            start(stored)


def test_a_default_of_a_secret_is_written_as_text(told, monkeypatch):
    monkeypatch.delenv("MYTOKEN")
    override = ["data.text_column=${oc.env:MYTOKEN,text}", "resources.environment={}"]
    assert to_plain(load(told, override))["data"]["text_column"] == "text"


@pytest.mark.parametrize(
    "way", ["${data.text_column}", "${oc.env:${oc.env:WHICH}}", "${oc.env:NONE,${oc.env:MYTOKEN}}"]
)
def test_a_secret_is_not_written_when_it_comes_by_an_indirect_reference(told, way, monkeypatch):
    monkeypatch.setenv("WHICH", "MYTOKEN")
    experiment = load(told, [f"data.label_column={way}"])
    assert experiment.data.label_column == "hush-hush"
    assert "hush" not in to_yaml(experiment)


def test_ordinary_variables_and_escaped_references_are_unaffected(told, monkeypatch):
    monkeypatch.setenv("COLUMN", "words")
    experiment = load(told, ["data.text_column=${oc.env:COLUMN}", r"data.label_column=\${oc.env:COLUMN}"])
    assert to_plain(experiment)["data"]["text_column"] == "words"
    assert experiment.data.label_column == "${oc.env:COLUMN}"


@pytest.mark.parametrize(
    "override",
    [
        "name=${oc.env:MYTOKEN}",
        "data.path=${oc.env:MYTOKEN}",
        "seed=${oc.env:MYTOKEN}",
        "resources.comment=a${oc.env:MYTOKEN}",
        "resources.account=a${oc.env:MYTOKEN}",
        "resources.sbatch.wckey=a${oc.env:MYTOKEN}",
        "resources.mail_user=a${oc.env:MYTOKEN}",
    ],
)
def test_a_secret_in_a_name_path_number_or_option_of_slurm_is_refused(told, faults, override):
    (fault,) = faults(load, told, [override])
    assert (fault.key, fault.origin) == (override.partition("=")[0], "command line")
    assert "MYTOKEN" in fault.problem
    assert "hush" not in str(fault)


@pytest.mark.parametrize(
    "line",
    [
        "export DBPASSWD=hush",
        "MYTOKEN='hush' ./login",
        "a; export HF_TOKEN_2=hush",
        'export A=1 PASSWD="hush"',
    ],
)
def test_a_literal_secret_in_a_setup_line_is_refused(broken, line):
    (fault,) = broken(resources={"setup": ["module load cuda", line]})
    assert fault.key == "resources.setup.1"
    assert "hush" not in str(fault)


@pytest.mark.parametrize(
    "line",
    [
        "export HF_TOKEN=$MYTOKEN",
        'export HF_TOKEN="$(cat ~/.token)"',
        "unset MYTOKEN",
        "export PASSWD=",
        "export A=1",
    ],
)
def test_a_setup_line_may_read_a_secret_at_run_time(good, line):
    assert good(resources={"setup": [line]})


def test_a_secret_reference_in_a_setup_line_is_refused_for_a_shell_variable(told, faults):
    (fault,) = faults(load, told, ["resources.setup=['login ${oc.env:MYTOKEN}']"])
    assert "$MYTOKEN" in fault.hint


def test_a_secret_variable_of_the_ranks_must_be_a_reference(told, faults):
    assert load(told, ["resources.environment.HF_TOKEN=${oc.env:MYTOKEN}"])
    (fault,) = faults(load, told, ["resources.environment.HF_TOKEN=hush"])
    assert fault.key == "resources.environment.HF_TOKEN"


def test_a_url_with_a_password_is_refused_and_not_repeated(broken):
    (fault,) = broken(data={"text_column": "postgres://me:hush@host/db"})
    assert fault.key == "data.text_column"
    assert "postgres://me:***@host/db" in fault.problem
    assert "hush" not in str(fault)


def test_secrets_in_other_texts_are_concealed():
    environ = {"MYTOKEN": "hush-hush", "PIN_KEY": "1", "HOME": "/home/me"}
    text = "at https://me:pass@host: hush-hush in /home/me, 1"
    assert concealed(text, environ) == "at https://me:***@host: ${oc.env:MYTOKEN} in /home/me, 1"


@pytest.mark.parametrize("text", ["http://host:80/a@b", "a:b@c", "mail me@x.y: http://x"])
def test_text_without_a_password_is_unchanged(text):
    assert masked(text) == text


@given(
    st.lists(
        st.sampled_from(["${oc.env:MYTOKEN}", "${oc.env:PATH}", "'", '"', "$x", "`", "a b", "\\"]), max_size=8
    )
)
def test_split_references_loses_no_text_and_finds_every_secret(parts):
    found = split_references("".join(parts))
    assert "".join(f"${{oc.env:{part}}}" if is_name else part for part, is_name in found) == "".join(parts)
    assert sum(is_name for _, is_name in found) == parts.count("${oc.env:MYTOKEN}")


def test_a_pickled_experiment_keeps_its_secret_and_its_reference(told):
    again = pickle.loads(pickle.dumps(load(told)))
    assert to_yaml(again) == to_yaml(load(told))
    assert again.data.text_column == "hush-hush"


@pytest.mark.timeout(60)
def test_masking_a_text_of_a_million_letters_takes_linear_time():
    """A search that starts again at each letter would take hours."""
    text = "x" * 1_000_000
    assert masked(f"{text} redis://:secret@host") == f"{text} redis://:***@host"
