"""Every option of a run, with its default and what it means: the one list behind Python, command line and config."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.mcmc import KERNELS
from sabre.objectives import OBJECTIVES
from sabre.processes import ORDERS

__all__ = ["METHODS", "NETS", "PRIORITIES", "Options", "option_help"]

METHODS = tuple(a + b for a in OBJECTIVES for b in ("", "+replay", "+replay+mcmc"))
NETS = ("mlp", "vit", "causal", "equivariant")
PRIORITIES = ("weight", "density", "uniform")


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Options:
    """How to train. The defaults suit the causal network; presets hold the paper's values."""

    method: str = _option(
        "tb+replay+mcmc", f"objective ({', '.join(OBJECTIVES)}), alone or with +replay or +replay+mcmc"
    )
    net: str = _option("causal", "mlp, vit or causal; equivariant for leaps")
    steps: int = _option(3000, "number of gradient steps")
    seed: int = _option(0, "seed of all randomness of the run")

    width: int | None = _option(None, "hidden width (default: 256 for mlp, 64 else)")
    depth: int = _option(2, "number of hidden layers or transformer blocks")
    heads: int = _option(4, "attention heads")
    block: str = _option("auto", "sites per token: auto, 1, or sides such as 4 or 2x2")
    order: str = _option("auto", "order in which tokens are revealed: auto, random, raster, checkerboard, significance")
    schedule: str = _option("1", "tokens revealed per training step: k, or k_min-k_max")
    eval_schedule: str = _option("1", "tokens revealed per step when sampling and evaluating")
    informed: bool = _option(True, "add the local field of revealed neighbours to causal logits, if the target has one")

    window: int = _option(0, "side of the neighbourhood that the equivariant network sees; 0 for all sites")
    jump_steps: int = _option(32, "steps of the annealed jumps in training (leaps)")
    eval_jump_steps: int = _option(128, "steps of the annealed jumps when sampling and evaluating (leaps)")
    kappa: float = _option(32.0, "rate of heat-bath moves beside the learnt jumps (leaps)")
    moments: int = _option(256, "states and times per gradient step (leaps)")

    batch_size: int = _option(128, "trajectories per gradient step, and MCMC chains")
    learning_rate: float = _option(2e-3, "learning rate of the network (AdamW)")
    log_z_learning_rate: float = _option(0.1, "learning rate of log Z")
    log_z_init: float | None = _option(
        None, "first log Z (default: exact at beta = 0, else the mean log-weight of a batch)"
    )
    carry_log_z: bool = _option(True, "move log Z along with the annealed target by its known derivative")
    weight_decay: float = _option(0.0, "weight decay of the network")
    grad_clip: float = _option(1.0, "largest norm of the gradient; 0 for none")
    ema: float = _option(0.0, "decay of averaged weights, which then draw all samples; 0 for none")
    replicates: int = _option(8, "random masks per sample and gradient step (wdce)")
    reuse: int = _option(1, "gradient steps from each on-policy batch")
    anneal: float = _option(0.3, "share of the steps over which the target's exponent grows from 0 to 1")
    warm_up: float | None = _option(None, "keep the exponent at this value in that share (default: it grows)")
    decay: float = _option(0.5, "share of the steps, at the end, over which the learning rate falls to 0")
    drop: float = _option(0.0, "share of a trajectory's steps left out of the gradient, at random")

    off_to_on: float = _option(4.0, "R: off-policy steps per on-policy step (with +replay)")
    buffer_size: int = _option(12800, "states in the replay buffer")
    priority: str = _option("weight", "replay priority: weight (importance weight at insertion), density or uniform")
    prefill: int = _option(10, "on-policy batches in the buffer before the first step")
    kernel: str = _option("auto", "MCMC kernel for exploration: auto, hamming, categorical, gibbs, swendsen-wang")
    hamming_radius: int = _option(1, "H of the Hamming-ball kernel")
    mcmc_ratio: float = _option(0.9, "r: share of an off-policy batch taken from the MCMC buffer")
    mcmc_interval: int = _option(5, "I: steps between explorations")
    mcmc_steps: int = _option(5, "L: kernel steps per exploration")

    device: str = _option("auto", "auto, cpu, cuda, cuda:1")
    eval_interval: int = _option(250, "steps between the evaluations of the curve; 0 for none")
    eval_samples: int = _option(512, "samples of each of them")
    final_samples: int = _option(4096, "samples of the evaluation at the end; 0 for none")
    log_interval: int = _option(10, "steps between metric records")
    checkpoint_interval: int = _option(500, "steps between checkpoints")
    checkpoint_minutes: float = _option(5.0, "longest time between checkpoints, however few steps were made")

    def __post_init__(self) -> None:
        for name, known in _NAMES.items():
            value = getattr(self, name)
            if value not in known and (name, value) != ("net", "custom"):
                raise UnknownNameError(name, value, known)
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.type in (str, bool) and (not isinstance(value, item.type) or value == ""):
                what = "True or False" if item.type is bool else f"text, such as {item.default!r}"
                raise InvalidArgumentError(f"{item.name} is {value!r}; give {what}")
        for name, low, high, kind in _RANGES:
            value = getattr(self, name)
            good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            good = good and (kind is float or isinstance(value, int)) and low <= value <= high
            if not good and not (value is None and name in _MAY_BE_NONE):
                raise InvalidArgumentError(f"{name} is {value!r}; choose {_range_text(kind, low, high)}")

        self._check_origins()
        self._check_estimator()
        if (self.objective == "leaps") != (self.net == "equivariant"):
            raise InvalidArgumentError(
                f"method {self.method!r} and net {self.net!r} do not go together: leaps learns jumps with the "
                "equivariant network, and it alone does; choose both or neither"
            )

    def _check_estimator(self) -> None:
        """What random masks and batches of other weights cannot be combined with."""
        if self.objective == "wdce" and self.net == "causal":
            raise InvalidArgumentError(
                f"method is {self.method!r} with a causal network, which learns all steps of a trajectory in one pass "
                "and does not take random masks; use ce, or net mlp or vit"
            )
        if self.objective == "wdce" and self.drop:
            raise InvalidArgumentError(f"drop is {self.drop}: wdce learns from random masks, not from steps; use 0")
        if self.objective == "rkl" and (self.reuse > 1 or self.ema):
            raise InvalidArgumentError(
                "rkl learns from samples of the current weights; set reuse to 1 and ema to 0, or use another method"
            )

    def _check_origins(self) -> None:
        """ce and rkl weight a batch by the law that it was drawn from, which must be the model's or the target's."""
        known = ("weight", "uniform") if not self.uses_mcmc else ("weight",)
        if self.objective in ("ce", "wdce", "rkl") and self.uses_replay and self.priority not in known:
            raise InvalidArgumentError(
                f"priority is {self.priority!r}, by which the replayed states follow neither the model nor the target; "
                f"with {self.method} use {' or '.join(known)}"
            )

    @property
    def objective(self) -> str:
        return self.method.split("+")[0]

    @property
    def uses_replay(self) -> bool:
        return "+replay" in self.method

    @property
    def uses_mcmc(self) -> bool:
        return "+mcmc" in self.method

    def replace(self, changes: dict[str, Any]) -> "Options":
        """The same options but for those named; an unknown name is an error that suggests the nearest."""
        known = [f.name for f in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise UnknownNameError("option", name, known)
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def option_help(name: str) -> str:
    """The sentence that explains an option."""
    return str(Options.__dataclass_fields__[name].metadata["help"])


_INF = float("inf")
_NAMES: dict[str, tuple[str, ...]] = {
    "method": METHODS,
    "net": NETS,
    "order": ("auto", *ORDERS),
    "kernel": ("auto", *KERNELS),
    "priority": PRIORITIES,
}
_MAY_BE_NONE = ("width", "log_z_init", "warm_up")
_RANGES: tuple[tuple[str, float, float, type], ...] = (
    ("steps", 1, _INF, int),
    ("seed", 0, 2**63 - 1, int),
    ("width", 1, _INF, int),
    ("depth", 1, _INF, int),
    ("heads", 1, _INF, int),
    ("window", 0, _INF, int),
    ("jump_steps", 1, _INF, int),
    ("eval_jump_steps", 1, _INF, int),
    ("kappa", 1e-6, _INF, float),
    ("moments", 2, _INF, int),
    ("batch_size", 2, _INF, int),
    ("learning_rate", 0, _INF, float),
    ("log_z_learning_rate", 0, _INF, float),
    ("log_z_init", -_INF, _INF, float),
    ("weight_decay", 0, _INF, float),
    ("grad_clip", 0, _INF, float),
    ("ema", 0, 0.999999, float),
    ("replicates", 1, _INF, int),
    ("reuse", 1, _INF, int),
    ("anneal", 0, 1, float),
    ("warm_up", 0, 1, float),
    ("decay", 0, 1, float),
    ("drop", 0, 0.999, float),
    ("off_to_on", 0, 1e4, float),
    ("buffer_size", 1, _INF, int),
    ("prefill", 1, _INF, int),
    ("hamming_radius", 1, _INF, int),
    ("mcmc_ratio", 0, 1, float),
    ("mcmc_interval", 1, _INF, int),
    ("mcmc_steps", 1, _INF, int),
    ("eval_interval", 0, _INF, int),
    ("eval_samples", 2, _INF, int),
    ("final_samples", 0, _INF, int),
    ("log_interval", 1, _INF, int),
    ("checkpoint_interval", 1, _INF, int),
    ("checkpoint_minutes", 0, _INF, float),
)


def _range_text(kind: type, low: int | float, high: int | float) -> str:
    noun = "a whole number" if kind is int else "a number"
    if math.isinf(high):
        return noun if math.isinf(low) else f"{noun} of at least {low:g}"
    return f"{noun} between {low:g} and {high:g}"
