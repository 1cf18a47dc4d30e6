"""What a report is made from."""

from collections.abc import Sequence
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
    continuous points that the samples stand for. `cautions` say what must be known to read the figures.
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
    decoded: Float[Tensor, "points axes"] | None = None
    true_decoded: Float[Tensor, "true_points axes"] | None = None
    config: dict[str, Any] = field(default_factory=dict)
    cautions: Sequence[str] = ()

    @property
    def truth_label(self) -> str:
        """A heading for the true samples: exact ones, or a reference from a long chain."""
        return "Exact samples" if self.truth_source in (None, "exact") else "Reference samples"

    @property
    def truth_source(self) -> str | None:
        """How the true samples were made, as far as the results say."""
        return self.results.get("true_samples")
