"""The comparison with LEAPS."""

from sabre.presets import make_preset
from sabre.reproduce.experiment import Cell, Experiment, Scale
from sabre.reproduce.methods import MDNS, lattice, learnt
from sabre.reproduce.paper import paper_figures

__all__ = ["LEAPS"]

_COMPARED = {
    "ising_beta0.6": ("ising beta=0.6", "leaps/ising16-low"),
    "potts_beta1.2": ("potts beta=1.2", "leaps/potts16-low"),
}
_ROWS = {"MDNS": MDNS, "TB + Buffer": "TB + Buffer", "TB + Buffer + MCMC": "TB + Buffer + MCMC"}
_ALONE = {
    "ising 8 x 8, beta=0.4407": "leaps/ising8-critical",
    "ising 8 x 8, beta=0.6": "leaps/ising8-low",
    "ising 16 x 16, beta=0.4407": "leaps/ising16-critical",
}


def _cells(scale: Scale) -> list[Cell]:
    cells = []
    for section, (name, preset) in _COMPARED.items():
        work = learnt(*make_preset(preset), scale)
        cells.append(Cell(section, "LEAPS", work, paper_figures("leaps", "LEAPS", section)))
        for label, row in _ROWS.items():
            work = lattice(name, row, scale, "causal", 16)
            cells.append(Cell(section, label, work, paper_figures("leaps", label, section)))
    return cells + [Cell(section, "LEAPS", learnt(*make_preset(p), scale), {}) for section, p in _ALONE.items()]


LEAPS = Experiment(
    "leaps",
    "LEAPS",
    "Annealed jumps with a locally equivariant network, beside samplers with the causal network of sabre.",
    _cells,
    (
        *(
            "elbo",
            "eubo",
            "ess",
            "log_z",
            "log_z_resampled",
            "sinkhorn",
            "transport",
            "magnetisation_error",
            "correlation_error",
        ),
        *("energy_w1", "num_evaluations"),
    ),
)
