"""The contract that every named target keeps, its symmetries, and what a bad argument is told."""

import json

import numpy as np
import pytest
import torch

import sabre.targets
from sabre.errors import InvalidArgumentError, UnknownNameError
from sabre.noise import Noise
from sabre.tape import all_states
from sabre.targets import (
    GMM40,
    TARGETS,
    CheckedTarget,
    GrayGrid,
    Ising,
    ManyWell,
    Potts,
    Symmetry,
    Target,
    import_target,
    make_target,
    torus_edges,
)
from sabre.targets.arguments import require_finite, require_int
from sabre.targets.symmetry import permute_categories

MEMBERS = [
    Ising(2, 0.7),
    Ising(4, 0.7, coupling=-1.0),
    Ising(3, 0.4, field=0.3),
    Potts(3, 3, 0.9),
    Potts(3, 4, 0.9, coupling=-0.5, field=[0.5, -1.0, 0.2, 0.0]),
    GMM40(2, seed=5, bits=4),
    ManyWell(4, bits=3),
    ManyWell(6, rotated=False, bits=3),
]


def states_of(target, n=257):
    return Noise(2).integers(target.num_categories, (n, target.dim))


def test_every_named_target_is_in_the_table():
    assert {type(target) for target in MEMBERS} == set(TARGETS.values())
    assert all(cls.name == name for name, cls in TARGETS.items())
    assert all(hasattr(sabre.targets, name) for name in sabre.targets.__all__)


@pytest.mark.parametrize("target", MEMBERS, ids=repr)
class TestContract:
    def test_log_density_is_one_double_per_row_and_leaves_x_alone(self, target):
        x = states_of(target)
        before = x.clone()
        value = target.log_density(x)
        assert value.dtype == torch.float64
        assert value.shape == (len(x),)
        assert value.isfinite().all()
        assert torch.equal(x, before)
        assert torch.allclose(target.log_density(x[3:4]), value[3:4], atol=1e-10)
        assert target.log_density(x[:0]).shape == (0,)

    def test_spec_survives_json_and_builds_the_same_target(self, target):
        again = make_target(json.loads(json.dumps(target.spec)))
        assert repr(again) == repr(target)
        assert again.spec == target.spec
        assert torch.equal(again.log_density(states_of(target)), target.log_density(states_of(target)))

    def test_layout_has_one_place_per_site(self, target):
        layout = target.layout
        assert layout.coords.shape == (target.dim, len(layout.shape))
        assert len(layout.coords.unique(dim=0)) == target.dim
        assert (layout.coords < torch.tensor(layout.shape)).all()

    def test_symmetries_are_bijections_that_leave_the_density_unchanged(self, target):
        x = states_of(target).unique(dim=0)
        for symmetry in target.symmetries:
            image = symmetry.apply(x)
            assert len(image.unique(dim=0)) == len(x), symmetry.name
            assert torch.allclose(target.log_density(image), target.log_density(x), atol=1e-9), symmetry.name

    def test_phases_are_as_many_as_announced(self, target):
        phase = target.phase(states_of(target))
        assert (phase is None) == (target.num_phases == 0)
        if phase is not None:
            assert set(phase.tolist()) == set(range(target.num_phases))

    def test_exact_samples_are_states(self, target):
        x = target.sample(7, Noise(0))
        if x is not None:
            assert x.shape == (7, target.dim)
            assert 0 <= int(x.min()) <= int(x.max()) < target.num_categories


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        (Ising(3, 0.4, field=0.3), permute_categories("spin flip", [1, 0])),
        (Potts(3, 3, 0.9, field=[0.5, -1.0, 0.2]), permute_categories("exchange", [1, 0, 2])),
        (Ising(3, 0.4), Symmetry("shift of all sites", lambda x: x.roll(1, 1))),
        (ManyWell(4, bits=3), ManyWell(4, rotated=False, bits=3).symmetries[0]),
        (ManyWell(4, rotated=False, bits=3), ManyWell(4, bits=3).symmetries[0]),
    ],
    ids=repr,
)
def test_a_wrong_symmetry_is_noticed(target, wrong):
    x = states_of(target)
    assert not torch.allclose(target.log_density(wrong.apply(x)), target.log_density(x), atol=1e-3)


