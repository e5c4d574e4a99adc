"""Linear models by stochastic dual coordinate ascent, each fit with a certificate.

Start with :class:`Sdca`; :func:`losses` lists what it can minimise, and
:func:`certify` proves how good any fitted linear model is. :class:`Asdca`,
:class:`Pegasos`, :class:`Subgradient` and :class:`DualGradient` are other roads to the
same optimum, :mod:`sdca_rs.theory` says how long they are, and
:class:`sdca_rs.plotting.ConvergenceDisplay` draws them.
"""

from importlib.metadata import version as _version

from sdca_rs import theory
from sdca_rs._asdca import Asdca
from sdca_rs._certify import Certificate, certify
from sdca_rs._core import Progress
from sdca_rs._dual_gradient import DualGradient
from sdca_rs._handle import Data
from sdca_rs._losses import LossInfo, losses
from sdca_rs._pegasos import Pegasos
from sdca_rs._sdca import Sdca
from sdca_rs._subgradient import Subgradient
from sdca_rs._svmlight import (
    dump_svmlight_file,
    load_svmlight_file,
    load_svmlight_files,
)

__version__ = _version("sdca-rs")

__all__ = [
    "Asdca",
    "Certificate",
    "Data",
    "DualGradient",
    "LossInfo",
    "Pegasos",
    "Progress",
    "Sdca",
    "Subgradient",
    "certify",
    "dump_svmlight_file",
    "load_svmlight_file",
    "load_svmlight_files",
    "losses",
    "theory",
]
