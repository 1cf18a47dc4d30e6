"""The methods of the paper's tables, for each family of targets and each network."""

from sabre.options import Options
from sabre.presets import Preset, make_preset
from sabre.reproduce.experiment import Scale
from sabre.reproduce.work import Chains, Work
from sabre.targets import AbstractTarget, Ising, Potts

__all__ = ["LATTICES", "LEARNT", "METHODS", "SYNTHETIC", "chains", "lattice", "learnt", "synthetic"]

MDNS = "MDNS (WDCE)"
METHODS = {
    "MH MCMC": "mh",
    MDNS: "mdns",
    "LV (on-policy)": "lv",
    "LV + Buffer": "lv+replay",
    "LV + Buffer + MCMC": "lv+replay+mcmc",
    "TB (on-policy)": "tb",
    "TB + Buffer": "tb+replay",
    "TB + Buffer + MCMC": "tb+replay+mcmc",
}
"""The rows of the paper's tables."""
LEARNT = [row for row, method in METHODS.items() if method != "mh"]

SYNTHETIC = {
    "40gmm_d16": "paper/gmm40-d16",
    "40gmm_d32": "paper/gmm40-d32",
    "manywell_d32": "paper/manywell-d32",
    "manywell_d80": "paper/manywell-d80",
}
LATTICES: dict[str, tuple[str, float]] = {
    "ising beta=0.4407": ("ising", 0.4407),
    "ising beta=0.6": ("ising", 0.6),
    "ising beta=1.2": ("ising", 1.2),
    "potts beta=1.005": ("potts", 1.005),
    "potts beta=1.2": ("potts", 1.2),
}

_CAUSAL_STEPS = {"lv": 700, "tb": 700, "mdns": 700}
_CAUSAL_STEPS_WITH_REPLAY = 1300
"""Steps that make about two minutes on two cores."""
_VIT_STEPS = {8: 1000, 16: 100}


def lattice_target(name: str, size: int) -> AbstractTarget:
    """The lattice of that name in `LATTICES`."""
    kind, beta = LATTICES[name]
    return Ising(size, beta) if kind == "ising" else Potts(size, 3, beta)


def chains(target: AbstractTarget, scale: Scale, radius: int) -> Work:
    """The rival without learning: Metropolis-Hastings with Hamming-ball proposals."""
    return Work(target, scale.chains(Chains(radius)), scale.num_samples)


def learnt(target: AbstractTarget, options: Options, scale: Scale, schedule: str = "1") -> Work:
    """A sampler to be trained."""
    return Work(target, scale.options(options), scale.num_samples, schedule)


def synthetic_preset(name: str, row: str) -> Preset:
    """Target and options of a row on a Gray-coded target, with the paper's network and numbers."""
    method = METHODS[row]
    preset = make_preset(f"{SYNTHETIC[name]}-mdns" if method == "mdns" else SYNTHETIC[name])
    return preset if method == "mdns" else Preset(preset.target, preset.options.replace({"method": method}))


def synthetic(name: str, row: str, scale: Scale) -> Work:
    """A row of the paper on a Gray-coded target."""
    if METHODS[row] == "mh":
        return chains(make_preset(SYNTHETIC[name]).target, scale, radius=5)
    return learnt(*synthetic_preset(name, row), scale)


def lattice(name: str, row: str, scale: Scale, net: str, size: int) -> Work:
    """A row of the paper on a lattice: with the causal network of sabre, or with the paper's transformer."""
    target = lattice_target(name, size)
    if METHODS[row] == "mh":
        return chains(target, scale, radius=1)
    options = causal_options(row) if net == "causal" else _vit_options(name, row, size)
    return learnt(target, options, scale)


def causal_options(row: str) -> Options:
    """The causal network. MDNS learns from all masks of a trajectory at once there: cross-entropy over all steps."""
    method = METHODS[row]
    steps = _CAUSAL_STEPS.get(method, _CAUSAL_STEPS_WITH_REPLAY)
    options = Options(steps=steps, net="causal", eval_interval=100)
    if method == "mdns":
        changes = {"method": "ce", "batch_size": 256, "reuse": 10, "ema": 0.99, "grad_clip": 0.0}
        return options.replace(changes)
    return options.replace({"method": method})


def _vit_options(name: str, row: str, size: int) -> Options:
    """The paper's transformer and numbers, for a budget of steps that is stated in the table."""
    kind, method = LATTICES[name][0], METHODS[row]
    preset = f"paper/{kind}16-critical"
    options = make_preset(f"{preset}-mdns" if method == "mdns" else preset).options
    steps = _VIT_STEPS[size]
    if method == "mdns":
        return options.replace({"steps": steps, "learning_rate": 1e-3, "ema": 0.99})
    return options.replace({"steps": steps, "method": method})
