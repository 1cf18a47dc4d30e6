"""The presets are the paper's: its tables of hyperparameters, its text and the errata, as data."""

import dataclasses

import pytest

from sabre.errors import UnknownNameError
from sabre.mcmc import HammingBall, SwendsenWang
from sabre.options import Options
from sabre.presets import PRESETS, make_preset
from sabre.processes import Schedule
from sabre.training import ExperiencePlan, TrainingState

TABLES = {
    "steps": 20000,
    "batch_size": 128,
    "learning_rate": 1e-3,
    "buffer_size": 12800,
    "off_to_on": 2.0,
    "mcmc_ratio": 0.2,
    "mcmc_interval": 500,
    "mcmc_steps": 100,
}
TEXT = {
    "method": "tb+replay+mcmc",
    "priority": "weight",
    "anneal": 0.5,
    "eval_schedule": "1",
    "final_samples": 16384,
    "order": "random",
    "drop": 0.0,
}
ERRATA = {
    "log_z_learning_rate": 0.1,
    "log_z_init": 0.0,
    "weight_decay": 0.0,
    "grad_clip": 1.0,
    "decay": 0.0,
    "prefill": 10,
}
NOT_IN_THE_PAPER = {"carry_log_z": False, "informed": False, "block": "1", "ema": 0.0, "reuse": 1, "warm_up": None}
COMMON = TABLES | TEXT | ERRATA | NOT_IN_THE_PAPER
OF_LEAPS = {"window", "jump_steps", "eval_jump_steps", "kappa", "moments"}
WITHOUT_EFFECT = {"seed", "device", "eval_interval", "eval_samples", "log_interval"} | OF_LEAPS

MLP = {"net": "mlp", "width": 256, "kernel": "hamming", "hamming_radius": 5}
VIT = {"net": "vit", "depth": 2, "heads": 4, "kernel": "swendsen-wang", "schedule": "4"}
UNUSED = {"mlp": {"heads", "replicates"}, "vit": {"hamming_radius", "replicates"}}

GMM = {"name": "gmm40", "seed": 0, "bits": 8}
WELL = {"name": "manywell", "rotated": True, "bits": 8}
ISING = {"name": "ising", "size": 16, "coupling": 1.0, "field": 0.0}
POTTS = {"name": "potts", "size": 16, "q": 3, "coupling": 1.0, "field": None}

ROWS = {
    "paper/gmm40-d16": (16, GMM | {"dim": 2}, MLP | {"depth": 1, "schedule": "1"}),
    "paper/gmm40-d32": (32, GMM | {"dim": 4}, MLP | {"depth": 3, "schedule": "1"}),
    "paper/manywell-d32": (32, WELL | {"dim": 4}, MLP | {"depth": 1, "schedule": "1"}),
    "paper/manywell-d80": (80, WELL | {"dim": 10}, MLP | {"depth": 3, "schedule": "4"}),
    "paper/ising16-critical": (256, ISING | {"beta": 0.4407}, VIT | {"width": 64}),
    "paper/ising16-low": (256, ISING | {"beta": 0.6}, VIT | {"width": 64}),
    "paper/ising16-lower": (256, ISING | {"beta": 1.2}, VIT | {"width": 64}),
    "paper/potts16-critical": (256, POTTS | {"beta": 1.005}, VIT | {"width": 128}),
    "paper/potts16-low": (256, POTTS | {"beta": 1.2}, VIT | {"width": 128}),
}
MDNS = {
    **{"method": "wdce", "steps": 50000, "batch_size": 256, "learning_rate": 1e-4, "grad_clip": 0.0, "schedule": "1"},
    **{"ema": 0.9999, "replicates": 8, "reuse": 10},
}
ROWS |= {f"{name}-mdns": (dim, spec, row | MDNS) for name, (dim, spec, row) in ROWS.items()}
LARGER = {"ising16-critical": 4, "ising16-low": 4, "potts16-critical": 6, "potts16-low": 6}
for name, depth in LARGER.items():
    dim, spec, row = ROWS[f"paper/{name}-mdns"]
    ROWS[f"mdns/{name}"] = (dim, spec, row | {"depth": depth, "anneal": 0.2, "warm_up": 0.28 / spec["beta"]})
LEAPS = {
    "leaps/ising8-critical": (64, 0.4407, 32),
    "leaps/ising8-low": (64, 0.6, 32),
    "leaps/ising16-critical": (256, 0.4407, 64),
    "leaps/ising16-low": (256, 0.6, 64),
    "leaps/potts16-low": (256, 1.2, 64),
}
SYNTHETIC = {"gmm40": (50.0, HammingBall(5)), "manywell": (4.0, HammingBall(5))}


