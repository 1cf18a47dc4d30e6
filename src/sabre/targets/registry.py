"""The named targets, and how a target comes back from its spec."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.targets.base import AbstractTarget
from sabre.targets.gmm40 import GMM40
from sabre.targets.imported import import_target
from sabre.targets.ising import Ising
from sabre.targets.manywell import ManyWell
from sabre.targets.potts import Potts

__all__ = ["TARGETS", "make_target"]

TARGETS: dict[str, type[AbstractTarget]] = {
    "gmm40": GMM40,
    "ising": Ising,
    "manywell": ManyWell,
    "potts": Potts,
}
"""Every target that a name alone stands for."""


def make_target(spec: Mapping[str, Any]) -> AbstractTarget:
    """The target that `spec` describes: {"name": "ising", "size": 16, "beta": 0.44}.

    A name with a colon, "my_module:my_log_density", is imported; it takes the arguments `dim` and `num_categories`.
    """
    arguments = dict(spec)
    name = arguments.pop("name", None)
    if not isinstance(name, str):
        raise InvalidArgumentError(f"target spec {dict(spec)} has no name; add one of {', '.join(sorted(TARGETS))}")
    if ":" in name:
        return _build(name, functools.partial(import_target, name), arguments)
    if name not in TARGETS:
        raise UnknownNameError("target", name, TARGETS)
    return _build(name, TARGETS[name], arguments)


def _build(name: str, build: Callable[..., AbstractTarget], arguments: Mapping[str, Any]) -> AbstractTarget:
    parameters = inspect.signature(build).parameters
    for argument in arguments:
        if argument not in parameters:
            raise UnknownNameError(f"argument of target {name}", argument, parameters)
    for argument, parameter in parameters.items():
        if argument not in arguments and parameter.default is inspect.Parameter.empty:
            raise InvalidArgumentError(f"target {name!r} needs the argument {argument!r}; add {argument}=... to it")
    return build(**arguments)
