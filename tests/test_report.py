"""The report: right numbers on whole pages, and pictures of the samples themselves."""

import base64
import math
import re
import struct
import zlib

import numpy as np
import pytest
import torch

from pages import Balance
from sabre.report import ReportData, lattice_grid, png_data_uri, render_report, scatter_panels
from sabre.report.heatmap import frequency_map
from sabre.report.png import encode_png, palette
from sabre.targets import Layout

NAN = float("nan")


def decode_png(data: bytes) -> np.ndarray:
    """A reader of unfiltered 8-bit PNG files that checks every checksum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length]) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        place += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, rest) == (8, [0, 0, 0])
    channels = {0: 1, 2: 3, 6: 4}[colour]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


def ising_like(**changes) -> ReportData:
    grid = torch.cartesian_prod(torch.arange(3), torch.arange(4))
    metrics = [{"step": s, "loss": 1e4 / s, "log_z": 238.0, "grad_norm": 1.0} for s in range(1, 200)]
    metrics += [{"step": s, "elbo": 238.6 - 1e5 / s**2, "eubo": None, "ess": s / 200} for s in (50, 100, 199)]
    values = {
        "title": "a run",
        "target": "Ising(size=4)",
        "method": "tb+replay",
        "net": "causal",
        "finished": True,
        "metrics": metrics,
        "log_z_exact": 238.647169,
        "results": {
            "log_z": {"value": 238.6412, "stderr": 0.0031},
            "elbo": {"value": 238.6, "stderr": 0.01},
            "eubo": {"value": 238.7, "stderr": 0.01},
            "ess": {"value": 0.91, "stderr": 0.002},
            "phases": [{"value": 0.25, "stderr": 0.01}, {"value": 0.75, "stderr": 0.01}],
            "num_samples": 4096,
            "provenance": {"seed": 5, "versions": {"torch": "9.9"}, "commit": None, "parts": [{"step": 8}]},
            "evaluated": {"seed": 11, "command": "sabre evaluate r", "machine": "unseen"},
        },
        "samples": torch.arange(24).reshape(2, 12) % 2,
        "true_samples": torch.ones(2, 12, dtype=torch.long),
        "layout": Layout("torus", (3, 4), grid),
        "num_categories": 2,
        "config": {"steps": 199, "target": {"name": "ising"}},
    }
    return ReportData(**(values | changes))


def test_the_page_says_how_far_the_estimate_is_from_the_truth():
    text = Balance(render_report(ising_like())).text
    assert "log Z is estimated at 238.6412 ± 0.0031 ; the exact value is 238.64717" in text
    assert "the estimate is 0.006 nats too low, or 1.9 standard errors." in text
    for part in ("238.600 ± 0.010", "−0.0472", "+0.0528", "0.9100 ± 0.0020", "Share of phase 2", "0.750 ± 0.010"):
        assert part in text
    for part in (
        "target.name",
        "ising",
        "versions.torch",
        "9.9",
        "4096",
        "finished run",
        "parts.1.step",
        "evaluated.seed",
    ):
        assert part in text
    assert "unseen" not in text
    energy = {"mean_energy": {"value": -372.5, "stderr": 0.25, "exact": -372}}
    text = Balance(render_report(ising_like(results=energy))).text
    assert "mean energy −372.50 ± 0.25 −372.00000 −0.5 (2 standard errors)" in text
    high = ising_like(log_z_exact=238.0)
    assert "0.64 nats too high, or 207 standard errors" in Balance(render_report(high)).text


def test_unfinished_weak_and_unknown_are_said():
    text = Balance(render_report(ising_like(finished=False, results={}))).text
    assert "not finished: everything below is its state at step 199" in text
    assert "estimated at 236.075 by the ELBO at step 199" in text
    assert "No evaluation has been made yet" in text
    weak = {"ess": {"value": 0.03, "stderr": None}, "log_z": {"value": 1.0, "stderr": None}}
    text = Balance(
        render_report(ising_like(results=weak, log_z_exact=None, samples=None, cautions=["few & far between"]))
    ).text
    assert "Few & far between." in text
    assert "log Z is estimated at 1 ; its exact value is not known" in text
    assert "No samples were drawn" in text
    assert "Difference" not in text
    assert 'class="note"' not in render_report(ising_like())


def test_metrics_stand_beside_what_true_samples_reach():
    results = ising_like().results | {"forbidden": {"value": 0.0, "stderr": 0.001}}
    assert "Beside true samples" not in render_report(ising_like(results=results))
    assert "forbidden" not in render_report(ising_like(results=results))
    assert "Share of forbidden samples" in render_report(
        ising_like(results=results | {"forbidden": {"value": 0.1, "stderr": 0.01}})
    )
    floor = {"value": 36.0, "stderr": 0.04}
    metrics = {
        "transport": {"value": 36.5, "stderr": 0.03, "seconds": 9.0, "gap": 0.0, "floor": floor},
        "sinkhorn": {"value": 45.0, "stderr": None, "converged": False, "floor": None},
    }
    page = render_report(ising_like(results=results | {"metrics": metrics}))
    assert "Each of 4,096 samples against as many true ones" in page
    row = re.search(r'<th scope="row">transport</th>(.*?)</tr>', page)[1]
    assert re.findall(r"<td>(.*?)</td>", row) == ["36.500 ± 0.030", "36.000 ± 0.040", "10.0"]
    row = re.search(r'<th scope="row">sinkhorn \(not converged\)</th>(.*?)</tr>', page)[1]
    assert re.findall(r"<td>(.*?)</td>", row) == ["45", "", ""]


def test_an_empty_run_has_a_page():
    text = Balance(render_report(ising_like(metrics=[], results={}, samples=None, config={}, finished=False))).text
    assert "There is no estimate of log Z yet; its exact value is 238.64717 ." in text


def test_the_page_needs_nothing_else_and_escapes_everything():
    evil = "<script>alert(\"x\")</script>&'http://evil'"
    page = render_report(
        ising_like(
            title=evil,
            target=evil,
            method=evil,
            net=evil,
            config={evil: evil},
            results={evil: {"value": 1.0}, "true_samples": evil, "provenance": {evil: {evil: evil}}},
        )
    )
    found = Balance(page)
    assert "script" not in found.tags
    assert found.words.count(evil) >= 7
    addresses = [value for name, value in found.attributes if name in ("src", "href", "action", "xlink:href")]
    assert addresses
    assert all(value.startswith("data:image/png;base64,") for value in addresses)
    assert not re.search(r"url\(|@import|<link|<iframe", page)
    assert "http" not in page.replace("&#x27;http://evil&#x27;", "")


def test_lattices_show_the_samples_themselves():
    data = ising_like()
    found = Balance(render_report(data))
    images = [value for name, value in found.attributes if name == "src"]
    assert len(images) == 2
    image = decode_png(base64.b64decode(images[0].split(",")[1]))
    scale = 24
    assert image.shape == (3 * scale, 2 * 4 * scale + 3, 4)
    for n in range(2):
        tile = image[::scale, n * (4 * scale + 3) :][:, : 4 * scale : scale]
        assert np.array_equal(tile[..., :3], palette(2)[data.samples[n].reshape(3, 4).numpy()])
        assert (tile[..., 3] == 255).all()
    assert (image[:, 4 * scale : 4 * scale + 3, 3] == 0).all()
    assert "Exact samples" in found.text
    source = {"true_samples": "Swendsen-Wang"}
    assert "Reference samples: Swendsen-Wang." in Balance(render_report(ising_like(results=source))).text
    assert "no true samples" in Balance(render_report(ising_like(true_samples=None))).text


def test_sites_lie_where_the_layout_says():
    swapped = Layout("torus", (4, 3), torch.cartesian_prod(torch.arange(3), torch.arange(4)).flip(1))
    x = torch.tensor([[0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1]])
    page = render_report(ising_like(layout=swapped, samples=x, true_samples=None))
    image = decode_png(base64.b64decode(re.search(r'src="[^,]*,([^"]*)"', page)[1]))
    assert np.array_equal(image[::24, ::24, :3], palette(2)[x.reshape(3, 4).T.numpy()])


def test_decoded_codes_become_scatter_plots_on_the_same_scales():
    layout = Layout("code", (4, 3), torch.cartesian_prod(torch.arange(4), torch.arange(3)))
    model, true = torch.rand(50, 4), 3 * torch.rand(40, 4)
    found = Balance(render_report(ising_like(layout=layout, decoded=model, true_decoded=true)))
    labels = [value for name, value in found.attributes if name == "aria-label"]
    assert labels.count("Model") == labels.count("Exact samples") == 2
    model[:, 2:] *= 9
    panels = scatter_panels(model, true, "Truth")
    ticks = [re.findall(r'text-anchor="(?:end|middle)" font-size="12"[^>]*>([^<]*)', panel) for panel in panels]
    assert ticks[0] == ticks[1]
    assert ticks[2] == ticks[3]
    assert [panel.count("<circle") for panel in panels] == [50, 40, 50, 40]
    places = [float(place) for panel in panels for place in re.findall(r' c[xy]="([-\d.]+)"', panel)]
    assert len(places) == 360
    assert 26 < min(places) < max(places) < 420
    assert len(scatter_panels(model[:, :1], None, "Truth")) == 1
    assert len(scatter_panels(torch.full((3, 2), NAN), torch.zeros(1, 2), "Truth")) == 2
    large = scatter_panels(torch.rand(16384, 6), torch.rand(16384, 6), "Truth")
    assert len(large) == 4
    assert sum(map(len, large)) < 1_000_000


def test_lines_become_frequencies_with_the_largest_difference():
    layout = Layout("line", (3,), torch.arange(3).unsqueeze(1))
    x = torch.tensor([[0, 1, 2], [0, 1, 2], [0, 2, 1], [1, 2, 0]])
    y = torch.tensor([[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]])
    found = Balance(render_report(ising_like(layout=layout, samples=x, true_samples=y, num_categories=3)))
    assert "category 1 at site 1 has frequency 0.5 in the model and 1 in the reference" in found.text
    assert f"standard error of {math.sqrt(0.75 * 0.25 / 2):.2g} for the difference (the largest of 9)" in found.text
    drawn = frequency_map("Model", torch.tensor([[0.75, 0.0, 0.25], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]))
    image = decode_png(base64.b64decode(re.search(r'href="[^,]*,([^"]*)"', drawn)[1]))
    assert image[::-1, :, 3].tolist() == [[191, 0, 64], [64, 128, 64], [0, 128, 128]]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_png_decodes_back(channels):
    image = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
    assert np.array_equal(decode_png(encode_png(image)), image)
    prefix, content = png_data_uri(image).split(",")
    assert prefix == "data:image/png;base64"
    assert base64.b64decode(content) == encode_png(image)


def test_every_category_has_a_colour_of_its_own():
    for categories in (2, 3, 10, 11, 40):
        assert len(np.unique(palette(categories), axis=0)) == categories
    grid = lattice_grid(torch.arange(12).reshape(1, 3, 4), 12, 3)
    assert len(np.unique(grid[..., :3].reshape(-1, 3)[grid[..., 3].ravel() == 255], axis=0)) == 12
