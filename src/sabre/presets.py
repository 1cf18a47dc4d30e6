"""Named settings: a target and the options to train it with, as functions that return whole values."""

from collections.abc import Callable
from typing import NamedTuple

from sabre.errors import UnknownNameError
from sabre.options import Options
from sabre.targets import GMM40, AbstractTarget, Ising, ManyWell, Potts

__all__ = ["PRESETS", "Preset", "make_preset"]


class Preset(NamedTuple):
    """What `train` needs."""

    target: AbstractTarget
    options: Options


_PAPER = Options(
    method="tb+replay+mcmc",
    steps=20_000,
    batch_size=128,
    learning_rate=1e-3,
    log_z_learning_rate=0.1,
    log_z_init=0.0,
    carry_log_z=False,
    weight_decay=0.0,
    grad_clip=1.0,
    anneal=0.5,
    decay=0.0,
    off_to_on=2.0,
    buffer_size=12_800,
    priority="weight",
    prefill=10,
    mcmc_ratio=0.2,
    mcmc_interval=500,
    mcmc_steps=100,
    block="1",
    order="random",
    informed=False,
    eval_schedule="1",
    eval_interval=1000,
    final_samples=16_384,
    checkpoint_interval=2000,
)
"""What all experiments of the paper share: its tables of hyperparameters and the errata."""


def _synthetic(target: AbstractTarget, layers: int, schedule: str = "1") -> Preset:
    """`layers` as in the paper's table, taken to count linear maps, so one hidden layer fewer.

    An inference: with one hidden layer on-policy training on 40GMM, d = 16, ends near the paper's bounds, with two not.
    """
    options = _PAPER.replace(
        {
            "net": "mlp",
            "width": 256,
            "depth": layers - 1,
            "schedule": schedule,
            "kernel": "hamming",
            "hamming_radius": 5,
        }
    )
    return Preset(target, options)


def _lattice(target: AbstractTarget, width: int) -> Preset:
    options = _PAPER.replace(
        {
            "net": "vit",
            "width": width,
            "depth": 2,
            "heads": 4,
            "schedule": "4",
            "kernel": "swendsen-wang",
            "eval_samples": 128,
        }
    )
    return Preset(target, options)


def _mdns(preset: Preset) -> Preset:
    """The rival of the paper on the same target with the same network: weighted denoising cross-entropy.

    Samples of the averaged weights, each batch used for ten steps, one site per step, no clipping.
    """
    changes = {
        "method": "wdce",
        "steps": 50_000,
        "batch_size": 256,
        "learning_rate": 1e-4,
        "grad_clip": 0.0,
        "ema": 0.9999,
        "replicates": 8,
        "reuse": 10,
        "schedule": "1",
        "eval_interval": 2500,
        "checkpoint_interval": 5000,
    }
    return Preset(preset.target, preset.options.replace(changes))


_HIGH_TEMPERATURE = 0.28
"""The inverse temperature of the lattice at which the published form of MDNS warms up."""


def _published_mdns(preset: Preset, beta: float, depth: int) -> Preset:
    """The larger form that was published: more blocks, and a warm-up at high temperature instead of annealing."""
    small = _mdns(preset)
    changes = {"depth": depth, "warm_up": _HIGH_TEMPERATURE / beta, "anneal": 0.2}
    return Preset(small.target, small.options.replace(changes))


_EXPERIMENTS: dict[str, Callable[[], Preset]] = {
    "paper/gmm40-d16": lambda: _synthetic(GMM40(dim=2), layers=2),
    "paper/gmm40-d32": lambda: _synthetic(GMM40(dim=4), layers=4),
    "paper/manywell-d32": lambda: _synthetic(ManyWell(dim=4), layers=2),
    "paper/manywell-d80": lambda: _synthetic(ManyWell(dim=10), layers=4, schedule="4"),
    "paper/ising16-critical": lambda: _lattice(Ising(size=16, beta=0.4407), width=64),
    "paper/ising16-low": lambda: _lattice(Ising(size=16, beta=0.6), width=64),
    "paper/ising16-lower": lambda: _lattice(Ising(size=16, beta=1.2), width=64),
    "paper/potts16-critical": lambda: _lattice(Potts(size=16, q=3, beta=1.005), width=128),
    "paper/potts16-low": lambda: _lattice(Potts(size=16, q=3, beta=1.2), width=128),
}


def _rival(name: str) -> Callable[[], Preset]:
    return lambda: _mdns(_EXPERIMENTS[name]())


def _leaps(target: AbstractTarget, width: int, depth: int, steps: int) -> Preset:
    """The rival that jumps: sixty steps from what chains have visited for each new set of chains, forwards and back."""
    options = Options(
        method="leaps+replay+mcmc",
        net="equivariant",
        width=width,
        depth=depth,
        steps=steps,
        learning_rate=3e-3,
        grad_clip=100.0,
        anneal=0.0,
        off_to_on=60.0,
        buffer_size=25_000,
        prefill=1,
        mcmc_ratio=0.5,
        mcmc_interval=61,
        mcmc_steps=5,
        kernel="swendsen-wang",
        eval_interval=0,
    )
    return Preset(target, options)


PRESETS: dict[str, Callable[[], Preset]] = {
    **_EXPERIMENTS,
    **{f"{name}-mdns": _rival(name) for name in _EXPERIMENTS},
    "mdns/ising16-critical": lambda: _published_mdns(_EXPERIMENTS["paper/ising16-critical"](), 0.4407, 4),
    "mdns/ising16-low": lambda: _published_mdns(_EXPERIMENTS["paper/ising16-low"](), 0.6, 4),
    "mdns/potts16-critical": lambda: _published_mdns(_EXPERIMENTS["paper/potts16-critical"](), 1.005, 6),
    "leaps/ising8-critical": lambda: _leaps(Ising(size=8, beta=0.4407), 32, 1, 3000),
    "leaps/ising8-low": lambda: _leaps(Ising(size=8, beta=0.6), 32, 1, 3000),
    "leaps/ising16-critical": lambda: _leaps(Ising(size=16, beta=0.4407), 64, 2, 3000),
    "leaps/ising16-low": lambda: _leaps(Ising(size=16, beta=0.6), 64, 2, 3000),
    "leaps/potts16-low": lambda: _leaps(Potts(size=16, q=3, beta=1.2), 64, 2, 3000),
    "mdns/potts16-low": lambda: _published_mdns(_EXPERIMENTS["paper/potts16-low"](), 1.2, 6),
}


def make_preset(name: str) -> Preset:
    """The preset of that name."""
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return PRESETS[name]()
