"""Scores of a sampler that is exact from the start, and of one that is not."""

from copy import deepcopy
from dataclasses import replace
from math import comb

import pytest
import torch

import sabre
from sabre.errors import InvalidArgumentError
from sabre.evaluation import MaskedSampler, cautions, evaluate, true_samples
from sabre.networks import CausalNetwork, LocalFieldLogits
from sabre.noise import Noise
from sabre.processes import Blocks, MaskedDiffusion, Schedule, make_order
from sabre.tape import all_states
from sabre.targets import Ising
from small import NETWORKS, NETWORKS_3, randomised

TARGET = Ising(3, 0.8, coupling=0.0, field=0.7)
BLOCKS = Blocks.boxes(TARGET.layout, 2, (1, 3))
PROCESS = MaskedDiffusion(BLOCKS, make_order("random", BLOCKS.layout), Schedule())


def network(informed):
    """Its output starts at zero, so informed logits alone decide: for free spins they are exact."""
    local = LocalFieldLogits(TARGET.pairwise, BLOCKS) if informed else None
    return CausalNetwork(BLOCKS.layout, 8, Noise(0), width=8, heads=2, informed=local)


def test_every_log_weight_of_an_exact_sampler_is_log_z():
    _, log_weight = MaskedSampler(network(True), PROCESS, TARGET, batch=20).draw(50, Noise(1))
    assert log_weight.shape == (50,)
    backward = MaskedSampler(network(True), PROCESS, TARGET).weigh(all_states(9, 2), Noise(2))
    for found in (log_weight, backward):
        assert (found - TARGET.log_z_exact).abs().max() < 1e-5
    wrong = MaskedSampler(network(False), PROCESS, TARGET).weigh(all_states(9, 2), Noise(2))
    assert (wrong - TARGET.log_z_exact).abs().max() > 1


def test_bounds_meet_for_an_exact_sampler_and_bracket_log_z_for_another():
    truth = true_samples(TARGET, 300, 4)
    exact, other = (
        evaluate(MaskedSampler(network(informed), PROCESS, TARGET), TARGET, 300, 3, truth) for informed in (True, False)
    )
    for figure in (exact.elbo, exact.eubo, exact.log_z):
        assert figure.value == pytest.approx(TARGET.log_z_exact, abs=1e-5)
    assert exact.ess.value == pytest.approx(1)
    assert other.elbo.value + 1 < TARGET.log_z_exact < other.eubo.value - 0.5
    assert abs(other.log_z.value - TARGET.log_z_exact) < 4.5 * other.log_z.stderr
    colder = Ising(3, 1.2, coupling=0.0, field=0.7)
    for wrong in (other.log_z.value - colder.log_z_exact, other.elbo.value - TARGET.log_z_exact):
        assert abs(wrong) > 4.5 * other.log_z.stderr
    assert other.ess.value < 0.5
    assert exact.true_samples == "exact"


def test_log_weights_belong_to_their_samples_across_batches():
    x, log_weight = MaskedSampler(network(False), PROCESS, TARGET, batch=3).draw(7, Noise(1))
    expected = TARGET.log_density(x) + 9 * torch.tensor(2.0, dtype=torch.float64).log()
    assert torch.allclose(log_weight, expected, atol=1e-5)


PATHS = [
    ("mlp", NETWORKS, "random", Schedule(1, 3)),
    ("vit", NETWORKS, "random", Schedule(2, 2)),
    ("causal", NETWORKS, "random", Schedule(1, 2)),
    ("causal-blocks-informed", NETWORKS, "random", Schedule()),
    ("user", NETWORKS, "checkerboard", Schedule()),
    ("user", NETWORKS_3, "random", Schedule()),
]


@pytest.mark.parametrize(("name", "table", "order", "schedule"), PATHS)
def test_log_weights_recorded_by_a_rollout_are_those_of_the_same_path_backwards(name, table, order, schedule):
    """Both draw the path first: the same stream gives the same path, another one another path."""
    target, process, net = table[name]
    net = randomised(deepcopy(net), scale=0.4)
    process = replace(process, order=make_order(order, process.blocks.layout), schedule=schedule)
    sampler = MaskedSampler(net, process, target)
    x, recorded = sampler.draw(40, Noise(5))
    backward, elsewhere = (sampler.weigh(x, Noise(seed)) for seed in (5, 6))
    assert torch.allclose(backward, recorded, atol=1e-10)
    assert (elsewhere - recorded).abs().max() > 1e-3
    assert float(recorded.std()) > 0.1


def test_phases_are_the_shares_of_down_and_up_in_this_order():
    """A sampler of free spins, each up with probability p, seen by a target whose two phases are equal."""
    n, target = 400, Ising(3, 0.5)
    shares = evaluate(MaskedSampler(network(True), PROCESS, target), target, n, 0, None).phases
    p = torch.tensor(2 * 0.8 * 0.7).sigmoid().item()
    up = sum(comb(9, k) * p**k * (1 - p) ** (9 - k) for k in range(5, 10))
    bound = 4.5 * (up * (1 - up) / n) ** 0.5
    assert abs(shares[1].value - up) < bound
    assert abs(shares[0].value - (1 - up)) < bound
    assert abs(shares[0].value - up) > 4 * bound
    hits = [n * share.value + 1 for share in shares]
    assert shares[1].stderr == pytest.approx((hits[0] * hits[1] / n) ** 0.5 / (n + 2))


def test_a_trained_model_is_sampled_and_evaluated_with_another_schedule():
    options = sabre.Options(net="mlp", width=8, steps=2, batch_size=8, prefill=1, eval_interval=0)
    run = sabre.train(sabre.targets.Ising(3, 0.4), options=options, progress=False)
    assert not torch.equal(run.sample(50), run.sample(50, schedule="9"))
    one, all_at_once = run.evaluate(2000), run.evaluate(2000, schedule="9")
    exact = one.log_z_exact
    for scores in (one, all_at_once):
        assert scores.elbo.value < exact < scores.eubo.value
    assert one.elbo != all_at_once.elbo
    assert run.results["evaluated"]["schedule"] == "9"
    with pytest.raises(InvalidArgumentError, match="use a number k or a range"):
        run.sample(5, schedule="fast")


def test_a_low_effective_sample_size_is_said_everywhere(tmp_path, capsys):
    """In the text of the scores and in the report, in the same words; where it is high, nowhere."""
    options = sabre.Options(net="mlp", width=8, steps=1, batch_size=8, prefill=1, eval_interval=0, final_samples=0)
    options = options.replace({"block": "1", "order": "random"})
    for beta, is_low in ((2.0, True), (0.05, False)):
        run = sabre.train(sabre.targets.Ising(4, beta), options=options, run_dir=tmp_path / str(beta), progress=False)
        scores = run.evaluate(500)
        assert (scores.ess.value < 0.05) == is_low
        (caution,) = cautions(0.01)
        assert (caution in str(scores)) == is_low
        assert (caution[1:] in run.report()) == is_low
