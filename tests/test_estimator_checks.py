"""scikit-learn's own checks of its contract, for every loss."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sdca_rs import Sdca, losses

# Some checks fit noise with huge coefficients, which need not converge.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_checks(
    [
        Sdca(loss=loss.name, fit_intercept=fit_intercept)
        for loss in losses()
        for fit_intercept in (True, False)
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
