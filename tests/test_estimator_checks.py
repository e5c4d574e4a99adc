"""scikit-learn's own checks of its contract, for every loss."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sdca_rs import (
    Asdca,
    DualGradient,
    Pegasos,
    Sdca,
    SdcaClassifier,
    SdcaRegressor,
    Subgradient,
    losses,
)

# Some checks fit noise with huge coefficients, which need not converge.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SMOOTH = (
    "squared_hinge",
    "smooth_hinge",
    "log",
    "modified_huber",
    "squared",
    "huber",
    "squared_epsilon_insensitive",
)


# Rows that no class wants are given to all classes with the same probability, as by
# SGDClassifier, which fails the same check. Without an intercept there are such rows.
NOBODYS_ROWS = {
    "check_classifiers_train": "the probabilities of modified_huber can be equal"
}


def expected_failures(estimator):
    if estimator.loss == "modified_huber" and not estimator.fit_intercept:
        return NOBODYS_ROWS
    return {}


@parametrize_with_checks(
    [
        estimator(loss=loss.name, fit_intercept=fit_intercept)
        for estimator in (Sdca, Asdca, Pegasos, Subgradient, DualGradient)
        for loss in losses()
        for fit_intercept in (True, False)
        if estimator is not Asdca or loss.name in SMOOTH
    ]
    + [
        (SdcaClassifier if loss.task == "classification" else SdcaRegressor)(loss.name)
        for loss in losses()
    ]
    # By scikit-learn's names.
    + [
        SdcaClassifier("log_loss"),
        SdcaRegressor("squared_error"),
        SdcaRegressor("absolute_error"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
