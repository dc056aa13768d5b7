"""An experiment file that cannot be read, or that other programs write in their way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.config.composing import compose
from toolkit.config import load


class TestUnreadableFiles:
    """An experiment file that cannot be read is one clear fault."""

    @pytest.mark.parametrize(
        "content, origin, problem",
        [
            (b"", "a.yaml", "the file is empty"),
            (b"# nothing\n", "a.yaml", "the file is empty"),
            (b"- 1\n", "a.yaml", "the top level is a list"),
            (b"hello\n", "a.yaml", "the top level is a single value"),
            (b"name: x\nseed: \xff\n", "a.yaml:2", "not UTF-8 text: byte 14 is 0xff"),
            (b"name: x\ntrain: {a: ]\n", "a.yaml:2", "line 2, column 12"),
            (b"name: x\na: 'y\nb: 1\nc: 2\n\n", "a.yaml:2", "begins in line 2, column 4"),
            (b'name: x\na: "y\nb: 1\n', "a.yaml:2", "begins in line 2, column 4"),
            (b"name: x\na: [1,\n  2,\n", "a.yaml:2", "begins in line 2, column 4"),
            (b"name: x\na: 'y\nb: 1", "a.yaml:2", "begins in line 2, column 4"),
            (b"name: x\ntrain: {epochs: 3\nseed: 1\n", "a.yaml:3", "begins in line 2, column 8"),
            (b"name: x\n\ttrain: 1\n", "a.yaml:2", "not YAML"),
            (b"name: x\x07\n", "a.yaml", "not YAML"),
            (b"a: 1\n---\nb: 2\n", "a.yaml:2", "not YAML"),
            (b"[" * 100_000, "a.yaml:1", "nested more than"),
            (b"a: 1\nb: " + b"[{c: " * 5_000, "a.yaml:2", "nested more than"),
            (b"a:\n" + b"- " * 5_000, "a.yaml:2", "nested more than"),
            (b"".join(b" " * depth + b"a:\n" for depth in range(150)), "a.yaml:101", "nested more than"),
        ],
    )
    def test_a_malformed_file_is_reported_with_its_line(self, faults, content, origin, problem):
        Path("a.yaml").write_bytes(content)
        (fault,) = faults(load, Path("a.yaml"))
        assert (fault.key, fault.origin) == ("", origin)
        assert problem in fault.problem

    def test_a_missing_file_is_reported_with_the_nearest_name(self, movies, faults):
        (fault,) = faults(load, Path("configs/movie.yaml"))
        assert (fault.origin, fault.problem) == ("configs/movie.yaml", "there is no such file")
        assert fault.hint == "did you mean movies.yaml?"

    def test_a_folder_is_refused(self, movies, faults):
        (fault,) = faults(load, Path("configs"))
        assert "this is a folder" in fault.problem

    def test_a_file_without_read_permission_is_refused(self, movies, faults, request):
        movies.chmod(0)
        request.getfixturevalue("ordinary_user")
        (fault,) = faults(load, movies)
        assert "Permission denied" in fault.problem

    def test_a_path_with_a_nul_character_is_refused(self, faults):
        (fault,) = faults(load, Path("a\0b"))
        assert "cannot be read" in fault.problem


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["configs/movies.yaml", "configs/model/docnn.yaml"])
def test_windows_line_ends_give_the_same_tree(movies, name, mark):
    expected = compose(movies).tree
    path = Path(name)
    path.write_bytes(mark + path.read_bytes().replace(b"\n", b"\r\n"))
    assert compose(movies).tree == expected
