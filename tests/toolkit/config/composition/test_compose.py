"""An experiment file and its overrides become one tree."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.toolkit.config.composing import compose
from toolkit.config.composition.yaml_files import dump
from toolkit.errors import ConfigError


def test_an_experiment_without_references_does_not_import_omegaconf(movies):
    movies.write_text(movies.read_text().replace("${oc.env:STK_DATA_DIR,data}", "data"))
    code = (
        "import sys; from pathlib import Path; from toolkit.config import load;"
        "load(Path('configs/movies.yaml')); slow = {'omegaconf', 'torch', 'numpy'} & set(sys.modules);"
        "sys.exit(str(slow) if slow else 0)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


_PIECES = [
    "${", "}", "${oc.env:", "${from_file:", "${a", "${.x", ":", ",", "[", "]", "\\", "'", "a.x", "=", " ",
]  # fmt: skip
_WITHIN_A_TEST = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
_BROKEN = st.lists(st.sampled_from(_PIECES), max_size=6).map("".join)


@_WITHIN_A_TEST
@pytest.mark.filterwarnings("ignore:In the sequence")
@given(
    st.dictionaries(st.sampled_from("ab"), _BROKEN | st.lists(_BROKEN, max_size=2), min_size=1),
    st.lists(_BROKEN | _BROKEN.map("a.x=".__add__), max_size=2),
)
def test_any_text_gives_a_tree_or_a_config_error(working_folder, tree, overrides):
    path = working_folder / "a.yaml"
    path.write_text(dump(tree), encoding="utf-8")
    try:
        compose(path, overrides)
    except ConfigError as error:
        assert error.faults  # noqa: PT017 (either outcome is right)
