"""A pytest plugin: scikit-learn's own test modules run against `sdca_rs.drop_in`.

`test_drop_in.py` starts it, in a process of its own. By hand, from any folder::

    PYTHONPATH=<checkout>/tests pytest -p drop_in_upstream --pyargs \
        sklearn.linear_model.tests.test_ridge

It replaces the classes in `sklearn.linear_model` and `sklearn.svm` before the modules
are imported, and runs the cases in whose source one of them is named. Left out are
those of scikit-learn's cross-validated classes, which are not replaced, and those of
the array API, which scikit-learn skips unless it is told otherwise. A case of the table
`EXCEPTIONS` must fail, and by an error that matches; every other one must pass.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import pytest

from sdca_rs import drop_in

# The release of scikit-learn whose tests the table is about.
RELEASE = (1, 9)


class Module(NamedTuple):
    """The classes that a module is about, and how many cases must pass at least."""

    classes: tuple[str, ...]
    least_passed: int


MODULES = {
    "sklearn.linear_model.tests.test_ridge": Module(("Ridge", "RidgeClassifier"), 440),
    "sklearn.linear_model.tests.test_logistic": Module(("LogisticRegression",), 38),
    "sklearn.linear_model.tests.test_quantile": Module(("QuantileRegressor",), 4),
    "sklearn.svm.tests.test_svm": Module(("LinearSVC", "LinearSVR"), 21),
}


class Row(NamedTuple):
    """Cases that cannot pass, by `fnmatch` patterns, where `[[]` is a bracket."""

    reason: str
    # A regular expression for the error, or one that it was raised from.
    error: str
    cases: tuple[str, ...]


EXCEPTIONS = (
    Row(
        "A model without a penalty has no dual with a bounded gap: alpha=0 raises.",
        r"ValueError: alpha: found .*\b0(\.0)?\)?, expected a finite number > 0",
        (
            "test_ridge_regression_unpenalized[[]*",
            "test_ridge_regression_unpenalized_hstacked_X[[]*",
            "test_ridge_regression_unpenalized_vstacked_X[[]*",
            "test_ridge_vs_lstsq",
            "test_ridge_individual_penalties",
            "test_quantile_toy_example[[]*-0-1-*",
            "test_quantile_estimates_calibration[[]*",
            "test_asymmetric_error[[]*",
            "test_equivariance[[]*",
        ),
    ),
    Row(
        "A model without a penalty: C=inf raises.",
        "ValueError: C: found inf, expected a finite number > 0",
        ("test_c_inf_no_warning[[]*",),
    ),
    Row(
        "A model without a penalty: penalty=None raises.",
        "ValueError: penalty: found None, expected",
        ("test_penalty_none[[]*",),
    ),
    Row(
        "The penalty is L2: l1_ratio other than 0 raises.",
        r"ValueError: l1_ratio: found (1|1\.0|0\.\d), expected 0 or None",
        (
            "test_sample_and_class_weight_equivalence_liblinear[[]*",
            "test_logreg_l1[[]*",
            "test_saga_vs_liblinear[[]*-1]",
            "test_elastic_net_coeffs[[]*",
            "test_elastic_net_vs_l1_l2[[]*",
            "test_LogisticRegression_elastic_net_objective[[]*",
            "test_elastic_net_versus_sgd[[]*",
            "test_logisticregression_liblinear_sample_weight[[]*-params0]",
            "test_liblinear_not_stuck[[]*",
            "test_lr_penalty_l1ratio_incompatible[[]l2-1.0]",
            "test_scores_attribute_layout_elasticnet",
        ),
    ),
    Row(
        "The penalty is L2: any other raises.",
        "ValueError: penalty: found '(l1|elasticnet)', expected",
        (
            "test_elastic_net_l1_l2_equivalence[[]*",
            "test_lr_penalty_l1ratio_incompatible[[]l1-0.0]",
            "test_l1_ratio_non_elasticnet",
            "test_linearsvc[[]*",
            "test_linearsvc_parameters[[]*-False-l1-squared_hinge]",
            "test_dense_liblinear_intercept_handling",
            "test_linearsvm_liblinear_sample_weight[[]*-LinearSVC-params0]",
        ),
    ),
    Row(
        "The penalty is L2: others raise, too, but with another text.",
        "Regex pattern did not match[^$]*penalty: found '(l1|elasticnet)'",
        (
            "test_linearsvc_parameters[[]*-True-l1-*",
            "test_linearsvc_parameters[[]*-False-l1-hinge]",
            "test_elasticnet_l1_ratio_err_helpful[[]LogisticRegression-*",
        ),
    ),
    Row(
        "The penalty of QuantileRegressor is L2, which leaves no coefficient at 0.",
        r"20\) == 10 ± 1",
        ("test_sparse_input[[]*",),
    ),
    Row(
        "The penalty of QuantileRegressor is L2, and shrinks large coefficients more.",
        "Not equal to tolerance",
        ("test_quantile_equals_huber_for_low_epsilon[[]False]",),
    ),
    Row(
        "Constraints are not available: positive=True raises.",
        "ValueError: positive: found True, expected False",
        (
            "test_ridge_positive_regression_test[[]*-auto]",
            "test_ridge_ground_truth_positive_test[[]*",
            "test_positive_ridge_loss[[]*",
        ),
    ),
    Row(
        "positive=True raises with any solver, with another text.",
        "Regex pattern did not match[^$]*positive: found True",
        ("test_ridge_positive_error_test[[]*",),
    ),
    Row(
        "Constraints are not available: their solver raises.",
        "ValueError: solver: found 'lbfgs', expected",
        (
            "test_ridge_positive_regression_test[[]*-lbfgs]",
            "test_ridge_fit_intercept_sparse[[]*-lbfgs]",
            "test_ridge_sample_weight_consistency[[]*-lbfgs-*",
            "test_dtype_match[[]lbfgs]",
            "test_lbfgs_solver_error",
        ),
    ),
    Row(
        "Joint models of three classes are not available: LogisticRegression raises.",
        "ValueError: y: found 3 classes, expected 2",
        (
            "test_predict_3_classes[[]*",
            "test_logistic_glmnet[[]*",
            "test_sparsify[[]*",
            "test_multinomial_logistic_regression_string_inputs",
            "test_logistic_regression_solvers_multiclass[[]*",
            "test_logistic_regression_solvers_multiclass_unpenalized[[]*",
            "test_logistic_regression_class_weights[[]*",
            "test_logreg_predict_proba_multinomial[[]*",
            "test_n_iter[[]*-lbfgs]",
            "test_n_iter[[]*-newton-c*",
            "test_n_iter[[]*-sag*",
            "test_warm_start[[]*",
            "test_warm_start_newton_solver[[]*",
            "test_multinomial_identifiability_on_iris[[]*",
            "test_sample_weight_not_modified[[]*",
            "test_auto_weight",
        ),
    ),
    Row(
        "With three classes any solver raises, not only liblinear, with another text.",
        "Regex pattern did not match[^$]*y: found 3 classes",
        (
            "test_check_solver_option[[]LogisticRegression]",
            "test_liblinear_multiclass_raises[[]LogisticRegression]",
        ),
    ),
    Row(
        "Joint models of all classes are not available: crammer_singer raises.",
        "ValueError: multi_class: found 'crammer_singer', expected",
        ("test_linearsvc_crammer_singer[[]*", "test_crammer_singer_binary[[]*"),
    ),
    Row(
        "No epoch at all is no fit: max_iter=0 raises.",
        "ValueError: max_iter: found 0, expected",
        ("test_zero_max_iter[[]*",),
    ),
    Row(
        "Coefficients are float64 for rows of float32, too.",
        "AssertionError: assert dtype.'float64'. == .*float32",
        (
            "test_dtype_match[[]svd]",
            "test_dtype_match[[]sparse_cg]",
            "test_dtype_match[[]cholesky]",
            "test_dtype_match[[]lsqr]",
            "test_dtype_match[[]sag]",
            "test_dtype_match[[]saga]",
            "test_dtype_match_cholesky",
            "test_dtype_match[[]csr_*-lbfgs]",
            "test_dtype_match[[]csr_*-newton-c*",
            "test_dtype_match[[]csr_*-sag*",
        ),
    ),
    Row(
        "The warning that a fit did not converge is worded otherwise.",
        "Regex pattern did not match any of the 1 warnings[^$]*failed to converge: ",
        ("test_max_iter[[]*", "test_linear_svm_convergence_warnings[[]*"),
    ),
    Row(
        "n_iter_ counts epochs, which stop at the solution; it is never None.",
        "Arrays are not equal",
        ("test_n_iter",),
    ),
    Row(
        "Two weights too many dimensions raise, too, but with another text.",
        "Regex pattern did not match[^$]*sample_weight: found shape",
        ("test_raises_value_error_if_sample_weights_greater_than_1d",),
    ),
    Row(
        "Rows and targets of different numbers raise, too, but with another text.",
        "Regex pattern did not match[^$]*y: found 4 entries, expected 3",
        ("test_inconsistent_input",),
    ),
    Row(
        "Every solver can do everything: no combination of solver and data raises.",
        "DID NOT RAISE ValueError",
        (
            "test_ridge_fit_intercept_sparse_error[[]*",
            "test_linearsvc_parameters[[]*-False-l2-hinge]",
            "test_large_sparse_matrix[[]*-liblinear]",
            "test_large_sparse_matrix[[]*-sag*",
            "test_liblinear_with_large_values",
            "test_error_interior_point_future",
        ),
    ),
    Row(
        "No solver has weaknesses to warn of.",
        "DID NOT WARN",
        (
            "test_ridge_fit_intercept_sparse_sag[[]*",
            "test_newton_cholesky_fallback_to_lbfgs",
        ),
    ),
    Row(
        "The fit is so close to the optimum that the seed makes no difference.",
        "DID NOT RAISE AssertionError",
        ("test_liblinear_dual_random_state[[]*",),
    ),
    Row(
        "Parameters are those of scikit-learn 1.9, without warnings of their removal.",
        "DID NOT WARN",
        (
            "test_penalty_deprecated[[]LogisticRegression]",
            "test_l1_ratio_None_deprecated",
        ),
    ),
    Row(
        "n_jobs has an effect here.",
        "DID NOT WARN",
        ("test_logisticregression_warns_with_n_jobs",),
    ),
    Row(
        "scikit-learn's callbacks are not those of this package.",
        "ValueError: callbacks: found .*, expected none",
        (
            "test_logistic_regression_callback_support[[]*",
            "test_logistic_regression_callback_fitted_estimator[[]*",
            "test_logistic_regression_callback_support_warning",
        ),
    ),
)


class QuantileRegressor(drop_in.QuantileRegressor):
    """With the penalty that must be asked for."""

    def __init__(
        self,
        *,
        penalty: Any = "l2",
        quantile: float = 0.5,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        solver: Any = "highs",
        solver_options: Any = None,
    ) -> None:
        super().__init__(
            penalty=penalty,
            quantile=quantile,
            alpha=alpha,
            fit_intercept=fit_intercept,
            solver=solver,
            solver_options=solver_options,
        )


class Ridge(drop_in.Ridge):
    """With the solver's name that was asked for, which a test of all solvers checks."""

    def _run(self, *given: Any) -> Any:
        fits = super()._run(*given)
        self.solver_ = self.solver
        return fits


