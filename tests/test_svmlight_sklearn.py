"""scikit-learn's own tests of its svmlight functions, applied to ours."""

from __future__ import annotations

import pytest
from sklearn.datasets.tests import test_svmlight_format as theirs
from sklearn.datasets.tests.test_svmlight_format import *  # noqa: F403

import sdca_rs

NAMES = ("load_svmlight_file", "load_svmlight_files", "dump_svmlight_file")

# The head of a file names what has written it. All else in this test is in
# test_svmlight.py.
del test_dump  # noqa: F821


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setattr(theirs, name, getattr(sdca_rs, name))


def test_ours_are_called() -> None:
    assert all(getattr(theirs, name) is getattr(sdca_rs, name) for name in NAMES)
