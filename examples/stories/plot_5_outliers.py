"""
Robust regression with outliers
===============================

A few wrong targets can spoil a least-squares fit. Losses that grow linearly, such as
``"huber"`` and ``"absolute"``, bound the influence of each row.
"""

# %%
# Data
# ----
#
# Ten columns, known coefficients, and targets of which some are replaced by nonsense
# that depends on the first column.

import matplotlib.pyplot as plt
import numpy as np

from sdca_rs import SdcaRegressor

rng = np.random.default_rng(0)
n = 2000
truth = rng.normal(0, 3, 10)
X = rng.normal(size=(n, 10))
clean = X @ truth + rng.normal(0, 1, n)


def spoil(share):
    """Replace a share of the targets."""
    y = clean.copy()
    bad = rng.random(n) < share
    y[bad] = 60 - 30 * X[bad, 0] + rng.normal(0, 20, bad.sum())
    return y


# %%
# The error of the coefficients
# -----------------------------
#
# For more and more outliers. The width of a Huber loss, ``loss_param``, is in the units
# of the target: residuals up to it are squared, larger ones count linearly.

shares = np.linspace(0, 0.3, 13)
losses = {"squared": None, "huber": 1.35, "absolute": None}
errors = {loss: [] for loss in losses}
for share in shares:
    y = spoil(share)
    for loss, param in losses.items():
        model = SdcaRegressor(loss, loss_param=param, C=1, random_state=0).fit(X, y)
        errors[loss].append(np.linalg.norm(model.coef_ - truth))

for loss, values in errors.items():
    print(f"{loss:9s} no outliers: {values[0]:.2f}, 30 % outliers: {values[-1]:.2f}")

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for (loss, values), color in zip(
    errors.items(), ("#d1495b", "#1f6f8b", "#1a936f"), strict=True
):
    axis.plot(100 * shares, values, marker="o", ms=4, color=color, label=loss)
axis.set(
    xlabel="outliers, % of the rows",
    ylabel="distance from the true coefficients",
    yscale="log",
)
axis.legend()
axis.grid(alpha=0.3)
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Finding the outliers
# --------------------
#
# The dual value of a row is the force with which it pulls at the model, and a robust
# loss limits it. Rows at the limit are those that the model does not follow. With a
# width of four standard deviations of the noise, hardly any other rows are among them.

y = spoil(0.1)
model = SdcaRegressor("huber", loss_param=4, C=1, random_state=0).fit(X, y)
residuals = np.abs(y - model.predict(X))
at_limit = np.isclose(np.abs(model.dual_coef_), 4)
print(f"{at_limit.mean():.1%} of the rows are at the limit")
print(f"median residual there {np.median(residuals[at_limit]):.1f}, ", end="")
print(f"elsewhere {np.median(residuals[~at_limit]):.2f}")
