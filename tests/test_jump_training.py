"""Learning jumps inside the training loop: where states and times come from, and what is learnt from them."""

import pytest
import torch

import sabre
from sabre.errors import InvalidArgumentError
from sabre.evaluation import JumpSampler
from sabre.noise import Noise
from sabre.objectives import continuity
from sabre.targets import GMM40, Ising, Potts
from sabre.training import TrainingState

LEAPS = sabre.Options(
    method="leaps+replay+mcmc", net="equivariant", width=12, depth=1, steps=12, batch_size=8, jump_steps=5, moments=10,
    eval_jump_steps=10, buffer_size=100, prefill=1, off_to_on=2.0, mcmc_interval=3, mcmc_steps=2, mcmc_ratio=0.5,
    eval_interval=0, learning_rate=3e-3, grad_clip=100.0,
)  # fmt: skip
TARGET = Ising(3, 0.5, field=0.3)


def begun(**changes):
    state = TrainingState(TARGET, LEAPS.replace(changes))
    state.begin()
    return state


def test_a_batch_holds_states_that_chains_visited_near_the_times_at_which_they_were_there():
    state = begun()
    buffer = state.experience.buffer
    x, log_density, times = buffer.draw(200, Noise(0))
    grid = state.sampler.network.process.times
    assert len(buffer) == 6 * 8
    assert torch.allclose(log_density, TARGET.log_density(x), atol=1e-10)
    assert all(float((grid - t).abs().min()) < 1e-12 for t in times)
    batch = state.experience.replay()
    assert (len(batch.tokens), batch.path.num_steps) == (10, 1)
    distance = (batch.path.times.unsqueeze(1) - grid).abs().amin(1)
    assert 0 < float(distance.max()) <= 0.5 / 5
    assert torch.allclose(batch.log_density, TARGET.log_density(batch.tokens), atol=1e-10)


def test_times_say_when_a_state_was_seen():
    """Early states are uniform, late ones are likely: the mean log density grows with the time."""
    state = begun(batch_size=400, buffer_size=2400)
    _, log_density, times = state.experience.buffer.draw(4000, Noise(0))
    assert float(log_density[times > 0.9].mean()) > float(log_density[times == 0].mean()) + 2
    assert abs(float(log_density[times == 0].mean())) < 4.5 * 3 / 400**0.5


def test_chains_back_from_mcmc_states_have_their_share():
    state = begun(mcmc_ratio=0.3)
    assert len(state.experience.mcmc_buffer) == 0
    state.experience.explore()
    held = state.experience.mcmc_buffer
    assert len(held) == 6 * 8
    drawn = []
    held.draw, shipped = lambda n, noise: drawn.append(n) or shipped(n, noise), held.draw
    assert len(state.experience.replay().tokens) == 10
    assert drawn == [3]


def test_the_loss_is_the_mean_square_of_the_residual():
    state = begun()
    batch = state.experience.replay()
    term = state.sampler.network.step_log_probs(batch.tokens, batch.path).detach().squeeze(1)
    residual = batch.log_density - term
    value = continuity(residual, 7.0, "model")
    assert float(value.loss) == pytest.approx(float(residual.square().mean()))
    assert torch.allclose(value.coefficients, -2 * residual / 10)
    info = state.learner.update(batch, beta=1.0, rate=1.0, noise=Noise(0))
    assert info.loss == pytest.approx(float(value.loss), rel=1e-5)
    assert float(state.learner.log_z.detach()) == pytest.approx(9 * torch.tensor(2.0).log().item())


def test_every_evaluation_is_counted():
    """States that chains visit, MCMC steps, and states on the way back."""
    state = TrainingState(TARGET, LEAPS)
    state.begin()
    before = state.num_evaluations
    state.advance()  # on-policy, then exploration
    assert state.num_evaluations - before == 6 * 8 + 2 * 8 + 6 * 8


def test_resampled_populations_are_of_the_size_that_they_say():
    """The mean weight of each population is one estimate of Z; a colder target is seen to be another one."""
    run = sabre.train(TARGET, options=LEAPS, progress=False)
    sampler = run._state.sampler.weighted(TARGET)
    told = []
    found = sampler.extra(2560, Noise(3), lambda *stage: told.append(stage))["log_z_resampled"]
    assert told == [("resampled populations", k / 10) for k in range(1, 11)]
    assert abs(found.value - TARGET.log_z_exact) < 4.5 * found.stderr < 0.3
    assert abs(found.value - Ising(3, 0.6, field=0.3).log_z_exact) > 4.5 * found.stderr


@pytest.mark.parametrize("target", [Ising(3, 0.6), Potts(2, 3, 0.9, field=[0.5, 0.0, -0.4])], ids=repr)
def test_leaps_learns(target):
    """After some hundred steps the weights are nearly equal; untrained they are not."""
    options = LEAPS.replace({"steps": 150, "batch_size": 64, "moments": 64, "buffer_size": 3000, "off_to_on": 20.0})
    options = options.replace({"mcmc_interval": 21, "width": 16, "eval_jump_steps": 40})
    trained = sabre.train(target, options=options, progress=False).evaluate(400)
    untrained = sabre.train(target, options=options.replace({"steps": 1}), progress=False).evaluate(400)
    assert trained.ess.value > 0.9 > 0.88 > untrained.ess.value
    for found in (trained, untrained):
        for log_z in (found.log_z, found.extra["log_z_resampled"]):
            assert abs(log_z.value - target.log_z_exact) < 4.5 * log_z.stderr < 0.5
    assert trained.as_dict()["log_z_resampled"]["value"] == trained.extra["log_z_resampled"].value
    assert trained.elbo.value - 4.5 * trained.elbo.stderr < target.log_z_exact
    assert target.log_z_exact < trained.eubo.value + 4.5 * trained.eubo.stderr
    assert trained.eubo.value - trained.elbo.value < 0.5 * (untrained.eubo.value - untrained.elbo.value)


def test_evaluations_have_their_own_number_of_steps():
    run = sabre.train(TARGET, options=LEAPS, progress=False)
    sampler = run._state.sampler.weighted(TARGET)
    assert isinstance(sampler, JumpSampler)
    assert (sampler.network.process.num_steps, run._state.sampler.network.process.num_steps) == (10, 5)
    coarse = run._state.sampler.weighted(TARGET, sabre.processes.Schedule(5, 5))
    assert coarse.network.process.num_steps == 2
    assert run.evaluate(300).ess.value > run.evaluate(300, schedule="5").ess.value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "leaps"}, "choose both or neither"),
        ({"net": "equivariant"}, "choose both or neither"),
        ({"method": "leaps", "net": "equivariant", "kappa": 0.0}, "kappa is 0.0"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(InvalidArgumentError, match=message):
        sabre.Options(**changes)


def test_targets_without_pairs_are_refused():
    with pytest.raises(InvalidArgumentError, match="not a sum over pairs"):
        sabre.train(GMM40(2, bits=3), options=LEAPS, progress=False)


def test_time_is_the_only_annealing():
    state = TrainingState(TARGET, LEAPS.replace({"anneal": 0.5}))
    assert [state._beta_at(step) for step in (0, 3, 12)] == [1.0, 1.0, 1.0]
    masked = TrainingState(TARGET, sabre.Options(steps=12, anneal=0.5, width=8, heads=2))
    assert masked._beta_at(3) == 0.5
