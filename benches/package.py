"""Compile a checkout into a package that can be put on the path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def compile_package(
    source: Path, target: Path, package: Path, features: str = "python"
) -> Path:
    """Compile the extension of a checkout into a package; return its folder."""
    environment = dict(
        os.environ, CARGO_TARGET_DIR=str(target), PYO3_PYTHON=sys.executable
    )
    command = ["cargo", "rustc", "--release", "--locked", "--lib"]
    command += ["--features", features, "--crate-type", "cdylib"]
    subprocess.check_call(command, cwd=source, env=environment)
    shutil.rmtree(package, ignore_errors=True)
    ours = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(source / "python", package, ignore=ours)
    library = target / "release" / "libsdca_rs.so"
    shutil.copy(library, package / "sdca_rs" / "_core.abi3.so")
    return package
