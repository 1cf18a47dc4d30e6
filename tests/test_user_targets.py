"""Targets of a user's own: what they may say, and what they are told when they break the contract."""

import sys

import pytest
import torch

import sabre
from sabre.errors import InvalidArgumentError, SabreError, TargetError, UnknownNameError
from sabre.noise import Noise
from sabre.tape import all_states
from sabre.targets import (
    AbstractTarget,
    CheckedTarget,
    ManyWell,
    Pairwise,
    Potts,
    Symmetry,
    Target,
    import_target,
    make_target,
)

TINY = sabre.Options(method="tb+replay", steps=2, batch_size=16, prefill=1, width=8, heads=2, eval_interval=0)


def test_a_users_function_becomes_a_target():
    target = Target(lambda x: -(x - 1).abs().sum(-1).float(), dim=10, num_categories=3)
    assert target.log_z_exact == pytest.approx(10 * torch.tensor([-1.0, 0.0, -1.0]).logsumexp(0).item(), rel=1e-6)
    assert repr(target) == "Target(dim=10, num_categories=3)"
    assert target.spec is None
    assert target.layout.kind == "line"
    assert target.sample(5, Noise(0)).shape == (5, 10)


def test_what_a_user_knows_is_used_and_checked():
    def known(sample):
        return Target(lambda x: x.sum(-1).float(), dim=3, num_categories=2, log_z=1.5, sample=sample)

    assert known(None).log_z_exact == 1.5
    assert known(lambda n: torch.ones(n, 3, dtype=torch.int32)).sample(4, Noise(0)).tolist() == [[1, 1, 1]] * 4
    for bad, message in (
        (lambda n: torch.ones(n, 3), "torch.float32"),
        (lambda n: torch.ones(n + 1, 3, dtype=torch.long), r"shape \(5, 3\)"),
        (lambda n: [n], "of type list"),
        (lambda n: torch.full((n, 3), 2), "from 2 to 2"),
    ):
        with pytest.raises(TargetError, match=message):
            known(bad).sample(4, Noise(0))


def _in_place(x):
    x[:, 0] = 0
    return x.sum(-1).double()


def _raises(x):
    del x
    raise KeyError("table")


def _nan(x):
    value = x.sum(-1).double()
    value[[3, 5]] = torch.nan
    return value


FAULTY = [
    (_in_place, "'_in_place': log_density changed its argument in place; clone x first"),
    (_raises, r"'_raises' raised KeyError: 'table' \(x: shape \(8, 20\), torch.int64"),
    (lambda x: x.sum(-1).double().tolist(), r"returned a value of type list; return a torch.Tensor of shape \(8,\)"),
    (lambda x: x.sum(-1, keepdim=True).double(), r"shape \(8, 1\) instead of \(8,\); use .squeeze\(-1\)"),
    (lambda x: x.double(), r"shape \(8, 20\) instead of \(8,\); return one value per row"),
    (lambda x: x.sum(-1), r"torch.int64; return float32 or float64, for example with .double\(\)"),
    (lambda x: x.sum(-1).double().to("meta"), "on meta for x on cpu"),
    (_nan, r"NaN for 2 of 8 rows, first row 3: x = \[1, 1(, 1){14}, ... 20 sites\]"),
    (lambda x: x.sum(-1).double() / 0, r"\+inf for 8 of 8 rows, first row 0"),
]


@pytest.mark.parametrize(("function", "message"), FAULTY, ids=range(len(FAULTY)))
def test_a_faulty_log_density_is_told_what_is_wrong(function, message):
    x = torch.ones(8, 20, dtype=torch.long)
    with pytest.raises(TargetError, match=message) as caught:
        CheckedTarget(Target(function, dim=20, num_categories=2)).log_density(x)
    assert (x == 1).all()
    if function is _raises:
        assert isinstance(caught.value.__cause__, KeyError)


def test_forbidden_states_are_legal_unless_they_are_all():
    def only_twos(x):
        return (x[:, 0] - 1).clamp(min=0).double().log()

    x = all_states(3, 3)
    small = CheckedTarget(Target(only_twos, dim=3, num_categories=3))
    assert small.log_density(x[x[:, 0] == 1]).tolist() == [-torch.inf] * 9
    small.check_support(x[x[:, 0] == 1])  # 18 of the 27 states are forbidden, and enumeration finds the others
    with pytest.raises(TargetError, match="-inf on all 27 random states"):
        CheckedTarget(Target(lambda x: only_twos(0 * x), dim=3, num_categories=3)).check_support(x)

    wide = torch.ones(4, 40, dtype=torch.long)
    large = CheckedTarget(Target(only_twos, dim=40, num_categories=3))
    with pytest.raises(TargetError, match="-inf on all 4 random states"):
        large.check_support(wide)
    large.log_density(2 * wide)
    large.check_support(wide)
    sabre.train(Target(lambda x: torch.where(x.sum(1) % 17 == 0, 0.0, -torch.inf), 17, 2), options=TINY, progress=False)


