"""What the README shows of ``make demo`` is what the command prints."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# How far numbers may be off on another machine, or with another scikit-learn.
CLOSE = {"ours": 2e-5, "scikit-learn": 5e-3}


def shown():
    """Return the lines of the README that show the output."""
    text = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"It prints\n\n```text\n(.*?)```", text, flags=re.S)
    return block.splitlines()


def printed(capsys, monkeypatch, folder):
    """Return the lines that the command prints."""
    demo = ROOT / "examples" / "demo.py"
    monkeypatch.setattr("sys.argv", [str(demo), str(folder)])
    runpy.run_path(str(demo), run_name="__main__")
    return capsys.readouterr().out.strip("\n").splitlines()


def fields(line):
    """Cut a line of the table into its columns."""
    return re.split(r" {2,}", line.strip())


@pytest.mark.filterwarnings("ignore:.*:matplotlib.MatplotlibDeprecationWarning")
def test_the_readme_shows_what_the_demo_prints(capsys, monkeypatch, tmp_path):
    expected, found = shown(), printed(capsys, monkeypatch, tmp_path)
    assert (tmp_path / "convergence.png").stat().st_size > 10_000
    assert len(expected) == len(found)
    n_ours = 0
    for expected_line, line in zip(expected, found, strict=True):
        if line.startswith("picture:"):
            assert expected_line == "picture: .../build/demo/convergence.png"
            continue
        if not re.match(r"Sdca|scikit-learn", line):
            assert line == expected_line
            continue
        (name, P, D, gap, epochs, stop, _), ours = fields(line), line.startswith("Sdca")
        name_0, P_0, D_0, _, epochs_0, stop_0, _ = fields(expected_line)
        assert (name, stop) == (name_0, stop_0)
        close = CLOSE["ours" if ours else "scikit-learn"]
        assert float(P) == pytest.approx(float(P_0), rel=close)
        if ours:
            n_ours += 1
            assert float(D) == pytest.approx(float(D_0), rel=close)
            # Printed with two digits.
            assert 0 <= float(gap) <= 1.05e-4 * float(P)
            assert float(epochs) == pytest.approx(float(epochs_0), rel=0.3, abs=3)
        else:
            assert (D, gap) == (D_0, "none") == ("none", "none")
    assert n_ours == 4
