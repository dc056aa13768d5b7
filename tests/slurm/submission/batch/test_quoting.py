"""Text reaches sbatch's option parser and the shell unchanged, or is refused with the reason."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from slurm.submission.batch.quoting import directive, export
from toolkit.config.secrets import with_secrets
from toolkit.errors import UserError

_HOSTILE = "aZ0 \t'\"\\$`#;&|<>(){}[]*?!~=,:%@-_./éß漢🙂\u2028\x85\x7f"
#: What a directive can hold: any text on one line.
one_line = st.one_of(
    st.text(st.sampled_from(_HOSTILE), max_size=30),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"), max_size=30),
)
#: What a variable can hold: anything but NUL.
any_value = st.one_of(
    st.text(st.sampled_from(_HOSTILE + "\n\r"), max_size=30),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
)


def parsed(line: str) -> str:
    """The value that sbatch reads from a directive, after the rules of its manual and its source.

    Blanks end a word and # begins a comment, unless they are quoted; a backslash keeps the next
    character, also between double quotes.
    """
    text = line.partition("=")[2]
    value, quote, position = "", "", 0
    while position < len(text):
        character = text[position]
        if character == "\\" and quote != "'":
            position += 1
            value += text[position]
        elif quote:
            quote, value = ("", value) if character == quote else (quote, value + character)
        elif character in "'\"":
            quote = character
        elif character in " \t\v\f#":
            break
        else:
            value += character
        position += 1
    return value


@pytest.fixture(scope="module")
def sbatch(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The real sbatch as a function from a directive to the comment that it reads; needs no cluster."""
    program = shutil.which("sbatch")
    if program is None:
        # CI installs it, and must not pass without having asked it.
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up("sbatch is not installed: its parser cannot be asked")
    folder = tmp_path_factory.mktemp("sbatch")
    script, config = folder / "script.sh", folder / "slurm.conf"
    # Nobody listens there: it shows what it read and is ended before it tries for long.
    config.write_text(
        "ClusterName=none\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\n"
        "AuthType=auth/none\nCredType=cred/none\nNodeName=localhost\nPartitionName=main Nodes=localhost\n"
    )

    def read(line: str) -> str:
        script.write_text(f"#!/bin/bash\n{line}\ntrue\n")
        process = subprocess.Popen(
            [program, "-vv", "--test-only", str(script)],
            env={**os.environ, "SLURM_CONF": str(config)},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        shown = b""
        while b"end of defined options" not in shown:
            more = os.read(process.stderr.fileno(), 1 << 16)
            assert more, shown
            shown += more
        process.kill()
        process.wait()
        process.stderr.close()
        after = shown.partition(b"sbatch: comment             : ")[2]
        return after.partition(b"\nsbatch: ")[0].decode()

    return read


@given(one_line)
@example("")
@example("--flag")
@example("#no comment")
@example("a\\")
def test_any_text_on_one_line_survives_the_rules_of_sbatch(text: str) -> None:
    assert parsed(directive("comment", text)) == text


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one_line.filter(bool))
@example("#no comment")
@example("a\\")
@example('"quoted"')
@example("x" * 2000)
def test_any_text_on_one_line_survives_the_real_sbatch(sbatch: Callable[[str], str], text: str) -> None:
    assert sbatch(directive("comment", text)) == text


@settings(max_examples=25, deadline=None)
@given(st.lists(any_value, min_size=1, max_size=40))
def test_any_value_of_a_variable_survives_bash(values: list[str]) -> None:
    lines = [export(f"V{number}", value) for number, value in enumerate(values)]
    # A child prints them, so that they have gone through its environment.
    lines.append("env -0 | grep -z '^V[0-9]' | sort -z -n -k 1.2")
    shown = subprocess.run(
        ["bash", "-c", "cat | bash"],
        input="\n".join(lines).encode(),
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
    )
    assert shown.stderr == b""
    assert shown.stdout == b"".join(f"V{number}={value}\0".encode() for number, value in enumerate(values))


@pytest.mark.parametrize("text", ["two\nlines", "carriage\rreturn", "nul\0"])
def test_directive_refuses_line_breaks_and_nul(text: str) -> None:
    with pytest.raises(UserError) as refusal:
        directive("comment", text)
    assert "--comment" in str(refusal.value)
    assert repr(text) in str(refusal.value)
    assert "line break or NUL" in str(refusal.value)


def test_carriage_returns_of_a_value_are_escaped_in_the_script() -> None:
    """sbatch refuses a script with one, even between quotes."""
    line = export("A", "it's\r\ntwo\r")
    assert "\r" not in line
    assert shell(line + "\nA=${A//$'\\r'/CR}").stdout == "it'sCR\ntwoCR"


def test_a_variable_refuses_nul() -> None:
    with pytest.raises(UserError, match=r"TOKEN_FILE: .*NUL"):
        export("TOKEN_FILE", "a\0b")


def shell(line: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """What a shell of these variables alone makes of a line that sets A."""
    script = f'{line}\nprintf %s "$A"'
    return subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("secret", ["hush", "with 'quotes', $dollars, `ticks`\nand lines", ""])
def test_a_secret_is_taken_from_the_environment_of_the_job(secret: str) -> None:
    written = with_secrets("it's $(id) <${oc.env:MYTOKEN}>", {"MYTOKEN": "hush"})
    line = export("A", written)
    assert "hush" not in line
    assert shell(line, MYTOKEN=secret).stdout == f"it's $(id) <{secret}>"


def test_a_job_without_the_secret_ends_and_names_it() -> None:
    job = shell(export("A", "${oc.env:MYTOKEN}"))
    assert job.returncode != 0
    assert "MYTOKEN" in job.stderr
