"""
A table with categorical columns and missing values
===================================================

Most tables hold numbers, categories and gaps. A ``ColumnTransformer`` makes them into
columns that a linear model can use, and ``SdcaRegressor`` is the last step of the
pipeline.
"""

# %%
# A table
# -------
#
# Generated, so that we know what is true: rents of flats. Some values are missing, and
# whether they are missing is informative: the year of building is mostly unknown for
# old houses.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sdca_rs import SdcaRegressor

rng = np.random.default_rng(0)
n = 8000
districts = [f"{k:02d}" for k in range(1, 25)]
level = dict(zip(districts, rng.normal(0, 2.5, len(districts)), strict=True))
table = pd.DataFrame(
    {
        "district": rng.choice(districts, n),
        "heating": rng.choice(
            ["gas", "district heating", "electric"], n, p=[0.6, 0.3, 0.1]
        ),
        "area": rng.gamma(9, 8, n).round(),
        "year": rng.integers(1900, 2024, n).astype(float),
        "floor": rng.integers(0, 8, n).astype(float),
    }
)
rent = (
    300
    + table["area"] * (9 + table["district"].map(level))
    + 90 * (table["heating"] == "district heating")
    + 2 * (table["year"] - 1960).clip(lower=0)
    + rng.gumbel(0, 90, n)
)
old = table["year"] < 1950
table.loc[old & (rng.random(n) < 0.6), "year"] = np.nan
table.loc[rng.random(n) < 0.05, "floor"] = np.nan
table.loc[rng.random(n) < 0.02, "heating"] = None
table.head()

# %%
# The pipeline
# ------------
#
# Numbers: the median for what is missing, a column that says that it was, and a common
# scale. Categories: one column for each, and a category that was never seen gives
# zeros. The rows are sparse, and are fitted without making them dense.

numbers, categories = ["area", "year", "floor"], ["district", "heating"]
columns = ColumnTransformer(
    [
        (
            "numbers",
            make_pipeline(
                SimpleImputer(strategy="median", add_indicator=True), StandardScaler()
            ),
            numbers,
        ),
        (
            "categories",
            OneHotEncoder(handle_unknown="ignore", min_frequency=10),
            categories,
        ),
    ],
    verbose_feature_names_out=False,
)
pipeline = make_pipeline(
    columns, SdcaRegressor("huber", loss_param=100, C=1, random_state=0)
)
train, test, y, y_test = train_test_split(table, rent, random_state=0)
pipeline.fit(train, y)
print(f"R2 on held-out rows: {pipeline.score(test, y_test):.3f}")

# %%
# The certificate is that of the last step: no other coefficients of these columns have
# an objective that is lower by more than the gap.

model = pipeline[-1]
print(f"stopped: {model.stop_reason_} after {model.n_iter_} epochs")
print(f"gap: {model.duality_gap_ / model.objective_:.1e} of the objective")

# %%
# What it has learnt
# ------------------
#
# The names of the columns come from the ``ColumnTransformer``. These are the twelve
# largest coefficients.

names = pipeline[:-1].get_feature_names_out()
effects = pd.Series(model.coef_, index=names)
shown = effects[effects.abs().sort_values(ascending=False).index[:12]][::-1]
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.barh(shown.index, shown, color=np.where(shown > 0, "#1a936f", "#d1495b"))
axis.axvline(0, color="black", lw=0.8)
axis.set(xlabel="effect on the rent, of one standard deviation or of the category")
axis.spines[["top", "right"]].set_visible(False)
plt.show()
