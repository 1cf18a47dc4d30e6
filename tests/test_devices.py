"""Runs on an accelerator, and runs that move between devices; skipped where there is none."""

import pytest
import torch

import sabre
from sabre.noise import Noise
from sabre.targets import GMM40, Ising, ManyWell, Potts

SMALL = {"steps": 12, "batch_size": 32, "width": 16, "depth": 1, "heads": 2, "prefill": 2, "mcmc_interval": 2}
cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
TARGETS = {
    "ising": Ising(4, 0.6, field=0.1),
    "potts": Potts(4, 3, 0.7),
    "gmm40": GMM40(1),
    "manywell": ManyWell(2),
    "user": sabre.Target(lambda x: -(x - 1).abs().sum(-1).float(), dim=6, num_categories=3),
}


@cuda
@pytest.mark.parametrize("net", ["causal", "mlp", "vit"])
@pytest.mark.parametrize("name", TARGETS)
def test_every_target_and_network_trains_on_an_accelerator(name, net):
    options = sabre.Options(net=net, device="cuda", schedule="1-2").replace(SMALL)
    run = sabre.train(TARGETS[name], options=options, progress=False)
    scores = run.evaluate(64)
    assert run.sample(5).device.type == "cpu"
    assert scores.elbo.value < TARGETS[name].log_z_exact + 5 * scores.elbo.stderr


RIVALS = {
    "mdns": {"method": "wdce", "net": "vit", "ema": 0.9, "reuse": 3, "order": "random", "block": "1"},
    "leaps": {"method": "leaps+replay+mcmc", "net": "equivariant", "jump_steps": 4, "moments": 16},
}


@cuda
@pytest.mark.parametrize("rival", RIVALS)
def test_rivals_train_and_go_on_on_an_accelerator(rival, tmp_path):
    options = sabre.Options(device="cuda", final_samples=0).replace(SMALL | RIVALS[rival])
    run = sabre.train(TARGETS["ising"], options=options, run_dir=tmp_path / "run", progress=False, time_limit=0.5)
    run = sabre.resume(tmp_path / "run", progress=False) if not run.finished else run
    scores = run.evaluate(64, metrics=True)
    assert scores.elbo.value < TARGETS["ising"].log_z_exact + 5 * scores.elbo.stderr
    assert run.results["metrics"]["transport"]["value"] >= 0


@cuda
@pytest.mark.parametrize(("first", "second"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_a_run_goes_on_on_another_device(first, second, tmp_path):
    options = sabre.Options(device=first, final_samples=0).replace(SMALL)
    here = sabre.train(TARGETS["ising"], options=options, run_dir=tmp_path / "run", progress=False)
    there = sabre.load(tmp_path / "run", device=second)
    assert next(there.network.parameters()).device.type == second
    assert here.evaluate(256).elbo.value == pytest.approx(there.evaluate(256).elbo.value, abs=1e-3)


@cuda
def test_a_stream_is_the_same_on_every_device():
    draws = [
        (noise.uniform((3,)).cpu(), noise.integers(9, (5,)).cpu(), noise.permutation(2, 4).cpu())
        for noise in (Noise(3), Noise(3, "cuda"))
    ]
    assert all(torch.equal(a, b) for a, b in zip(*draws, strict=True))
