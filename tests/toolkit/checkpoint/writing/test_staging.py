"""Staged bytes are a valid safetensors file, and later changes of the tensors do not affect them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save_model
from torch import nn

from tests.toolkit.support.checkpointing import new_state, state_at
from toolkit.checkpoint.state import Progress, TrainState
from toolkit.checkpoint.writing.direct_io import BLOCK
from toolkit.checkpoint.writing.staging import PIECE, Buffer, Staging
from toolkit.errors import UserError
from toolkit.run.run_dir import PROGRESS, TRAINING, WEIGHTS

DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
)


def content(buffer: Buffer) -> bytes:
    return b"".join(buffer.pieces())


def filled(tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None) -> Buffer:
    buffer = Buffer()
    buffer.fill(tensors, metadata or {})
    return buffer


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, torch.Tensor]:
    """Tensors of all kinds, shapes with zeros and scalars among them, under any names."""
    names = draw(st.lists(st.text(min_size=1, max_size=12), unique=True, max_size=8))
    found = {}
    for name in names:
        if name == "__metadata__":
            continue
        shape = draw(st.lists(st.integers(0, 4), max_size=3))
        dtype = draw(st.sampled_from(DTYPES))
        numbers = torch.arange(float(torch.Size(shape).numel())).reshape(shape) + draw(st.integers(0, 9))
        found[name] = (numbers % 3 == 0) if dtype is torch.bool else numbers.to(dtype)
    return found


@given(tensors())
def test_safetensors_reads_what_was_staged(given_tensors: dict[str, torch.Tensor]) -> None:
    raw = content(filled(given_tensors, {"format": "pt"}))
    read = load(raw)
    assert read.keys() == given_tensors.keys()
    for name, tensor in given_tensors.items():
        assert (read[name].dtype, read[name].shape) == (tensor.dtype, tensor.shape)
        assert bits(read[name]) == bits(tensor)


@given(tensors())
def test_tensors_are_aligned_and_contiguous_in_the_file(given_tensors: dict[str, torch.Tensor]) -> None:
    raw = content(filled(given_tensors))
    begin = 8 + int.from_bytes(raw[:8], "little")
    assert begin % 8 == 0
    ends = [0]
    for name, facts in json.loads(raw[8:begin]).items():
        start, end = facts["data_offsets"]
        assert (begin + start) % given_tensors[name].itemsize == 0
        assert start == ends[-1]
        ends.append(end)
    assert begin + ends[-1] == len(raw)


def test_tensor_in_another_memory_layout_keeps_its_numbers() -> None:
    turned = torch.arange(6.0).reshape(2, 3).T
    strided = torch.arange(10)[::2]
    read = load(content(filled({"turned": turned, "strided": strided})))
    assert torch.equal(read["turned"], turned)
    assert torch.equal(read["strided"], strided)


def test_buffer_is_reused_until_the_tensors_change_shape_or_type() -> None:
    buffer = filled({"a": torch.ones(8), "b": torch.ones(3)})
    (first,) = buffer.pieces()
    buffer.fill({"a": torch.zeros(8), "b": torch.zeros(3)}, {})
    (again,) = buffer.pieces()
    # The same memory: what was one is zero.
    assert bytes(first) == bytes(again)
    assert bytes(first).endswith(bytes(44))
    buffer.fill({"a": torch.ones(8, dtype=torch.float64)}, {})
    assert load(content(buffer))["a"].tolist() == [1.0] * 8


def test_pieces_of_a_large_file_are_bounded() -> None:
    buffer = filled({"a": torch.zeros(PIECE + 1, dtype=torch.uint8)})
    first, rest = buffer.pieces()
    assert len(first) == PIECE
    assert 1 < len(rest) < 1000
    assert content(buffer)[-PIECE - 1 :] == bytes(PIECE + 1)


def test_buffer_is_page_aligned_for_direct_io() -> None:
    buffer = filled({"a": torch.ones(3), "b": torch.ones(5)})
    assert torch.frombuffer(next(buffer.pieces()), dtype=torch.uint8).data_ptr() % BLOCK == 0


def test_unsupported_dtype_is_named() -> None:
    with pytest.raises(TypeError, match=r"'z' is of torch\.complex128"):
        filled({"z": torch.zeros(1, dtype=torch.complex128)})


class Tied(nn.Module):
    """Two names for one matrix, as in a language model, and a view of a part of another one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.out = nn.Linear(3, 5)
        self.out.weight = self.embedding.weight
        self.register_buffer("whole", torch.arange(6.0))
        self.register_buffer("part", self.get_buffer("whole")[2:4])


