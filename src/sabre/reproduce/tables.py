"""The tables of the paper's main text."""

from sabre.reproduce.experiment import Cell, Experiment, Scale
from sabre.reproduce.methods import LATTICES, MDNS, METHODS, SYNTHETIC, lattice, synthetic
from sabre.reproduce.paper import paper_figures, paper_tables

__all__ = ["ENERGY_EVALUATIONS", "TABLE_ISING", "TABLE_POTTS", "TABLE_SYNTHETIC"]

_REPEATED = ("MH MCMC", MDNS, "TB + Buffer + MCMC")
_LATTICE_METRICS = (
    *("elbo", "eubo", "ess", "sinkhorn", "transport", "magnetisation_error", "correlation_error"),
    *("energy_w1", "energy_tv", "num_evaluations"),
)
_SYNTHETIC_METRICS = (
    *("elbo", "eubo", "ess", "sinkhorn", "transport", "mmd", "mmd_unbiased", "energy_w1", "energy_tv"),
    "num_evaluations",
)
_NETS = {
    ("causal", 16): "the causal network of sabre, about two minutes of training on two cores for each run",
    ("vit", 8): "the paper's transformer, with a budget of 1000 steps",
    ("vit", 16): "the paper's transformer, with a short budget of 100 steps only",
}


def _synthetic_cells(scale: Scale) -> list[Cell]:
    return [
        Cell(name, row, synthetic(name, row, scale), paper_figures("synthetic", row, name))
        for name in SYNTHETIC
        for row in METHODS
    ]


def _lattice_cells(scale: Scale, kind: str, table: str) -> list[Cell]:
    cells = []
    for (net, size), note in _NETS.items():
        for name in (name for name, (family, _) in LATTICES.items() if family == kind):
            beta = name.partition(" ")[2]
            for row in METHODS:
                paper = paper_figures(table, row, beta) if size == 16 else {}
                section = f"{name}, {size} x {size}, {net}"
                cells.append(Cell(section, row, lattice(name, row, scale, net, size), paper, note))
    return cells


_EVALUATION_ROWS = {
    "MH MCMC": "MH-MCMC",
    MDNS: "MDNS",
    "TB (on-policy)": "TB/LV",
    "TB + Buffer": "TB/LV + Buffer",
    "TB + Buffer + MCMC": "TB/LV + Buffer + MCMC",
}


def _evaluation_cells(scale: Scale) -> list[Cell]:
    """Energy evaluations do not depend on the target: those of the smallest one stand for all."""
    published = paper_tables()["energy_evaluations_millions"]
    return [
        Cell("40gmm_d16", row, synthetic("40gmm_d16", row, scale), {"num_evaluations": {"mean": 1e6 * published[name]}})
        for row, name in _EVALUATION_ROWS.items()
    ]


TABLE_SYNTHETIC = Experiment(
    "table-synthetic",
    "Gray-coded mixtures and wells",
    "The paper's networks, step counts and hyperparameters.",
    _synthetic_cells,
    _SYNTHETIC_METRICS,
    ("TB + Buffer + MCMC",),
    pictures="scatter",
    pictured=("40gmm_d32", "manywell_d80"),
)


def _lattices(kind: str, title: str, table: str) -> Experiment:
    return Experiment(
        f"table-{kind}",
        title,
        "Every method with the causal network of sabre, then with the paper's transformer for a short budget.",
        lambda scale: _lattice_cells(scale, kind, table),
        _LATTICE_METRICS,
        _REPEATED,
        pictures="lattices",
    )


TABLE_ISING = _lattices("ising", "Ising model on the torus", "ising_16x16")
TABLE_POTTS = _lattices("potts", "Potts model with three colours on the torus", "potts_16x16_q3")
ENERGY_EVALUATIONS = Experiment(
    "energy-evaluations",
    "Energy evaluations",
    "How often training, or the chains, evaluated the log density.",
    _evaluation_cells,
    ("num_evaluations", "elbo", "eubo"),
)
