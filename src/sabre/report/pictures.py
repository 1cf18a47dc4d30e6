"""Pictures of samples beside true ones, as the layout of the target asks for."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sabre.report.data import ReportData
from sabre.report.heatmap import frequency_map
from sabre.report.markup import escape, format_number
from sabre.report.png import lattice_grid, png_data_uri
from sabre.report.scatter import scatter_panels
from sabre.targets import Layout

__all__ = ["sample_pictures"]

_TILES, _COLUMNS = 16, 4


def sample_pictures(data: ReportData) -> str:
    """Lattices as images, decoded codes as scatter plots, anything else as category frequencies per site."""
    if data.samples is None or not len(data.samples):
        return "<p>No samples were drawn for this report.</p>"
    if data.layout.kind == "torus":
        return _lattices(data, data.samples)
    if data.decoded is not None and len(data.decoded):
        panels = scatter_panels(data.decoded, data.true_decoded, data.truth_label)
        return f'<div class="pair">{"".join(panels)}</div>{_about_truth(data)}'
    return _frequencies(data, data.samples)


def _lattices(data: ReportData, samples: Int[Tensor, "n dim"]) -> str:
    figures = [_lattice_figure("Model", samples, data)]
    if data.true_samples is not None:
        figures.append(_lattice_figure(data.truth_label, data.true_samples, data))
    return f'<div class="pair">{"".join(figures)}</div>{_about_truth(data)}'


def _lattice_figure(title: str, samples: Int[Tensor, "n dim"], data: ReportData) -> str:
    lattices = _on_lattice(samples[:_TILES], data.layout)
    image = lattice_grid(lattices, data.num_categories, min(_COLUMNS, len(lattices)))
    label = f"{len(lattices)} lattices of {lattices.shape[1]} by {lattices.shape[2]} sites"
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<img class="lattices" src="{png_data_uri(image)}" alt="{escape(label)}"></figure>'
    )


def _on_lattice(x: Int[Tensor, "n dim"], layout: Layout) -> Int[Tensor, "n rows columns"]:
    lattice = x.new_zeros(len(x), *layout.shape)
    lattice[:, layout.coords[:, 0], layout.coords[:, 1]] = x
    return lattice


def _frequencies(data: ReportData, samples: Int[Tensor, "n dim"]) -> str:
    model = _category_frequencies(samples, data.num_categories)
    maps = [frequency_map("Model", model)]
    caption = ""
    if data.true_samples is not None and len(data.true_samples):
        true = _category_frequencies(data.true_samples, data.num_categories)
        maps.append(frequency_map(data.truth_label, true))
        caption = _largest_difference(model, true, len(samples), len(data.true_samples))
    return f'<div class="pair">{"".join(maps)}</div>{caption}{_about_truth(data)}'


def _category_frequencies(x: Int[Tensor, "n dim"], num_categories: int) -> Float[Tensor, "categories dim"]:
    """frequency[c, i]: the share of the samples with x_i = c."""
    return torch.stack([(x == c).double().mean(0) for c in range(num_categories)])


def _largest_difference(
    model: Float[Tensor, "categories dim"], true: Float[Tensor, "categories dim"], n: int, m: int
) -> str:
    """max |p - q|, and the standard error sqrt(r (1 - r) (1/n + 1/m)) of that difference, r the pooled frequency."""
    place = int((model - true).abs().argmax())
    p, q = float(model.flatten()[place]), float(true.flatten()[place])
    category, site = divmod(place, model.shape[1])
    pooled = (n * p + m * q) / (n + m)
    stderr = (pooled * (1 - pooled) * (1 / n + 1 / m)) ** 0.5
    return (
        f'<p class="caption">Largest difference: category {category} at site {site} has frequency '
        f"{format_number(p, 3)} in the model and {format_number(q, 3)} in the reference, with a standard error of "
        f"{format_number(stderr, 2)} for the difference (the largest of {model.numel():,}).</p>"
    )


def _about_truth(data: ReportData) -> str:
    if data.true_samples is None and data.true_decoded is None:
        return '<p class="caption">There are no true samples of this target to compare with.</p>'
    if data.truth_source in (None, "exact"):
        return ""
    return f'<p class="caption">Reference samples: {escape(data.truth_source)}.</p>'
