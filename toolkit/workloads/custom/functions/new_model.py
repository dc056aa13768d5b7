"""The model that the user's function makes."""

from __future__ import annotations

from torch import nn

from toolkit.errors import UserError
from toolkit.workloads.custom.functions.reading.signatures import EXAMPLES
from toolkit.workloads.custom.functions.sections import FunctionModel
from toolkit.workloads.custom.functions.user_code import UserCode


def new_model(code: UserCode, section: FunctionModel) -> nn.Module:
    """Return the model that `model` makes of its section. Raises UserError if it cannot be trained here."""
    found = code.model(section.arguments())
    place = code.place("model")
    if not isinstance(found, nn.Module):
        kind = type(found).__name__
        raise UserError(
            f"{place}: model returned {kind}, expected a torch.nn.Module, as in {EXAMPLES['model']}"
        )
    for name, module in found.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            raise UserError(
                f"{place}: {name or 'the model'} is a {type(module).__name__}, whose running averages "
                "depend on how samples are spread over processes: use GroupNorm or LayerNorm, or "
                "track_running_stats=False"
            )
    return found
