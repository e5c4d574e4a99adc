"""
Calibrated probabilities
========================

Of all cases to which a model gives 80 %, four in five should come true. Logistic
regression (``"log"``) has probabilities of its own. A support vector machine has none,
and ``CalibratedClassifierCV`` turns its scores into some.
"""

# %%
# Data
# ----
#
# Two classes that overlap, and of which a tenth of the labels are wrong.

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdca_rs import SdcaClassifier

X, y = make_classification(
    20_000, 20, n_informative=6, flip_y=0.1, class_sep=0.8, random_state=0
)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)

# %%
# Three models
# ------------
#
# The same data, the same columns. The scores of the hinge are calibrated on folds that
# the classifier has not seen: a sigmoid has two parameters, and the isotonic method
# fits any rising curve, for which it needs some thousand rows.

models = {
    "log": make_pipeline(StandardScaler(), SdcaClassifier("log", random_state=0)),
    "hinge, sigmoid": CalibratedClassifierCV(
        make_pipeline(StandardScaler(), SdcaClassifier("hinge", random_state=0)),
        method="sigmoid",
    ),
    "hinge, isotonic": CalibratedClassifierCV(
        make_pipeline(StandardScaler(), SdcaClassifier("hinge", random_state=0)),
        method="isotonic",
    ),
}
print(f"{'':18s}{'Brier':>8s}{'log loss':>10s}   (smaller is better)")
for name, model in models.items():
    p = model.fit(X, y).predict_proba(X_test)[:, 1]
    print(f"{name:18s}{brier_score_loss(y_test, p):8.4f}{log_loss(y_test, p):10.4f}")

# %%
# The calibration curve
# ---------------------
#
# On the diagonal, a predicted probability is what is observed. As a tenth of the labels
# is wrong, no class is certain anywhere. A sigmoid cannot say so, neither that of the
# logistic model nor the one fitted to the hinge, and both are too sure of themselves.
# The isotonic curve can.

figure, axis = plt.subplots(figsize=(5.5, 5), layout="constrained")
for name, model in models.items():
    CalibrationDisplay.from_estimator(
        model, X_test, y_test, n_bins=12, strategy="quantile", name=name, ax=axis
    )
axis.set(xlabel="predicted probability", ylabel="share that came true")
axis.grid(alpha=0.3)
plt.show()
