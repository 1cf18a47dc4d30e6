"""The learner: network, log Z and optimiser, and the one place where weights change."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sabre.errors import NonFiniteError
from sabre.networks import Trainable
from sabre.noise import NoiseLike
from sabre.objectives import (
    Objective,
    ObjectiveValue,
    Origin,
    backpropagate,
    choose_masks,
    choose_steps,
    denoise,
    log_likelihood,
)
from sabre.processes import Moments, Path
from sabre.training.averages import Averages

__all__ = ["Learner", "Trajectories", "UpdateInfo", "annealed"]


class Trajectories(NamedTuple):
    """A batch to learn from.

    `log_pf` is known if a model has drawn it: its log-probability under the weights that drew it. It may have a graph.
    `is_new` is the batch that has just been drawn, `is_current` one that was drawn by the weights of this moment.
    """

    tokens: Int[Tensor, "batch tokens"]
    path: Path | Moments
    log_density: Float[Tensor, " batch"]
    log_pf: Float[Tensor, " batch"] | None
    origin: Origin
    is_new: bool = True
    is_current: bool = True


class UpdateInfo(NamedTuple):
    """What an update was like."""

    loss: float
    grad_norm: float


class Learner:
    """Updates theta with grad L = sum_b c_b grad log p(tau_b), and log Z with its own gradient."""

    def __init__(
        self,
        network: Trainable,
        objective: Objective,
        *,
        log_z: float,
        learning_rate: float,
        log_z_learning_rate: float,
        weight_decay: float,
        grad_clip: float,
        drop: float,
        is_weighted: bool = False,
        replicates: int = 0,
        averages: Averages | None = None,
    ) -> None:
        """`is_weighted` objectives weigh samples by the law that drew them. With `replicates` the gradient comes from
        so many random masks per sample, without from the steps of the trajectories."""
        self.network, self.objective = network, objective
        self.learning_rate, self.grad_clip, self.drop = learning_rate, grad_clip, drop
        self.is_weighted, self.replicates, self.averages = is_weighted, replicates, averages
        self._weights = [p for p in network.parameters() if p.requires_grad]
        self.log_z = nn.Parameter(torch.tensor(log_z, dtype=torch.float64, device=self._weights[0].device))
        self._optimiser = torch.optim.AdamW(
            [
                {"params": self._weights, "lr": learning_rate, "weight_decay": weight_decay},
                {"params": [self.log_z], "lr": log_z_learning_rate, "weight_decay": 0.0},
            ],
            fused=True,
        )
        self._base_rates = (learning_rate, log_z_learning_rate)

    def update(self, batch: Trajectories, *, beta: float, rate: float, noise: NoiseLike) -> UpdateInfo:
        """One optimiser step at inverse temperature `beta`, with `rate` times the learning rate."""
        value: list[ObjectiveValue] = []

        def coefficients_of(log_pf: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
            log_weight = annealed(beta, batch.log_density) - log_pf
            value.append(self.objective(log_weight, float(self.log_z.detach()), batch.origin))
            return value[0].coefficients

        self._optimiser.zero_grad()
        self._add_gradients(batch, coefficients_of, noise)
        self.log_z.grad = value[0].log_z_grad.to(self.log_z.dtype)
        info = UpdateInfo(float(value[0].loss), self._clip())
        self._check(info)
        for group, base in zip(self._optimiser.param_groups, self._base_rates, strict=True):
            group["lr"] = base * rate
        self._optimiser.step()
        if self.averages is not None:
            self.averages.follow(self._weights)
        return info

    def _add_gradients(
        self,
        batch: Trajectories,
        coefficients_of: Callable[[Float[Tensor, " batch"]], Float[Tensor, " batch"]],
        noise: NoiseLike,
    ) -> None:
        log_pf = batch.log_pf if batch.is_current or self.is_weighted else None
        if self.replicates:
            known = log_likelihood(self.network, batch.tokens, batch.path) if log_pf is None else log_pf.detach()
            masks = choose_masks(batch.tokens, self.replicates, noise)
            denoise(self.network, batch.tokens, coefficients_of(known), masks)
            return
        steps, scale = choose_steps(len(batch.tokens), batch.path.num_steps, self.drop, noise)
        backpropagate(self.network, batch.tokens, batch.path, coefficients_of, log_pf=log_pf, steps=steps, scale=scale)

    def shift_log_z(self, change: float) -> None:
        """Add a change of log Z that is known without learning."""
        with torch.no_grad():
            self.log_z.add_(change)

    def _clip(self) -> float:
        limit = self.grad_clip if self.grad_clip > 0 else math.inf
        return float(nn.utils.clip_grad_norm_(self._weights, limit, foreach=True))

    def _check(self, info: UpdateInfo) -> None:
        if math.isfinite(info.loss) and math.isfinite(info.grad_norm):
            return
        what = "loss" if not math.isfinite(info.loss) else "norm of the gradient"
        value = info.loss if what == "loss" else info.grad_norm
        gradients = [(n, p.grad) for n, p in _module(self.network).named_parameters() if p.grad is not None]
        names = [name for name, gradient in gradients if not bool(gradient.isfinite().all())]
        where = f" (first in {names[0]!r})" if names else ""
        raise NonFiniteError(
            f"the {what} became {value}{where}; the weights were left as they were. "
            "Lower the learning rate, or check that the log density stays in a reasonable range"
        )

    def state_tensors(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """(model, optimiser) tensors for a checkpoint."""
        model = dict(_module(self.network).state_dict()) | {"log_z": self.log_z.detach().reshape(1)}
        state = self._optimiser.state_dict()["state"]
        optimiser = {f"{i}.{key}": t.reshape(-1) for i, entry in state.items() for key, t in entry.items()}
        return model, optimiser

    def load_state_tensors(self, model: dict[str, Tensor], optimiser: dict[str, Tensor]) -> None:
        """Back to a saved state."""
        with torch.no_grad():
            for name, tensor in _module(self.network).state_dict().items():
                tensor.copy_(model[name])
            self.log_z.copy_(model["log_z"].reshape(()))
        parameters = [p for group in self._optimiser.param_groups for p in group["params"]]
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in optimiser.items():
            index, name = key.split(".")
            shape = () if name == "step" else parameters[int(index)].shape
            state.setdefault(int(index), {})[name] = tensor.reshape(shape).clone()
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict({"state": state, "param_groups": groups})


def annealed(beta: float, log_density: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """beta * log density, forbidden states staying forbidden at beta = 0."""
    return torch.where(torch.isneginf(log_density), log_density, beta * log_density)


def _module(network: Trainable) -> nn.Module:
    assert isinstance(network, nn.Module)
    return network
