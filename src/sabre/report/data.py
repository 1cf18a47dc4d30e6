"""What a report is made from."""

from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from sabre.targets import Layout

__all__ = ["ReportData"]


@dataclass(frozen=True)
class ReportData:
    """A run as the report sees it: records of the training, figures at the end, samples beside true ones.

    `metrics` holds one dict per record, all with "step" (an evaluation may be a record of its own). Figures in
    `results` are {"value", "stderr"}; its "provenance" closes the page. `decoded` and `true_decoded` are the
    continuous points that the samples stand for.
    """

    title: str
    target: str
    method: str
    net: str
    finished: bool
    metrics: list[dict[str, Any]]
    log_z_exact: float | None
    results: dict[str, Any]
    samples: Int[Tensor, "n dim"] | None
    true_samples: Int[Tensor, "m dim"] | None
    layout: Layout
    num_categories: int
    decoded: Float[Tensor, "n axes"] | None = None
    true_decoded: Float[Tensor, "m axes"] | None = None
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def truth_label(self) -> str:
        """How the true samples were made, as a heading."""
        source = self.results.get("true_samples")
        return "Exact samples" if source in (None, "exact") else f"Reference: {source}"
