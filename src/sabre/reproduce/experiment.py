"""What an experiment is: cells of a table, each with the runs behind it and what the paper has there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.options import Options
from sabre.reproduce.work import Chains, Work

__all__ = ["SCALES", "Cell", "Experiment", "Scale", "parse_seeds", "scale_named", "works_of"]


class Scale(NamedTuple):
    """How large a run is: the share of the steps, the samples that judge it, and whether everything else is tiny."""

    name: str
    share: float
    num_samples: int
    is_tiny: bool = False

    def options(self, options: Options) -> Options:
        """The options at this scale."""
        if not self.is_tiny:
            return options.replace({"steps": max(1, round(options.steps * self.share))})
        tiny = {"steps": 3, "batch_size": 8, "buffer_size": 32, "prefill": 1, "width": 16, "depth": 1, "heads": 2}
        tiny |= {
            "mcmc_steps": 2,
            "mcmc_interval": 2,
            "eval_interval": 0,
            "jump_steps": 2,
            "eval_jump_steps": 4,
            "moments": 8,
        }
        return options.replace(tiny)

    def chains(self, chains: Chains) -> Chains:
        """The chains at this scale: they are cheap, and cut short only where everything is tiny."""
        return Chains(chains.radius, num_chains=8, burn_in=4, draws=4, thin=2) if self.is_tiny else chains


SCALES = {
    "paper": Scale("paper", 1.0, 16_384),
    "quarter": Scale("quarter", 0.25, 4096),
    "smoke": Scale("smoke", 0.0, 32, is_tiny=True),
}


class Cell(NamedTuple):
    """A place in a table: a row (a method) of a section (a target), how it is made, what the paper has for it.

    `note` says what has to be known of the section.
    """

    section: str
    row: str
    work: Work
    paper: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Experiment:
    """A table of the paper. `repeated` rows are run with every seed, the others with the first one alone.

    `metrics` are the columns in their order. `pictures` names the kind of figure that belongs to the table, for the
    sections in `pictured`.
    """

    name: str
    title: str
    about: str
    cells: Callable[[Scale], list[Cell]]
    metrics: Sequence[str]
    repeated: Sequence[str] = ()
    pictures: str = ""
    pictured: Sequence[str] = field(default=())


def works_of(cells: Sequence[Cell], seeds: Sequence[int], repeated: Sequence[str]) -> list[list[Work]]:
    """The runs behind each cell, one per seed."""
    return [[cell.work.with_seed(s) for s in (seeds if cell.row in repeated else seeds[:1])] for cell in cells]


def scale_named(name: str) -> Scale:
    """The scale of that name."""
    if name not in SCALES:
        raise UnknownNameError("scale", name, SCALES)
    return SCALES[name]


def parse_seeds(text: str) -> list[int]:
    """ "0,1,2" as numbers."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0 or len(set(seeds)) != len(seeds):
        raise InvalidArgumentError(f"seeds is {text!r}; give different whole numbers such as 0,1,2")
    return seeds
