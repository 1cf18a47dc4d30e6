"""From a target and options to the parts of a run: process, network, kernel, plan."""

import copy

import torch
from torch import nn

from sabre.errors import InvalidArgumentError
from sabre.evaluation import has_cluster_moves
from sabre.mcmc import HammingBall, Kernel, make_kernel, require_ferromagnet
from sabre.networks import (
    MLP,
    AllSites,
    CausalNetwork,
    EquivariantNetwork,
    JumpNetwork,
    LocalFieldLogits,
    StateNetwork,
    ViT,
)
from sabre.noise import Noise
from sabre.options import Options
from sabre.processes import AnnealedJumps, Blocks, MaskedDiffusion, Schedule, make_order
from sabre.targets import AbstractTarget
from sabre.training.averages import Averages
from sabre.training.experience import ExperiencePlan
from sabre.training.models import JumpModel, MaskedModel, Model

__all__ = ["build_plan", "build_sampler", "make_schedule"]

_ACTIVATIONS_PER_CHUNK = 2**26
"""On the CPU; an accelerator takes more of them for every 16 GB that are free there."""
_AUTO_VOCABULARY = 256


def build_sampler(target: AbstractTarget, options: Options, device: torch.device, custom: nn.Module | None) -> Model:
    """The sampler that the options describe; `custom` maps masked states to logits and takes the place of `net`."""
    if options.objective == "leaps":
        return _jumps(target, options, device)
    blocks = Blocks.boxes(target.layout, target.num_categories, _box(target, options))
    order_name = options.order
    if order_name == "auto":
        order_name = "raster" if options.net == "causal" else "random"
    process = MaskedDiffusion(
        blocks, make_order(order_name, blocks.layout), make_schedule("schedule", options.schedule)
    )
    activations = _activations_per_chunk(device)
    network = _network(target, options, blocks, order_name, custom, activations).to(device)
    eval_process = process.with_schedule(make_schedule("eval_schedule", options.eval_schedule))
    averages = Averages(copy.deepcopy(network), options.ema) if options.ema else None
    return MaskedModel(network, process, eval_process, averages)


