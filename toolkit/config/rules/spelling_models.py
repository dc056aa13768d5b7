"""What must hold in the models of the spelling study."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.config.kinds.spelling import SpellingTexts
from toolkit.config.kinds.spelling_models import AttentionModel, TokenizationRepair, TokenizationRepairPlus
from toolkit.config.rules.book import Broken, rule
from toolkit.config.schema import Experiment

#: Keep, insert, delete.
_REPAIR_CLASSES = 3


@rule("model.kind", "model.hidden_dim", "model.num_heads")
def _hidden_dim(experiment: Experiment) -> Iterator[Broken]:
    model = experiment.model
    if not isinstance(model, AttentionModel):
        return
    key = ("model", "hidden_dim")
    if model.hidden_dim % 2:
        problem = f"found {model.hidden_dim}, but half of a place's vector are sines, half cosines"
        yield Broken(key=key, problem=problem, hint="an even number")
    elif model.hidden_dim % model.heads:
        problem = f"found {model.hidden_dim}, which {model.heads} heads of attention cannot share equally"
        yield Broken(key=key, problem=problem, hint="a multiple of model.num_heads (of 64, if that is null)")


@rule("model.kind", "model.class_weights")
def _class_weights(experiment: Experiment) -> Iterator[Broken]:
    model = experiment.model
    if isinstance(model, TokenizationRepair) and len(model.class_weights) != _REPAIR_CLASSES:
        problem = f"found {len(model.class_weights)} weights"
        hint = "three: of keep, of insert, of delete"
        yield Broken(key=("model", "class_weights"), problem=problem, hint=hint)


@rule("task.kind", "model.kind", "model.num_sec_layers", "data.output_tokenizer_path")
def _written_words(experiment: Experiment) -> Iterator[Broken]:
    model, data = experiment.model, experiment.data
    if not isinstance(model, TokenizationRepairPlus) or not isinstance(data, SpellingTexts):
        return
    key = ("data", "output_tokenizer_path")
    if model.num_sec_layers and data.output_tokenizer_path is None:
        problem = f"is missing, but the model's {model.num_sec_layers} model.num_sec_layers write words"
        yield Broken(key=key, problem=problem, hint="the JSON file of the tokenizer that writes")
    elif data.output_tokenizer_path is not None and not model.num_sec_layers:
        problem = "found one, but nothing is written where model.num_sec_layers is 0"
        yield Broken(key=key, problem=problem)