def test_checked_target_counts_rows_and_drops_the_graph():
    weight = torch.ones(4, dtype=torch.float64, requires_grad=True)
    checked = CheckedTarget(Target(lambda x: x.double() @ weight, dim=4, num_categories=3))
    x = all_states(4, 3)
    assert not checked.log_density(x).requires_grad
    assert not Target(lambda _: weight, 4, 3).log_density(x[:4]).requires_grad
    graphs = []
    Target(lambda x: graphs.append(torch.is_grad_enabled()) or x.sum(1).double(), 4, 3).log_density(x)
    assert graphs == [False]
    checked.log_density(x[:5])
    assert checked.num_evaluations == 81 + 5
    checked.site_log_density(x[:5], torch.zeros(5, dtype=torch.long))
    assert checked.num_evaluations == 81 + 5 + 15


def test_a_targets_own_shortcut_is_used_and_counted():
    class Shortcut(AbstractTarget):
        name, dim, num_categories = "shortcut", 4, 3

        def log_density(self, x):
            return torch.zeros(len(x))

        def site_log_density(self, x, site):
            return site.double().unsqueeze(1).expand(len(x), 3)

    checked = CheckedTarget(Shortcut())
    site = torch.arange(4)
    assert torch.equal(checked.site_log_density(torch.zeros(4, 4, dtype=torch.long), site)[:, 0], site.double())
    assert checked.num_evaluations == 12


def test_checked_target_knows_what_its_target_knows():
    for target in (Potts(2, 3, 1.0), ManyWell(2, bits=3)):
        checked = CheckedTarget(target)
        y = Noise(2).integers(target.num_categories, (50, target.dim))
        assert checked.log_z_exact == target.log_z_exact
        assert checked.spec == target.spec
        assert checked.layout.kind == target.layout.kind
        assert (checked.pairwise is None) == (target.pairwise is None)
        assert [s.name for s in checked.symmetries] == [s.name for s in target.symmetries]
        assert checked.num_phases == target.num_phases
        assert torch.equal(checked.sample(9, Noise(1)), target.sample(9, Noise(1)))
        if target.decode(y) is not None:
            assert torch.equal(checked.decode(y), target.decode(y))
        assert checked.num_evaluations == 0
        assert torch.equal(checked.log_density(y), target.log_density(y))


MODULE = """
import torch
from sabre.targets import AbstractTarget, Ising, Target

def log_density(x):
    return -x.sum(-1).double()

def factory():
    return Ising(2, 0.5)

def wrong_factory():
    return 3

class Energy(torch.nn.Module):
    def forward(self, x):
        return -x.sum(-1).double()

module = Energy()

class Flat(AbstractTarget):
    name, dim, num_categories = "flat", 9, 2

    def log_density(self, x):
        return torch.zeros(len(x))

ready = Target(log_density, dim=3, num_categories=4)
constant = 5
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's in the current directory; its name."""
    name = f"user_module_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("1 / 0")
    (tmp_path / f"{name}_needy.py").write_text("import no_such_package")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    return name


def test_targets_come_from_a_users_module(module):
    target = import_target(f"{module}:log_density", 5, 3)
    assert target.name == "log_density"
    assert target.log_z_exact == pytest.approx(5 * torch.tensor([0.0, -1.0, -2.0]).logsumexp(0).item(), rel=1e-6)
    assert torch.equal(make_target(target.spec).log_density(all_states(5, 3)), target.log_density(all_states(5, 3)))
    assert import_target(f"{module}:factory").dim == 4
    assert import_target(f"{module}:Flat").dim == 9
    assert make_target({"name": f"{module}:ready", "dim": 3}).num_categories == 4
    assert import_target(f"{module}:module", 3, 2).log_density(torch.ones(1, 3).long()).tolist() == [-3.0]