def _jumps(target: AbstractTarget, options: Options, device: torch.device) -> JumpModel:
    """Annealed jumps with as many steps in training and in evaluations as the options say."""
    noise = Noise.named(options.seed, "weights")
    width = options.width or 64
    module = EquivariantNetwork(
        target.layout,
        target.num_categories,
        noise,
        width=width,
        depth=options.depth,
        window=options.window,
        absolute=target.layout.kind != "torus",
    )
    process = AnnealedJumps(options.jump_steps, kappa=options.kappa)
    activations = _activations_per_chunk(device)
    states = max(1, activations // (4 * width * (options.depth + 1) * target.dim))
    network = JumpNetwork(target, module, process, states).to(device)
    averages = Averages(copy.deepcopy(network), options.ema) if options.ema else None
    eval_process = AnnealedJumps(options.eval_jump_steps, kappa=options.kappa)
    return JumpModel(network, eval_process, options.moments, averages)


def build_plan(target: AbstractTarget, options: Options) -> ExperiencePlan:
    """The numbers and the kernel of Algorithm 1."""
    return ExperiencePlan(
        batch_size=options.batch_size,
        off_to_on=options.off_to_on if options.uses_replay else 0.0,
        buffer_size=options.buffer_size,
        priority=options.priority,
        kernel=_kernel(target, options) if options.uses_mcmc else None,
        mcmc_ratio=options.mcmc_ratio,
        mcmc_interval=options.mcmc_interval,
        mcmc_steps=options.mcmc_steps,
        prefill=options.prefill,
        reuse=options.reuse,
    )


def _network(
    target: AbstractTarget,
    options: Options,
    blocks: Blocks,
    order_name: str,
    custom: nn.Module | None,
    activations: int,
) -> CausalNetwork | StateNetwork:
    if custom is None and options.net == "custom":
        raise InvalidArgumentError("net is 'custom', and no network was given; pass the module itself as net=...")
    if custom is not None and options.net != "custom":
        raise InvalidArgumentError(f"a network was given, and that of this run is {options.net!r}; leave out net=...")
    noise = Noise.named(options.seed, "weights")
    vocabulary, layout = blocks.vocabulary, blocks.layout
    width = options.width or (256 if options.net == "mlp" else 64)
    if custom is not None:
        states = activations // (64 * blocks.num_tokens)
        return StateNetwork(AllSites(custom.eval(), vocabulary), vocabulary, states)
    if options.net == "mlp":
        module: nn.Module = MLP(blocks.num_tokens, vocabulary, noise, width=width, depth=options.depth)
        per_state = width * options.depth + blocks.num_tokens * (vocabulary - 1)
        return StateNetwork(module, vocabulary, max(1, activations // per_state))
    _check_heads(width, options.heads)
    if options.net == "vit":
        module = ViT(layout, vocabulary, noise, width=width, depth=options.depth, heads=options.heads)
        per_token = 4 * width * options.depth + 2 * options.heads * blocks.num_tokens
        return StateNetwork(module, vocabulary, max(1, 2 * activations // (per_token * blocks.num_tokens)))
    pairwise = target.pairwise
    return CausalNetwork(
        layout,
        vocabulary,
        noise,
        width=width,
        depth=options.depth,
        heads=options.heads,
        absolute=order_name != "random" or layout.kind != "torus",
        informed=LocalFieldLogits(pairwise, blocks) if options.informed and pairwise is not None else None,
    )


def _activations_per_chunk(device: torch.device) -> int:
    """How many numbers a network may hold for the backward pass at the same time."""
    if device.type != "cuda":
        return _ACTIVATIONS_PER_CHUNK
    free, _ = torch.cuda.mem_get_info(device)
    return _ACTIVATIONS_PER_CHUNK * max(1, free >> 34)


def _check_heads(width: int, heads: int) -> None:
    if width % (2 * heads):
        raise InvalidArgumentError(
            f"width {width} does not split into {heads} heads of an even size; choose a multiple of {2 * heads}"
        )


def _box(target: AbstractTarget, options: Options) -> tuple[int, ...]:
    """Side lengths of the blocks of sites that make one token."""
    layout = target.layout
    ones = (1,) * len(layout.shape)
    if options.block == "auto":
        return _auto_box(target) if options.net == "causal" else ones
    try:
        sides = tuple(int(side) for side in options.block.split("x"))
    except ValueError:
        raise InvalidArgumentError(f"block is {options.block!r}; use auto, 1, or sides such as 4 or 2x2") from None
    if min(sides) < 1 or len(sides) > len(ones):
        raise InvalidArgumentError(
            f"block {options.block!r} does not fit sites of shape {layout.shape}; "
            f"give up to {len(ones)} sides, each of at least 1"
        )
    return (*ones[: len(ones) - len(sides)], *sides) if options.block != "1" else ones


def _auto_box(target: AbstractTarget) -> tuple[int, ...]:
    """The largest of a few natural blocks that tile the sites and have at most 256 values."""
    layout = target.layout
    candidates = [(2, 2)] if layout.kind == "torus" else [(*(1,) * (len(layout.shape) - 1), k) for k in (4, 2)]
    for box in candidates:
        size = box[0] * box[-1] if len(box) > 1 else box[0]
        tiles = len(box) == len(layout.shape) and all(n % b == 0 for n, b in zip(layout.shape, box, strict=True))
        if tiles and target.num_categories**size <= _AUTO_VOCABULARY:
            return box
    return (1,) * len(layout.shape)


def make_schedule(name: str, text: str) -> Schedule:
    try:
        low, _, high = str(text).partition("-")
        return Schedule(int(low), int(high or low))
    except ValueError:
        raise InvalidArgumentError(f"{name} is {text!r}; use a number k or a range k_min-k_max such as 1-8") from None


def _kernel(target: AbstractTarget, options: Options) -> Kernel:
    """The kernel of that name, if it can reach every state of this target."""
    name = options.kernel
    if name == "auto":
        name = "swendsen-wang" if has_cluster_moves(target) else "hamming"
    if name == "swendsen-wang":
        require_ferromagnet(target)
    if name != "hamming":
        return make_kernel(name)
    if target.num_categories == 2 and options.hamming_radius % 2 == 0:
        raise InvalidArgumentError(
            f"hamming_radius is {options.hamming_radius}: with two categories an even number of flips keeps the parity "
            "of the sum, and half of the states are never reached; choose an odd radius"
        )
    return HammingBall(options.hamming_radius)
