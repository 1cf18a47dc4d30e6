"""The ablations of the paper's appendix."""

from sabre.presets import Preset
from sabre.reproduce.experiment import Cell, Experiment, Scale
from sabre.reproduce.methods import (
    LATTICES,
    LEARNT,
    MDNS,
    METHODS,
    SYNTHETIC,
    causal_options,
    lattice,
    lattice_target,
    learnt,
    synthetic,
    synthetic_preset,
)
from sabre.reproduce.paper import paper_figures, paper_row

__all__ = ["ANNEALING", "MCMC", "PARTIAL", "RATIO", "RATIOS", "UNMASKING"]

RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_UNMASKED = (1, 2, 4, 8, 16)
_DROPPED = (0.0, 0.25, 0.5, 0.75, 0.875)
_GMM = "40gmm_d32"
_SECTIONS = (_GMM, "manywell_d80", "ising_16_beta0.6")
_TRAINED = ("TB (on-policy)", "TB + Buffer", "TB + Buffer + MCMC")
_IN_LISTS = {MDNS: "MDNS", "TB (on-policy)": "TB", "TB + Buffer": "TB+Buffer", "TB + Buffer + MCMC": "TB+Buffer+MCMC"}
"""What the paper calls the methods in its tables of schedules and partial trajectories."""


def _setting(section: str, row: str) -> Preset:
    """Target and options of a row in a section: the paper's on Gray codes, the causal network on the lattice."""
    if section in SYNTHETIC:
        return synthetic_preset(section, row)
    return Preset(lattice_target("ising beta=0.6", 16), causal_options(row))


def _annealing(scale: Scale) -> list[Cell]:
    cells = []
    for section in _SECTIONS:
        for row in LEARNT:
            for words, share in (("w/o annealing", 0.0), ("w/ annealing", None)):
                label = f"{'MDNS' if row == MDNS else row} {words}"
                target, options = _setting(section, row)
                changed = options if share is None else options.replace({"anneal": share})
                paper = paper_figures("ablation_annealing", label, section)
                cells.append(Cell(section, label, learnt(target, changed, scale), paper))
    return cells


def _ratio(scale: Scale) -> list[Cell]:
    cells = []
    for section in _SECTIONS:
        for row in ("TB + Buffer", "TB + Buffer + MCMC"):
            for ratio in RATIOS:
                target, options = _setting(section, row)
                work = learnt(target, options.replace({"off_to_on": ratio}), scale)
                cells.append(Cell(section, f"{row}, R = {ratio:g}", work, {}))
    return cells


def _mcmc(scale: Scale) -> list[Cell]:
    cells = []
    for name in LATTICES:
        section = name.replace(" beta=", "_beta")
        cells.append(Cell(section, "MDNS", lattice(name, MDNS, scale, "causal", 16), _mcmc_paper("MDNS", section)))
        for loss in ("LV", "TB"):
            for label, kernel in (("MH MCMC", "hamming"), ("Swendsen-Wang", "swendsen-wang")):
                options = causal_options(f"{loss} + Buffer + MCMC").replace({"kernel": kernel, "hamming_radius": 1})
                row = f"{loss} + Buffer + {label}"
                cells.append(
                    Cell(section, row, learnt(lattice_target(name, 16), options, scale), _mcmc_paper(row, section))
                )
    return cells


def _mcmc_paper(row: str, section: str) -> dict[str, object]:
    return paper_figures("ablation_mcmc", row, section)


def _unmasking(scale: Scale) -> list[Cell]:
    paper = paper_row("ablation_unmasking", "MDNS", "unmaskings_per_step", 1.0)
    cells = [Cell(_GMM, "MDNS, 1", synthetic(_GMM, MDNS, scale), paper)]
    for row in _TRAINED:
        target, options = synthetic_preset(_GMM, row)
        for k in _UNMASKED:
            paper = paper_row("ablation_unmasking", _IN_LISTS[row], "unmaskings_per_step", float(k))
            cells.append(Cell(_GMM, f"{row}, {k}", learnt(target, options, scale, schedule=str(k)), paper))
    return cells


def _partial(scale: Scale) -> list[Cell]:
    paper = paper_row("ablation_partial", "MDNS", "fraction_detached", 0.0)
    cells = [Cell(_GMM, "MDNS, 0", synthetic(_GMM, MDNS, scale), paper)]
    for row in _TRAINED:
        target, options = synthetic_preset(_GMM, row)
        for drop in _DROPPED:
            paper = paper_row("ablation_partial", _IN_LISTS[row], "fraction_detached", drop)
            work = learnt(target, options.replace({"drop": drop}), scale)
            cells.append(Cell(_GMM, f"{row}, {drop:g}", work, paper))
    return cells


_BOTH = ("elbo", "eubo", "sinkhorn", "transport", "mmd", "magnetisation_error", "correlation_error")
ANNEALING = Experiment(
    "ablation-annealing",
    "With and without annealing of the target",
    "The target's exponent grows from 0 to 1 over a part of the steps, or is 1 from the start.",
    _annealing,
    _BOTH,
)
RATIO = Experiment(
    "ablation-ratio",
    "Off-policy steps per on-policy step",
    "The ratio R of off-policy to on-policy steps; the paper shows this as a figure without numbers.",
    _ratio,
    ("elbo", "eubo", "transport"),
    repeated=tuple(f"{row}, R = {ratio:g}" for row in METHODS for ratio in RATIOS),
    pictures="ratio",
)
MCMC = Experiment(
    "ablation-mcmc",
    "Metropolis-Hastings against Swendsen-Wang for exploration",
    "The kernel that explores from the replay buffer.",
    _mcmc,
    ("sinkhorn", "transport", "magnetisation_error", "correlation_error", "elbo", "eubo"),
)
UNMASKING = Experiment(
    "ablation-unmasking",
    "Sites revealed per step at inference",
    "Samplers that were trained one site at a time, sampled with more sites per step.",
    _unmasking,
    ("elbo", "eubo", "sinkhorn", "transport"),
)
PARTIAL = Experiment(
    "ablation-partial",
    "Gradients from a part of the trajectory",
    "The share of the steps of a trajectory that is left out of the gradient.",
    _partial,
    ("elbo", "eubo", "sinkhorn", "transport"),
)