def pytest_configure() -> None:
    import sklearn.linear_model
    import sklearn.svm

    ours = {"QuantileRegressor": QuantileRegressor, "Ridge": Ridge}
    for path, module in MODULES.items():
        package = sklearn.svm if ".svm." in path else sklearn.linear_model
        for name in module.classes:
            setattr(package, name, ours.get(name, getattr(drop_in, name)))


CLASSES = [name for module in MODULES.values() for name in module.classes]
NAMES = re.compile(rf"\b({'|'.join(CLASSES)})\b")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    others = [item for item in items if not is_ours(item)]
    items[:] = [item for item in items if is_ours(item)]
    config.hook.pytest_deselected(items=others)
    modules = {item.module.__name__ for item in items}  # type: ignore[attr-defined]
    if modules == set(MODULES):
        patterns = [case for row in EXCEPTIONS for case in row.cases]
        unused = [p for p in patterns if not any(fnmatchcase(i.name, p) for i in items)]
        if unused:
            raise pytest.UsageError(f"exceptions that are no case: {unused}")
    for item in items:
        if len(rows_of(item)) > 1:
            raise pytest.UsageError(f"more than one exception: {item.name}")


def is_ours(item: Any) -> bool:
    if re.search("cv|array_api", item.name, re.IGNORECASE):
        return False
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(NAMES.search(source(value)) for value in (item.function, *params))


def source(value: Any) -> str:
    """Return the text of a function or class, or what stands for another value."""
    if inspect.isfunction(value):
        return inspect.getsource(value)
    return repr(value)


def rows_of(item: pytest.Item) -> list[Row]:
    return [
        row
        for row in EXCEPTIONS
        if any(fnmatchcase(item.name, case) for case in row.cases)
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[Any]:
    report = yield
    rows = rows_of(item)
    if call.when != "call" or not rows or report.skipped:
        return report
    if call.excinfo is None:
        report.outcome = "failed"
        report.longrepr = f"passes, though the table says: {rows[0].reason}"
    elif any(re.search(rows[0].error, text) for text in errors(call.excinfo.value)):
        report.outcome = "skipped"
        report.wasxfail = rows[0].reason
    return report


def errors(error: BaseException | None) -> Iterator[str]:
    """Yield an error and those that it was raised from."""
    while error is not None:
        yield f"{type(error).__name__}: {error}"
        error = error.__cause__ or error.__context__
