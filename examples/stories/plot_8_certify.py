"""
Certifying somebody else's model
================================

A model is given: fitted by another library, or found in a file. Is it the best that its
objective allows? :func:`sdca_rs.certify` answers with a bound.
"""

# %%
# Models from scikit-learn
# ------------------------
#
# Four estimators with their defaults, on columns as they are and on scaled ones.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sdca_rs import SdcaClassifier, certify

raw, y = load_breast_cancer(return_X_y=True)
tables = {"as stored": raw, "scaled": StandardScaler().fit_transform(raw)}
n = len(y)

models = {
    "LinearSVC(loss='hinge')": LinearSVC(loss="hinge", random_state=0),
    "LogisticRegression()": LogisticRegression(),
    "SGDClassifier('hinge')": SGDClassifier("hinge", alpha=1 / n, random_state=0),
    "SdcaClassifier('hinge')": SdcaClassifier("hinge", random_state=0),
}

# %%
# ``certify`` knows the objective of most of scikit-learn's linear models. For
# ``SGDClassifier``, which has many, we name it. The objective is always the one with a
# free intercept; ``LinearSVC`` also regularises its own, and what that costs is a part
# of its gap.

found = {}
for where, X in tables.items():
    print(f"\n{where}")
    for name, model in models.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        named = {"loss": "hinge", "lam": 1 / n} if name.startswith("SGD") else {}
        proof = certify(model, X, y, **named)
        found[where, name] = proof.gap / proof.dual_objective
        print(
            f"  {name:25s} at most {proof.gap / proof.dual_objective:9.1e}"
            f" above the best, warned: {'yes' if caught else 'no'}"
        )

# %%
# In a picture: how far each model may be above the best one. A bar that crosses the
# line is a model that may be more than one per cent worse than another with the same
# parameters.

figure, axis = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
height = np.arange(len(models))
for shift, (where, color) in enumerate(
    zip(tables, ("#d1495b", "#1f6f8b"), strict=True)
):
    values = [max(found[where, name], 1e-9) for name in models]
    axis.barh(height + 0.36 * shift, values, 0.34, color=color, label=where)
axis.axvline(0.01, color="black", lw=1, ls="--")
axis.set(
    xscale="log",
    xlim=(1e-7, None),
    yticks=height + 0.18,
    yticklabels=list(models),
    xlabel="at most so far above the best objective, as a share of it",
)
axis.invert_yaxis()
axis.legend(loc="lower right")
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Coefficients from a file
# ------------------------
#
# Only the coefficients and the intercept of a model count. So a model that is known
# by its coefficients can be certified, too: put them into an estimator of
# scikit-learn. Here they are rounded to one digit.

given = LogisticRegression(C=1.0)
given.classes_ = np.unique(y)
given.coef_ = np.round(models["LogisticRegression()"].coef_, 1)
given.intercept_ = np.round(models["LogisticRegression()"].intercept_, 1)
proof = certify(given, tables["scaled"], y)
print(f"rounded to one digit: at most {proof.gap / proof.dual_objective:.1%} above")