def expected_options(name):
    return COMMON | ROWS[name][2]


def differences(name, options):
    """Options whose value is not that of the table."""
    found = options.as_dict()
    return [option for option, value in expected_options(name).items() if found[option] != value]


def test_every_preset_is_in_this_table():
    assert set(PRESETS) == set(ROWS) | set(LEAPS)
    with pytest.raises(UnknownNameError, match="paper/gmm40-d16"):
        make_preset("paper/gmm40-d61")


@pytest.mark.parametrize("name", LEAPS)
def test_the_presets_of_leaps_explore_and_go_on_for_sixty_steps(name):
    preset, (dim, beta, width) = make_preset(name), LEAPS[name]
    assert (preset.target.dim, preset.target.beta, preset.options.width) == (dim, beta, width)
    assert (preset.options.method, preset.options.off_to_on) == ("leaps+replay+mcmc", 60.0)
    plan = TrainingState(preset.target, preset.options.replace({"width": 8})).experience.plan
    explorations = [step for step in range(250) if plan.explores(step)]
    assert explorations == [step for step in range(250) if plan.is_on_policy(step)] == [0, 61, 122, 183, 244]


@pytest.mark.parametrize("name", ROWS)
def test_the_options_are_those_of_the_tables(name):
    assert differences(name, make_preset(name).options) == []


def test_every_option_that_matters_to_training_is_in_the_tables():
    for name, (_, _, row) in ROWS.items():
        others = {field.name for field in dataclasses.fields(Options)} - set(expected_options(name))
        assert {option for option in others if not option.startswith("checkpoint_")} == (
            WITHOUT_EFFECT | UNUSED[row["net"]] - set(row)
        )


@pytest.mark.parametrize(
    "change",
    [{"mcmc_ratio": 0.3}, {"hamming_radius": 1}, {"depth": 2}, {"schedule": "2"}, {"log_z_init": None}],
    ids=str,
)
def test_a_changed_number_is_noticed(change):
    preset = make_preset("paper/gmm40-d16")
    assert differences("paper/gmm40-d16", preset.options.replace(change)) == list(change)


@pytest.mark.parametrize("name", ROWS)
def test_the_targets_are_those_of_the_paper(name):
    dim, spec, _ = ROWS[name]
    target = make_preset(name).target
    assert (target.dim, target.spec) == (dim, spec)
    if spec["name"] in SYNTHETIC:
        assert target.grid.radius == SYNTHETIC[spec["name"]][0]
    if spec["name"] == "gmm40":
        assert target.means.shape == (40, spec["dim"])
        assert 45 < target.means.abs().max() < 47


@pytest.mark.parametrize("name", ["paper/gmm40-d16", "paper/manywell-d80", "paper/potts16-low"])
def test_what_is_built_from_a_preset_has_its_numbers(name):
    preset, row = make_preset(name), expected_options(name)
    state = TrainingState(preset.target, preset.options)
    _, kernel = SYNTHETIC.get(preset.target.name, (None, SwendsenWang()))
    assert state.experience.plan == ExperiencePlan(128, 2.0, 12800, "weight", kernel, 0.2, 500, 100, 10)
    k = int(row["schedule"])
    assert (state.sampler.process.schedule, state.sampler.eval_process.schedule) == (Schedule(k, k), Schedule(1, 1))
    if row["net"] == "mlp":
        d, w, depth = preset.target.dim, 256, row["depth"]
        weights = 3 * d * w + w + (depth - 1) * (w * w + w) + w * 2 * d + 2 * d
        assert sum(p.numel() for p in state.sampler.network.parameters()) == weights


@pytest.mark.parametrize(
    ("method", "millions"), [("tb", 2.560), ("tb+replay", 0.853), ("tb+replay+mcmc", 1.365)], ids=str
)
def test_energy_evaluations_are_those_of_the_paper(method, millions):
    """Its table counts M for an on-policy step and M L for an exploration."""
    preset = make_preset("paper/ising16-low")
    plan = TrainingState(preset.target, preset.options.replace({"method": method})).experience.plan
    on_policy, explorations = (sum(map(f, range(20000))) for f in (plan.is_on_policy, plan.explores))
    assert round((on_policy * 128 + explorations * 128 * plan.mcmc_steps) / 1e6, 3) == millions
