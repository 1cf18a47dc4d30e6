"""The one place where a device is chosen."""

import torch

from sabre.errors import InvalidArgumentError

__all__ = ["pick_device"]


def pick_device(name: str = "auto") -> torch.device:
    """The device of that name; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        first_line = str(error).splitlines()[0]
        raise InvalidArgumentError(f"device {name!r} is not available ({first_line}); use --device cpu") from error
    return device
