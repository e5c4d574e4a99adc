"""
Imbalanced classes
==================

When one row in fifty is a case, a model that never finds one is right in 98 % of the
rows. Class weights make the cases count, and the threshold decides how many to accept.
"""

# %%
# Data
# ----

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import (
    PrecisionRecallDisplay,
    average_precision_score,
    precision_score,
    recall_score,
)
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdca_rs import SdcaClassifier

X, y = make_classification(
    40_000,
    30,
    n_informative=8,
    n_clusters_per_class=1,
    weights=[0.98],
    flip_y=0.002,
    class_sep=0.6,
    random_state=2,
)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
print(f"{y.mean():.1%} of the rows are cases")

# %%
# Weights and thresholds
# ----------------------
#
# ``class_weight="balanced"`` gives both classes the same total weight. A weight is a
# count: a case of weight 25 stands for 25 rows. The probabilities are then those of a
# world in which half of the rows are cases, so do not read them as those of this one.
#
# The other way is to keep the probabilities and to move the threshold.
# ``TunedThresholdClassifierCV`` chooses it by cross-validation.

models = {
    "plain": SdcaClassifier("log", random_state=0),
    "balanced": SdcaClassifier("log", class_weight="balanced", random_state=0),
    "hinge, balanced": SdcaClassifier("hinge", class_weight="balanced", random_state=0),
    "plain, tuned threshold": TunedThresholdClassifierCV(
        SdcaClassifier("log", random_state=0), scoring="f1"
    ),
}
pipelines = {name: make_pipeline(StandardScaler(), m) for name, m in models.items()}
print(f"{'':24s}{'precision':>10s}{'recall':>8s}{'average precision':>19s}")
for name, pipeline in pipelines.items():
    found = pipeline.fit(X, y).predict(X_test)
    ranked = (
        pipeline.decision_function(X_test)
        if hasattr(pipeline, "decision_function")
        else pipeline.predict_proba(X_test)[:, 1]
    )
    print(
        f"{name:24s}{precision_score(y_test, found, zero_division=0):10.2f}"
        f"{recall_score(y_test, found):8.2f}"
        f"{average_precision_score(y_test, ranked):19.3f}"
    )

# %%
# All thresholds at once
# ----------------------
#
# The dots are where ``predict`` puts the threshold. Weights move it, and they also
# change the order of the rows, here for the worse: the plain model ranks best. So try
# another threshold before weights.

figure, axis = plt.subplots(figsize=(6, 4.6), layout="constrained")
for color, name in zip(
    ("#1f6f8b", "#1a936f", "#d1495b"), list(pipelines)[:3], strict=True
):
    pipeline = pipelines[name]
    PrecisionRecallDisplay.from_estimator(
        pipeline, X_test, y_test, name=name, ax=axis, curve_kwargs={"color": color}
    )
    found = pipeline.predict(X_test)
    at = recall_score(y_test, found), precision_score(y_test, found, zero_division=0)
    axis.plot(*at, "o", color=color, ms=8)
axis.grid(alpha=0.3)
axis.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
plt.show()

# %%
# The share of rows that each model accepts:

for name, pipeline in pipelines.items():
    print(f"{name:24s}{np.mean(pipeline.predict(X_test)):7.1%}")
