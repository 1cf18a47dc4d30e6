"""How the target and the learning rate change over a run: pure functions of the step."""

import math

__all__ = ["inverse_temperature", "learning_rate_factor"]


def inverse_temperature(step: int, num_steps: int, fraction: float, warm_up: float | None = None) -> float:
    """The exponent of the target density: beta = step / (fraction * num_steps), at most 1.

    With `warm_up` it does not grow but keeps that value until step fraction * num_steps, and is 1 from then on.
    """
    ramp = fraction * num_steps
    if step >= ramp:
        return 1.0
    return step / ramp if warm_up is None else warm_up


def learning_rate_factor(step: int, num_steps: int, decay: float) -> float:
    """1, then along a half cosine down to 0 over the last `decay` of the steps."""
    begin = (1 - decay) * num_steps
    if step < begin:
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - begin) / (num_steps - begin)))
