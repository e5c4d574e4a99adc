"""What the README and the pages of the docs show is what the commands print."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# How far numbers may be off on another machine, or with another scikit-learn.
CLOSE = {"ours": 2e-5, "scikit-learn": 5e-3}


def text_of(path):
    """Return a file of the checkout."""
    return (ROOT / path).read_text()


def shown():
    """Return the lines of the page on installing that show the output."""
    text = text_of("docs/install.md")
    (block,) = re.findall(r"prints\n\n```text\n(.*?)```", text, flags=re.S)
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
def test_the_docs_show_what_the_demo_prints(capsys, monkeypatch, tmp_path):
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


def test_the_readme_shows_the_record_of_first_fits():
    record = text_of("benches/record/as-stored.md")
    lines = [line for line in record.splitlines() if line.startswith("|")]
    assert len(lines) == 6 + 5
    assert set(lines) <= set(text_of("README.md").splitlines())


def test_the_readme_shows_a_command_of_the_docs():
    # `tests/test_cli.py` runs those of the page.
    (block,) = re.findall(r"```console\n(.*?)```", text_of("README.md"), flags=re.S)
    assert block in text_of("docs/cli.md")


def anchors(text):
    """Return the anchors that GitHub, and myst, give to the headings of a page."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    heads = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "ROADMAP.md"])
def test_links_of_a_page_lead_somewhere(page):
    text = text_of(page)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    links += re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    inside = [link for link in links if not re.match(r"\w+:", link)]
    assert inside
    for link in inside:
        path, _, anchor = link.partition("#")
        assert (ROOT / path).exists(), link
        if anchor:
            assert anchor in anchors(text_of(path or page)), link


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md", "docs/index.md"])
def test_pages_sum_up_the_comparison_as_its_record_does(page):
    record = text_of("benches/record/compare-full.md")
    first = re.findall(r"to (1e-0[46]) sdca-rs is first in (\d+) of (\d+) rows", record)
    (_, loose, rows), (_, tight, _) = first
    (liblinear,) = re.findall(r"to 1e-4, \d+ rows: ([\d.]+?)\. ", record)
    text = " ".join(text_of(page).split())
    assert re.search(rf"\b{rows} (problems|rows)", text)
    assert re.search(rf"first (to 1e-4 )?in {loose}\b", text)
    if page != "docs/index.md":
        all_of_them = rf"in all (of them|{rows})" if tight == rows else rf"in {tight} "
        assert re.search(all_of_them, text, flags=re.I)
        assert f"takes {float(liblinear):.2g} times as long" in text
