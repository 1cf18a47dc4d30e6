"""One thing to be run: a sampler to be trained or chains to be walked, and how its samples are judged."""

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import Any

from sabre.options import Options
from sabre.targets import AbstractTarget

__all__ = ["Chains", "Work"]

_WITHOUT_EFFECT = ("device", "eval_interval", "eval_samples", "final_samples", "log_interval")
_BOOKKEEPING = ("checkpoint_interval", "checkpoint_minutes")


@dataclass(frozen=True)
class Chains:
    """Markov chains as a sampler: `draws` states of each of `num_chains`, `thin` steps apart after `burn_in`.

    The kernel is the Hamming-ball proposal of that radius.
    """

    radius: int
    num_chains: int = 128
    burn_in: int = 2000
    draws: int = 128
    thin: int = 200
    seed: int = 0


@dataclass(frozen=True)
class Work:
    """A target, what samples it, and how it is judged: tokens per step (`schedule`) and number of samples."""

    target: AbstractTarget
    recipe: Options | Chains
    num_samples: int
    schedule: str = "1"

    def with_seed(self, seed: int) -> "Work":
        return replace(self, recipe=replace(self.recipe, seed=seed))

    @property
    def seed(self) -> int:
        return self.recipe.seed

    @property
    def method(self) -> str:
        return "mh" if isinstance(self.recipe, Chains) else self.recipe.method

    @property
    def key(self) -> dict[str, Any]:
        """All that decides what the run will be but for the seed, as plain JSON values.

        Options that have their default are left out, so that runs keep their names when options are added.
        """
        ignored = ("seed", *_WITHOUT_EFFECT, *_BOOKKEEPING)
        defaults = {field.name: field.default for field in dataclasses.fields(self.recipe)}
        recipe = {
            name: value for name, value in vars(self.recipe).items() if name not in ignored and value != defaults[name]
        }
        return {"target": self.target.spec, "recipe": recipe}

    @property
    def name(self) -> str:
        """The name of the run directory: readable, and different for whatever differs in `key`."""
        net = "" if isinstance(self.recipe, Chains) else f"-{self.recipe.net}"
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:8]
        words = f"{_slug(self.target)}-{self.method}{net}-seed{self.seed}-{digest}"
        return re.sub(r"[^\w.+-]+", "-", words)

    @property
    def evaluation(self) -> str:
        """The name of the file, without ending, that holds the figures of this way of judging."""
        return f"schedule-{self.schedule}-samples-{self.num_samples}"


def _slug(target: AbstractTarget) -> str:
    spec = target.spec or {}
    shown = [str(spec["name"])] + [f"{key}{spec[key]}" for key in ("size", "q", "dim", "beta") if key in spec]
    return "-".join(shown)
