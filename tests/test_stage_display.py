"""What an evaluation shows while it goes on."""

import re

from sabre.evaluation import StageDisplay


class Terminal:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        """Nothing is held back."""

    def isatty(self):
        return True


def show(stages):
    display = StageDisplay()
    for stage, share in stages:
        display(stage, share)


STAGES = [
    ("samples", 0.5),
    ("samples", 1.0),
    ("transport", 0.0),
    ("transport", 0.2),
    ("sinkhorn", 0.3),
    ("sinkhorn", 1.0),
]


def test_a_line_per_stage_where_nobody_watches(capsys):
    show(STAGES)
    lines = capsys.readouterr().err.splitlines()
    assert [re.fullmatch(r"  (\w+) +\d+\.\d s", line)[1] for line in lines] == ["samples", "transport", "sinkhorn"]


def test_a_terminal_is_written_over(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    show(STAGES)
    assert terminal.text.count("\n") == 3
    assert re.search(r"\r  samples +50% +0\.0 s\r  samples +0\.0 s\n", terminal.text)
