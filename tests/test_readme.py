"""The README's code runs as it stands and prints an estimate beside the truth."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_readme_code_runs_and_its_estimate_is_near_the_truth(tmp_path, monkeypatch):
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    assert 10 <= len([line for line in block.splitlines() if line and not line.startswith("#")]) <= 15
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block, "README.md", "exec"), namespace := {})
    exact = namespace["target"].log_z_exact
    assert abs(exact - 15.522246286707) < 1e-9
    assert abs(namespace["scores"].log_z.value - exact) < 0.1
    assert f"log Z exact     {exact}" in out.getvalue()
    assert namespace["x"].shape == (1000, 16)
    assert namespace["again"].step == 200
    assert namespace["mine"].log_z_exact == pytest.approx(10 * 0.5514447139320511, abs=1e-9)


def test_the_second_block_shows_presets_options_networks_and_chains(tmp_path, monkeypatch, capsys):
    second = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    exec(compile(second, "README.md", "exec"), namespace := {})
    assert namespace["preset"].target.dim == 16
    assert namespace["options"].objective == "lv"
    assert namespace["run"].options.net == "custom"
    acceptance, tau, effective = map(float, capsys.readouterr().out.split())
    assert acceptance == 1
    assert tau >= 0.5
    assert effective > 16