@pytest.mark.parametrize("target", [Ising(2, 1.0), Potts(2, 2, 1.0), Potts(2, 3, 1.0)], ids=repr)
def test_phases_move_with_the_categories_even_in_a_tie(target):
    x = all_states(target.dim, target.num_categories)
    image = [*range(1, target.num_categories), 0]
    moved = permute_categories("cycle", image).apply(x)
    assert torch.equal(target.phase(moved), torch.tensor(image)[target.phase(x)])
    counts = torch.nn.functional.one_hot(x, target.num_categories).sum(1)
    assert torch.equal(counts.gather(1, target.phase(x).unsqueeze(1)).squeeze(1), counts.amax(1))


def test_symmetries_keep_masked_sites():
    x = torch.tensor([[0, 1, 2, 2]])
    assert Ising(2, 1.0).symmetries[-1].apply(x).tolist() == [[1, 0, 2, 2]]


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: Ising(1, 0.4), "size=1"),
        (lambda: Ising(4, float("inf")), "beta=inf"),
        (lambda: Ising(4, 0.4, field=float("nan")), "field=nan"),
        (lambda: Potts(4, 1, 0.4), "q=1"),
        (lambda: Potts(4, 3, 0.4, field=[1.0, 2.0]), "2 entries"),
        (lambda: GMM40(0), "dim=0"),
        (lambda: GMM40(2, bits=0), "bits=0"),
        (lambda: ManyWell(5), "dim=5 is odd"),
        (lambda: GrayGrid(2, 8, -1.0), "radius=-1.0"),
        (lambda: torus_edges(1), "size=1"),
        (lambda: Target(torch.sum, dim=0, num_categories=2), "dim=0"),
        (lambda: Target(torch.sum, dim=2, num_categories=1), "num_categories=1"),
        (lambda: Target(torch.sum, dim=2, num_categories=2, layout=Ising(2, 1.0).layout), "4 sites"),
        (lambda: require_int("Ising", "size", 2.5, low=2), "size=2.5"),
        (lambda: require_int("Ising", "size", True, low=0), "size=True"),
        (lambda: require_finite("Ising", "beta", "cold"), "beta='cold'"),
        (lambda: make_target({"size": 4}), "no name"),
        (lambda: make_target({"name": "ising", "size": 4}), "'beta'"),
        (lambda: import_target("no_colon"), "'no_colon'"),
    ],
)
def test_a_bad_argument_is_named_with_its_value(build, named):
    with pytest.raises(InvalidArgumentError, match=named):
        build()


def test_numbers_of_numpy_are_numbers():
    assert require_int("Ising", "size", np.int64(4), low=2) == 4
    assert require_finite("Ising", "beta", np.float32(0.5)) == 0.5


def test_unknown_names_get_the_nearest_spelling():
    with pytest.raises(UnknownNameError, match=r"unknown target 'isng'\. Did you mean 'ising'"):
        make_target({"name": "isng"})
    with pytest.raises(UnknownNameError, match=r"unknown argument of target ising 'betta'\. Did you mean 'beta'"):
        make_target({"name": "ising", "size": 4, "betta": 0.4})
    with pytest.raises(UnknownNameError, match="unknown argument of target json:dumps 'dims'"):
        make_target({"name": "json:dumps", "dims": 4})


def test_representations_are_short():
    assert repr(Ising(16, 0.4407)) == "Ising(size=16, beta=0.4407)"
    assert repr(CheckedTarget(Potts(4, 3, 1.0, coupling=2.0))) == (
        "CheckedTarget(Potts(size=4, q=3, beta=1.0, coupling=2.0))"
    )
