"""A pretrained tokenizer gives the ids that its model was trained with."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.toolkit.nlp.tokenizers.pieces import PIECES, SENTENCE, bare, bert, byte_level, token_numbers
from toolkit.errors import DataError
from toolkit.nlp.tokenizers import tokenizer_files, wordpieces
from toolkit.nlp.tokenizers.pretrained import PretrainedEncoder

#: What BERT's normalizer treats in some way of its own, and what spells special tokens.
_LETTERS = "ab,.é\u0301ßİΣ東 \t\n\r\x0b\x1c\x85\xa0\u200b\x07\ufffd[]"
TEXTS = st.text(
    st.sampled_from(_LETTERS) | st.characters(exclude_categories=["Cs"]), max_size=30
) | st.sampled_from(["[SEP]", "x[PAD]y [PAD]", "a [MASK] b", "[UNK][CLS]", "a" * 120])


def plain(path: str, texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
    """Ids and spans as the library gives them, with nothing of ours around it."""
    loaded = Tokenizer.from_file(f"{path}/tokenizer.json")
    loaded.no_truncation()
    loaded.no_padding()
    encodings = [loaded.encode(text, add_special_tokens=False) for text in texts]
    return [(encoding.ids, encoding.offsets) for encoding in encodings]


def found(using: PretrainedEncoder, texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
    pieces, result = using.encode(texts), []
    numbered = token_numbers(pieces)
    for numbers, (starts, ends) in zip(numbered, pieces.spans(range(len(numbered))), strict=True):
        result.append((numbers, list(zip(starts.tolist(), ends.tolist(), strict=True))))
    return result


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The real tokenizer of a small encoder where one is named, else one of a few pieces."""
    return os.environ.get("STK_MINILM") or bert(tmp_path_factory.mktemp("bert"))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, max_size=6))
def test_encoding_word_by_word_equals_encoding_the_whole_text(bert_folder: str, texts: list[str]) -> None:
    using = PretrainedEncoder(bert_folder, 128)
    assert using._words is not None
    expected = plain(bert_folder, texts)
    unknown = using.unk_id
    hidden = [
        ([unknown if number == using.pad_id else number for number in ids], spans) for ids, spans in expected
    ]
    assert found(using, texts) == hidden


