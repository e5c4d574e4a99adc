"""Linear models by stochastic dual coordinate ascent, each fit with a certificate.

Start with :class:`Sdca`; :func:`losses` lists what it can minimise, and
:func:`certify` proves how good any fitted linear model is.
"""

from importlib.metadata import version as _version

from sdca_rs._certify import Certificate, certify
from sdca_rs._core import Progress
from sdca_rs._losses import LossInfo, losses
from sdca_rs._sdca import Sdca

__version__ = _version("sdca-rs")

__all__ = ["Certificate", "LossInfo", "Progress", "Sdca", "certify", "losses"]