def staged_weights(model: nn.Module, path: Path) -> Path:
    state = new_state()
    optimizer = torch.optim.SGD(model.parameters())
    staging = Staging()
    staging.fill(TrainState(Progress(), model, optimizer, state.scaler))
    path.write_bytes(b"".join(staging.files()[WEIGHTS]))
    return path


def test_shared_tensors_are_stored_once_as_safetensors_does(tmp_path: Path) -> None:
    model = Tied()
    ours = staged_weights(model, tmp_path / "ours.safetensors")
    save_model(model, str(tmp_path / "theirs.safetensors"))
    assert load_file(ours).keys() == load_file(tmp_path / "theirs.safetensors").keys()
    with safe_open(ours, "pt") as mine, safe_open(tmp_path / "theirs.safetensors", "pt") as theirs:
        assert mine.metadata() == {"format": "pt", **theirs.metadata()}
    copy = Tied()
    assert not any(load_model(copy, ours))
    assert torch.equal(copy.out.weight, model.out.weight)
    assert copy.out.weight is copy.embedding.weight


def test_all_files_of_a_state_are_staged(tmp_path: Path) -> None:
    staging = Staging()
    state = state_at(7)
    state.progress.chain = "5e"
    staging.fill(state)
    files = {name: b"".join(pieces) for name, pieces in staging.files().items()}
    assert list(files) == [WEIGHTS, TRAINING, PROGRESS]
    assert staging.size == sum(map(len, files.values()))
    assert (staging.step, staging.chain) == (7, "5e")
    weights, training = load(files[WEIGHTS]), load(files[TRAINING])
    assert all(torch.equal(weights[name], value) for name, value in state.model.state_dict().items())
    assert training.keys() == state.training_tensors().keys()
    progress = json.loads(files[PROGRESS])["progress"]
    assert (progress["step"], progress["best_step"]) == (7, 7)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_tensors_of_a_gpu_are_copied_before_they_change() -> None:
    model = nn.Linear(512, 512).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    staging = Staging()
    state = TrainState(Progress(), model, optimizer, torch.amp.GradScaler("cuda", enabled=False))
    for _ in range(3):
        before = model.weight.detach().cpu()
        staging.fill(state)
        model(torch.randn(8, 512, device="cuda")).square().sum().backward()
        optimizer.step()
        assert torch.equal(load(b"".join(staging.files()[WEIGHTS]))["weight"], before)


def test_reserved_buffers_are_used_by_the_first_copy() -> None:
    """The reserved buffers have the layout of the copy, so that nothing is allocated again."""
    state = state_at(3)
    staging = Staging()
    staging.reserve(state)
    staging.touch()
    reserved = staging.size
    buffer = staging._weights._file.data_ptr()
    staging.fill(state)
    assert staging.size - len(staging._progress) == reserved
    assert staging._weights._file.data_ptr() == buffer


def test_a_weight_that_is_a_slice_of_a_larger_tensor_is_refused(tmp_path: Path) -> None:
    model = nn.ParameterList([torch.ones(3, 8)[:, :4], torch.ones(2)])
    with pytest.raises(UserError, match="0 of the model"):
        staged_weights(model, tmp_path / "weights")
