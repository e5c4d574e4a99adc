"""
Quantile bands
==============

One number as a prediction says nothing about how far off it may be. Quantile regression
fits a curve below which a chosen share of the targets lies. Three of them make a band.
"""

# %%
# Data
# ----
#
# A curve with noise that grows and is skewed, so that no multiple of a standard
# deviation would describe it.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from sdca_rs import SdcaRegressor

rng = np.random.default_rng(0)


def draw(n):
    """Return positions and noisy values."""
    x = rng.uniform(0, 10, n)
    noise = (0.1 + 0.12 * x) * (rng.gamma(2, 1, n) - 1.7)
    return x[:, None], np.sin(x) + 0.3 * x + noise


x, y = draw(4000)
x_test, y_test = draw(4000)

# %%
# Three quantiles
# ---------------
#
# The model is linear in the columns, and these are splines of ``x``. ``loss_param`` is
# the quantile. With a large ``C`` the curves are hardly regularised.

quantiles = (0.05, 0.5, 0.95)
start = time.perf_counter()
models = {
    q: make_pipeline(
        SplineTransformer(n_knots=12),
        SdcaRegressor("quantile", loss_param=q, C=100, random_state=0),
    ).fit(x, y)
    for q in quantiles
}
seconds = time.perf_counter() - start
print(f"three fits: {seconds:.2f} s")
for q, model in models.items():
    below = np.mean(y_test < model.predict(x_test))
    gap = model[-1].duality_gap_ / model[-1].objective_
    print(f"quantile {q}: {below:.1%} of new rows lie below; relative gap {gap:.0e}")

# %%
# scikit-learn's ``QuantileRegressor`` solves the same problem, without regularisation,
# as a linear program. Here is one of the three fits:

start = time.perf_counter()
peer = make_pipeline(
    SplineTransformer(n_knots=12), QuantileRegressor(quantile=0.5, alpha=0)
).fit(x, y)
print(f"QuantileRegressor, one fit: {time.perf_counter() - start:.2f} s")

# %%
# The band
# --------

grid = np.linspace(0, 10, 400)[:, None]
low, middle, high = (models[q].predict(grid) for q in quantiles)
figure, axis = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
axis.plot(x_test[::3], y_test[::3], ".", color="0.65", ms=2)
axis.fill_between(grid[:, 0], low, high, color="#1f6f8b", alpha=0.25, label="90 % band")
axis.plot(grid, middle, color="#1f6f8b", lw=2, label="median")
axis.set(xlabel="x", ylabel="y")
axis.legend(loc="upper left")
axis.spines[["top", "right"]].set_visible(False)
plt.show()
