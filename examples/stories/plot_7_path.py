"""
Choosing C with warm starts
===========================

A support vector machine for twenty values of ``C``, each fit beginning where the one
before it has ended. Held-out rows choose among them.
"""

# %%
# Data
# ----
#
# Rows that are used by many fits are checked and prepared once, as ``Data``.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdca_rs import Data, SdcaClassifier

X, y = make_classification(
    12_000, 120, n_informative=15, n_redundant=20, flip_y=0.15, random_state=0
)
raw, raw_test, y, y_test = train_test_split(X, y, test_size=0.9, random_state=0)
scaler = StandardScaler().fit(raw)
train, held_out = Data(scaler.transform(raw)), Data(scaler.transform(raw_test))
values = np.geomspace(1e-5, 1, 20)

# %%
# The path
# --------
#
# From the smallest ``C`` to the largest. The dual values of one fit are valid for every
# other ``C``, so nothing is lost by starting there; and each fit has its own
# certificate.


def follow(warm):
    """Fit all values of C; return accuracies, seconds and epochs."""
    model = SdcaClassifier("hinge", warm_start=warm, random_state=0)
    scores, seconds, epochs = [], 0.0, 0
    for C in values:
        start = time.perf_counter()
        model.set_params(C=C).fit(train, y)
        seconds += time.perf_counter() - start
        epochs += model.n_iter_
        scores.append((model.score(train, y), model.score(held_out, y_test)))
    return np.transpose(scores), seconds, epochs


_, cold_seconds, cold_epochs = follow(False)
(on_train, on_new), warm_seconds, warm_epochs = follow(True)
best = values[on_new.argmax()]
print(f"each fit by itself: {cold_seconds:.3f} s, {cold_epochs} epochs")
print(f"warm starts:        {warm_seconds:.3f} s, {warm_epochs} epochs")
print(f"best C: {best:.1g}, accuracy on new rows {on_new.max():.3f}")

# %%
# What warm starts gain depends on the loss: much for ``"hinge"`` and others with a
# kink, little for ``"log"``. See the guide on warm starts for measurements.

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.semilogx(values, on_train, color="#8a8f98", label="rows of the fit")
axis.semilogx(values, on_new, color="#1f6f8b", lw=2, label="new rows")
axis.axvline(best, color="#1a936f", ls="--", lw=1, label=f"best C = {best:.1g}")
axis.set(xlabel="C", ylabel="accuracy")
axis.legend()
axis.grid(alpha=0.3)
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# By cross-validation
# -------------------
#
# ``GridSearchCV`` fits each value by itself, on every fold. It needs nothing but the
# pipeline, and a loose tolerance is enough to rank the values.

pipeline = make_pipeline(
    StandardScaler(), SdcaClassifier("hinge", tol=1e-3, random_state=0)
)
search = GridSearchCV(pipeline, {"sdcaclassifier__C": values[::3]}, cv=5)
start = time.perf_counter()
search.fit(raw, y)
seconds = time.perf_counter() - start
chosen = search.best_params_["sdcaclassifier__C"]
print(f"{5 * len(values[::3])} fits in {seconds:.2f} s, best C: {chosen:.1g}")
print(f"accuracy on new rows: {search.score(raw_test, y_test):.3f}")
