"""Linear models by stochastic dual coordinate ascent, each fit with a certificate.

Start with :class:`SdcaClassifier` or :class:`SdcaRegressor`, or :class:`Sdca`, which
is either, as its loss says; :func:`losses` lists what it can minimise, and
:func:`certify` proves how good any fitted linear model is. :class:`Asdca`,
:class:`Pegasos`, :class:`Subgradient` and :class:`DualGradient` are other roads to the
same optimum, :mod:`sdca_rs.theory` says how long they are, and
:class:`sdca_rs.plotting.ConvergenceDisplay` draws them. :meth:`Sdca.save` and
:func:`load` keep a model in a file. :mod:`sdca_rs.drop_in` has scikit-learn's own
classes, by name and signature. :func:`load_svmlight_file` and
:func:`dump_svmlight_file` read and write data.
"""

from __future__ import annotations

# As in `typing`, which takes longer to import than this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sdca_rs import drop_in, theory
    from sdca_rs._asdca import Asdca
    from sdca_rs._certify import Certificate, certify
    from sdca_rs._core import Progress
    from sdca_rs._dual_gradient import DualGradient
    from sdca_rs._faces import SdcaClassifier, SdcaRegressor
    from sdca_rs._handle import Data
    from sdca_rs._losses import LossInfo, losses
    from sdca_rs._model_file import load
    from sdca_rs._pegasos import Pegasos
    from sdca_rs._score_history import ScoreHistory
    from sdca_rs._sdca import Sdca
    from sdca_rs._subgradient import Subgradient
    from sdca_rs._svmlight import (
        dump_svmlight_file,
        load_svmlight_file,
        load_svmlight_files,
    )

    __version__: str

__all__ = [
    "Asdca",
    "Certificate",
    "Data",
    "DualGradient",
    "LossInfo",
    "Pegasos",
    "Progress",
    "ScoreHistory",
    "Sdca",
    "SdcaClassifier",
    "SdcaRegressor",
    "Subgradient",
    "certify",
    "drop_in",
    "dump_svmlight_file",
    "load",
    "load_svmlight_file",
    "load_svmlight_files",
    "losses",
    "theory",
]

# The modules that names are in, or are. They are imported when a name is first used:
# the command line trains in less time than scikit-learn takes to be imported.
_HOMES = {
    "Asdca": "_asdca",
    "Certificate": "_certify",
    "Data": "_handle",
    "DualGradient": "_dual_gradient",
    "LossInfo": "_losses",
    "Pegasos": "_pegasos",
    "Progress": "_core",
    "ScoreHistory": "_score_history",
    "Sdca": "_sdca",
    "SdcaClassifier": "_faces",
    "SdcaRegressor": "_faces",
    "Subgradient": "_subgradient",
    "certify": "_certify",
    "drop_in": "drop_in",
    "dump_svmlight_file": "_svmlight",
    "load": "_model_file",
    "load_svmlight_file": "_svmlight",
    "load_svmlight_files": "_svmlight",
    "losses": "_losses",
    "theory": "theory",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    value: Any
    if name == "__version__":
        from importlib.metadata import version

        value = version("sdca-rs")
    elif name in _HOMES:
        home = import_module(f"sdca_rs.{_HOMES[name]}")
        value = home if _HOMES[name] == name else getattr(home, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