def test_full_word_cache_does_not_change_encoding(bert_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    using = PretrainedEncoder(bert_folder, 128)
    monkeypatch.setattr(wordpieces, "_REMEMBERED", 2)
    texts = [SENTENCE, "good film", "bad film , good letter"]
    assert [found(using, [text]) for text in texts * 2] == [plain(bert_folder, [text]) for text in texts * 2]


@pytest.mark.parametrize("make", [byte_level, bare])
def test_tokenizers_without_words_encode_whole_texts(tmp_path: Path, make: Callable[[Path], str]) -> None:
    path, texts = make(tmp_path), ["aa  ab the hem\nba", "the é", "b"]
    assert found(PretrainedEncoder(path, 8), texts) == plain(path, texts)


def test_special_tokens_come_from_the_post_processor_of_the_tokenizer(tmp_path: Path) -> None:
    ids = Tokenizer.from_file(f"{bert(tmp_path / 'bert')}/tokenizer.json").token_to_id
    using = PretrainedEncoder(str(tmp_path / "bert"), 8)
    assert (list(using.before), list(using.after)) == ([ids("[CLS]")], [ids("[SEP]")])
    using = PretrainedEncoder(byte_level(tmp_path / "bytes"), 8)
    assert (list(using.before), list(using.after), using.pad_id, using.unk_id) == ([0], [2], 1, None)
    using = PretrainedEncoder(bare(tmp_path / "bare"), 8)
    assert (list(using.before), list(using.after), using.pad_id, using.unk_id) == ([], [], 0, 1)


def test_truncation_and_padding_in_the_file_are_ignored(tmp_path: Path) -> None:
    """Tokenizer files of sentence encoders often set both."""
    path = bert(tmp_path)
    loaded = Tokenizer.from_file(f"{path}/tokenizer.json")
    loaded.enable_truncation(4)
    loaded.enable_padding(length=6)
    loaded.save(f"{path}/tokenizer.json")
    using = PretrainedEncoder(path, 128)
    (numbers,) = token_numbers(using.encode([SENTENCE]))
    assert [loaded.id_to_token(number) for number in numbers] == PIECES
    assert (len(using.before), len(using.after)) == (1, 1)


def test_a_padding_token_in_a_text_becomes_the_unknown_token(tmp_path: Path) -> None:
    using = PretrainedEncoder(bert(tmp_path), 8)
    (numbers,) = token_numbers(using.encode(["a [PAD] b"]))
    assert using.pad_id not in numbers
    assert numbers[1] == using.unk_id


def test_a_text_that_normalizes_to_nothing_is_one_unknown_token(tmp_path: Path) -> None:
    path = bare(tmp_path)
    loaded = json.loads((tmp_path / "tokenizer.json").read_text())
    loaded["normalizer"] = {"type": "Replace", "pattern": {"String": "!"}, "content": ""}
    (tmp_path / "tokenizer.json").write_text(json.dumps(loaded))
    assert token_numbers(PretrainedEncoder(path, 8).encode(["!!"])) == [[1]]


@pytest.mark.parametrize(
    "files, pad_id",
    [
        ({"tokenizer_config.json": {"pad_token": "c"}}, "c"),
        ({"tokenizer_config.json": {"pad_token": {"content": "c", "lstrip": False}}}, "c"),
        ({"special_tokens_map.json": {"pad_token": "c"}}, "c"),
        ({"config.json": {"pad_token_id": 3}}, "[SEP]"),
        ({"tokenizer_config.json": {"eos_token": "c"}}, "c"),
        ({"tokenizer_config.json": {"pad_token": None}, "config.json": {"pad_token_id": None}}, "[PAD]"),
        ({}, "[PAD]"),
    ],
)
def test_the_padding_token_is_found_in_any_file_of_the_folder(
    tmp_path: Path, files: dict[str, dict[str, object]], pad_id: str
) -> None:
    path = bert(tmp_path, padding=None)
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    expected = Tokenizer.from_file(f"{path}/tokenizer.json").token_to_id(pad_id)
    assert PretrainedEncoder(path, 8).pad_id == expected


def test_a_tokenizer_without_padding_is_refused(tmp_path: Path) -> None:
    path = byte_level(tmp_path, padding=None)
    with pytest.raises(DataError, match=r'names no padding token.* as "pad_token"'):
        PretrainedEncoder(path, 8)


def test_max_tokens_must_leave_room_for_one_token(tmp_path: Path) -> None:
    path = bert(tmp_path)
    with pytest.raises(DataError, match=r"max_tokens is 2, .* 2 special tokens .*expected at least 3"):
        PretrainedEncoder(path, 2)
    PretrainedEncoder(path, 3)


def test_a_tokenizer_is_identified_by_its_content_not_by_its_path(tmp_path: Path) -> None:
    first, copy = bert(tmp_path / "first"), str(shutil.copytree(tmp_path / "first", tmp_path / "copy"))
    assert tokenizer_files.content(first) == tokenizer_files.content(copy)
    (Path(copy) / "tokenizer_config.json").write_text('{"pad_token": "c"}')
    assert tokenizer_files.content(first) != tokenizer_files.content(copy)
    assert tokenizer_files.content(first) != tokenizer_files.content(byte_level(tmp_path / "other"))


# -- what is missing -------------------------------------------------------------------------------


def test_a_folder_without_a_tokenizer_is_refused_with_its_file_names(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").touch()
    with pytest.raises(DataError, match=r"there is no tokenizer\.json.*it holds: vocab\.txt.*AutoTokenizer"):
        tokenizer_files.content(str(tmp_path))


def test_a_damaged_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"}')
    with pytest.raises(DataError, match=f"no model can be loaded from the folder {tmp_path}"):
        PretrainedEncoder(str(tmp_path), 512)


def test_a_damaged_tokenizer_config_is_named(tmp_path: Path) -> None:
    path = bert(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(DataError, match=r"tokenizer_config\.json: no JSON"):
        tokenizer_files.content(path)


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of a hub that is not asked."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path / "cache"


def test_a_hub_name_is_read_from_the_cache(tmp_path: Path, hub_cache: Path) -> None:
    snapshot = hub_cache / "models--some--encoder" / "snapshots" / "abc"
    bert(snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    assert tokenizer_files.content("some/encoder") == tokenizer_files.content(str(snapshot))


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize("name", ["some/encoder", "no such name"])
def test_a_name_that_is_neither_folder_nor_hub_model_is_refused(name: str) -> None:
    told = rf"'{name}' is not a folder here, and no hub gave a model of that name .* copy the folder"
    with pytest.raises(DataError, match=told):
        tokenizer_files.content(name)


@pytest.mark.usefixtures("hub_cache")
def test_an_absolute_path_is_never_taken_for_a_hub_name() -> None:
    with pytest.raises(DataError, match="there is no folder /no/such/folder"):
        tokenizer_files.content("/no/such/folder")
