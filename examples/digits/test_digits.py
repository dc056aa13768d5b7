"""A step gives one value for each sample."""

from digits import data, model, step
from torch.utils.data import default_collate


def test_a_step_gives_a_value_for_each_sample():
    samples = data("train")
    found = step(model(), default_collate([samples[index] for index in range(8)]))
    assert found["loss"].shape == found["accuracy"].shape == (8,)
