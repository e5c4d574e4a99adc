"""The drop-in classes: scikit-learn's contract and tests, and its own results."""
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sdca_rs import drop_in
ESTIMATORS=[drop_in.LinearSVC(),drop_in.LinearSVC(intercept_scaling=float("inf"), loss="hinge"),drop_in.LinearSVR(),drop_in.LogisticRegression(),drop_in.LogisticRegression(solver="liblinear"),drop_in.Ridge(),drop_in.RidgeClassifier(),drop_in.QuantileRegressor(penalty="l2",alpha=1e-2)]
@parametrize_with_checks(ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_contract(estimator, check):
    check(estimator)