@pytest.mark.parametrize("attribute", ["factory", "Flat", "ready", "log_density"])
def test_a_run_on_a_target_that_was_named_is_opened_by_name(module, attribute, tmp_path):
    sizes = (4, 2) if attribute == "log_density" else ()
    target = import_target(f"{module}:{attribute}", *sizes)
    sabre.train(target, net="mlp", options=TINY, run_dir=tmp_path / "r", progress=False)
    again = sabre.load(tmp_path / "r")
    assert repr(again.target) == repr(target)
    assert again.sample(4).shape == (4, target.dim)


@pytest.mark.parametrize(
    ("suffix", "dim", "error", "message"),
    [
        ("_missing:f", 3, InvalidArgumentError, "there is no module"),
        (":log_densty", 3, UnknownNameError, "Did you mean 'log_density'"),
        (":constant", 3, InvalidArgumentError, "is of type int, not callable"),
        (":log_density", None, InvalidArgumentError, "give dim too"),
        (":wrong_factory", None, InvalidArgumentError, "made a value of type int"),
        (":ready", 4, InvalidArgumentError, "has dim=3, not dim=4"),
        ("_broken:f", 3, TargetError, "raised ZeroDivisionError"),
        ("_needy:f", 3, TargetError, "needs 'no_such_package'"),
    ],
)
def test_a_users_module_that_does_not_work_says_why(module, suffix, dim, error, message):
    with pytest.raises(error, match=message) as caught:
        import_target(f"{module}{suffix}", dim, 3 if suffix == ":log_density" else None)
    assert isinstance(caught.value, SabreError)


CHAIN = Pairwise(torch.tensor([[0, 1], [1, 2]]), torch.tensor([0.7, 0.4]).double(), torch.zeros(3, 2).double())


def chain(x):
    return 3 + 0.7 * (x[:, 0] == x[:, 1]).double() + 0.4 * (x[:, 1] == x[:, 2]).double()


def test_a_user_can_give_couplings_and_symmetries():
    flip = Symmetry("flip", lambda x: 1 - x)
    target = Target(chain, dim=3, num_categories=2, pairwise=CHAIN, symmetries=[flip])
    assert target.symmetries == (flip,)
    assert sabre.mcmc.run(target, "swendsen-wang", num_chains=4, num_steps=10).acceptance == 1.0
    run = sabre.train(target, net="causal", options=TINY, progress=False)
    assert run.network.informed is not None


def test_couplings_that_say_something_else_are_refused():
    with pytest.raises(InvalidArgumentError, match="must agree up to a constant"):
        Target(lambda x: chain(x) + x[:, 0].double(), dim=3, num_categories=2, pairwise=CHAIN)
    with pytest.raises(InvalidArgumentError, match="pairwise is for 3 sites of 2 categories"):
        Target(chain, dim=4, num_categories=2, pairwise=CHAIN)


def test_a_run_is_opened_with_the_target_that_it_was_trained_on_only(tmp_path):
    def density(x):
        return -x.sum(-1).float()

    sabre.train(Target(density, 4, 2), net="mlp", options=TINY, run_dir=tmp_path / "r", progress=False)
    assert sabre.load(tmp_path / "r", target=Target(density, 4, 2)).sample(3).shape == (3, 4)
    for other, message in (
        (Target(density, 5, 2), "has dim 5, that of the run had 4"),
        (Target(density, 4, 3), "has num_categories 3, that of the run had 2"),
        (Target(lambda x: x.sum(-1).float(), 4, 2), "pass the target that it was trained on"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            sabre.load(tmp_path / "r", target=other)


def test_a_colour_may_be_forbidden_by_an_infinite_field():
    field = torch.zeros(4, 2, dtype=torch.float64)
    field[2, 1] = -torch.inf
    ring = Pairwise(torch.tensor([[0, 1], [1, 2], [2, 3]]), torch.full((3,), 0.5).double(), field)
    target = Target(ring.log_density, dim=4, num_categories=2, pairwise=ring)
    run = sabre.train(target, net="causal", options=TINY.replace({"steps": 20}), progress=False)
    assert run.evaluate(200).log_z.value == pytest.approx(target.log_z_exact, abs=0.5)
    assert (run.sample(500)[:, 2] == 0).all()
    with pytest.raises(InvalidArgumentError, match="coupling is not finite"):
        Pairwise(torch.tensor([[0, 1]]), torch.tensor([-torch.inf]), torch.zeros(2, 2))
    with pytest.raises(InvalidArgumentError, match=r"NaN or \+inf"):
        Pairwise(torch.tensor([[0, 1]]), torch.ones(1), torch.full((2, 2), torch.nan))
