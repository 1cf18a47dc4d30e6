"""Targets that live in a user's own module, named as "my_module:my_log_density"."""

import importlib
import inspect
import os
import sys
from types import ModuleType
from typing import Any

from torch import nn

from sabre.errors import InvalidArgumentError, SabreError, TargetError, UnknownNameError
from sabre.targets.base import AbstractTarget
from sabre.targets.user import Target

__all__ = ["import_target"]


def import_target(path: str, dim: int | None = None, num_categories: int | None = None) -> AbstractTarget:
    """The target that "module:attribute" names.

    The attribute is a target, a class or function that makes one without arguments, or a log density; only the last
    needs `dim` and `num_categories`. Modules are found in the current directory and along PYTHONPATH.
    """
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise InvalidArgumentError(
            f"target {path!r} is not of the form 'module:attribute', e.g. 'my_module:log_density'"
        )
    module = _import_module(module_name, path)
    if not hasattr(module, attribute):
        public = [name for name in vars(module) if not name.startswith("_")]
        raise UnknownNameError(f"attribute of module {module_name}", attribute, public)
    found = getattr(module, attribute)
    if not isinstance(found, AbstractTarget) and not callable(found):
        raise InvalidArgumentError(
            f"target {path!r} is of type {type(found).__name__}, not callable; name a log density or a target"
        )
    if isinstance(found, AbstractTarget) or _takes_no_arguments(found):
        target = _finished_target(found, path, dim, num_categories)
        target.imported_from = path
        return target
    if dim is None or num_categories is None:
        missing = "dim" if dim is None else "num_categories"
        flag = "--" + missing.replace("_", "-")
        raise InvalidArgumentError(f"target {path!r} is a function of x; give {missing} too ({flag} in a shell)")
    spec = {"name": path, "dim": dim, "num_categories": num_categories}
    return Target(found, dim, num_categories, name=attribute, spec=spec)


def _import_module(name: str, path: str) -> ModuleType:
    # First on the path and for good, as `python -m` does: the user's functions may import their neighbours later.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise TargetError(f"target {path!r}: module {name} needs {error.name!r}, which is not installed") from error
        raise InvalidArgumentError(
            f"target {path!r}: there is no module {name!r} in {os.getcwd()} or on PYTHONPATH; "
            "run from its directory or add that to PYTHONPATH"
        ) from error
    except Exception as error:
        raise TargetError(
            f"target {path!r}: importing {name} raised {type(error).__name__}: {error}; "
            f"run python -c 'import {name}' to see where"
        ) from error


def _takes_no_arguments(found: Any) -> bool:
    """True of what makes a target; a module of PyTorch is a density, whatever it accepts."""
    if inspect.isclass(found) and issubclass(found, AbstractTarget):
        return True
    if isinstance(found, nn.Module):
        return False
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):
        return False
    return True


def _finished_target(found: Any, path: str, dim: int | None, num_categories: int | None) -> AbstractTarget:
    """`found` itself or what it makes; `dim` and `num_categories`, where given, must agree with it."""
    if isinstance(found, AbstractTarget):
        target = found
    else:
        try:
            target = found()
        except SabreError:
            raise
        except Exception as error:
            raise TargetError(
                f"target {path!r}: calling it raised {type(error).__name__}: {error}; "
                "give it defaults for all its arguments"
            ) from error
        if not isinstance(target, AbstractTarget):
            raise InvalidArgumentError(
                f"target {path!r} made a value of type {type(target).__name__}; return a target or take x as argument"
            )
    for argument, given, own in (
        ("dim", dim, target.dim),
        ("num_categories", num_categories, target.num_categories),
    ):
        if given is not None and given != own:
            raise InvalidArgumentError(f"target {path!r} has {argument}={own}, not {argument}={given}; leave it out")
    return target
