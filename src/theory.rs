//! Sufficient numbers of iterations according to the theorems, computed from the data.
//!
//! All functions concern the minimum over `w` of
//!
//! ```text
//! P(w) = (1/n) sum_i phi_i(x_i.w) + (lambda/2) |w|^2
//! ```
//!
//! for convex losses `phi_i`, without weights and without an intercept, starting from `w = 0` (all
//! dual values 0). Of the loss they need `lipschitz`, the constant `L` with `|phi(p) - phi(q)| <= L
//! |p - q|`, or `gamma` such that the slope of `phi` is `1/gamma`-Lipschitz:
//! [`Loss::lipschitz`](crate::loss::Loss::lipschitz) and
//! [`Loss::smoothness`](crate::loss::Loss::smoothness). Everything else is in [`Setting`].
//!
//! A row `x` under a loss of constant `L` is equivalent to the row `L x` under a loss with `L = 1`.
//! So formulas published for `R = 1` or `L = 1` hold for all `R` and `L` if `L R` replaces the one
//! and `gamma / R^2` replaces `gamma`.
//!
//! The numbers are sufficient in expectation (or with the stated probability) over the random
//! choice of rows, for the worst possible data. A number of 2^63 or more is an error.
//!
//! # References
//!
//! S. Shalev-Shwartz and T. Zhang, Stochastic dual coordinate ascent methods for regularized loss
//! minimization, Journal of Machine Learning Research 14, 2013: [`sdca_lipschitz_iterations`] to
//! [`sdca_smooth_averaged_iterations`].
//!
//! S. Shalev-Shwartz and T. Zhang, Accelerated mini-batch stochastic dual coordinate ascent,
//! Advances in Neural Information Processing Systems 26, 2013: [`asdca_theta`] and
//! [`asdca_iterations`].
//!
//! S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, Pegasos: primal estimated sub-gradient
//! solver for SVM, Mathematical Programming 127, 2011: [`pegasos_iterations`].

use crate::error::Error;
use crate::run::parameter;

/// What the bounds depend on, apart from the loss and the number of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// The strength of the regularisation, `1 / (C n)`.
    pub lambda: f64,
    /// The target distance from the minimum, in the units of `P` (the `tol` of a run is relative to
    /// `P`).
    pub eps: f64,
    /// An upper bound `R` on the norms `|x_i|`.
    pub radius: f64,
    /// An upper bound `g` on the duality gap at the start, which is the mean of
    /// `phi_i(0) - min phi_i`. 1 is valid for all classification losses.
    pub initial_gap: f64,
}

impl Setting {
    /// The setting for rows of norm at most 1 and an initial gap of at most 1.
    pub fn new(lambda: f64, eps: f64) -> Self {
        Self {
            lambda,
            eps,
            radius: 1.0,
            initial_gap: 1.0,
        }
    }

    fn check(&self) -> Result<(), Error> {
        positive("lam", self.lambda)?;
        positive("eps", self.eps)?;
        positive("radius", self.radius)?;
        positive("initial_gap", self.initial_gap)
    }

    /// `G = 4 L^2 R^2`: the largest possible value of `|a - a'|^2 |x_i|^2`.
    fn squared_range(&self, lipschitz: f64) -> Result<f64, Error> {
        positive("lipschitz", lipschitz)?;
        let product = lipschitz * self.radius;
        representable(
            4.0 * product * product,
            "lipschitz, radius",
            "the square of their product",
        )
    }

    /// `k = n + R^2 / (lambda gamma)`: each step reduces the gap by a factor `1 - 1/k`.
    fn smooth_rate(&self, n_samples: u64, gamma: f64) -> Result<f64, Error> {
        positive("gamma", gamma)?;
        Ok(n_samples as f64 + self.radius / self.lambda * self.radius / gamma)
    }

    /// The `t0` of a run that starts with all dual values 0.
    ///
    /// From `t0` on, `max D - D <= 2 G / (lambda (2 n + t - t0))` in expectation.
    fn lipschitz_burn_in(&self, n_samples: u64, squared_range: f64) -> u64 {
        let n = n_samples as f64;
        // The logarithm is 0 if the start already satisfies this bound.
        let head_start = (2.0 * self.lambda * n * self.initial_gap / squared_range).max(1.0);
        ceil(n * head_start.ln())
    }

    /// Applies the theorem for Lipschitz losses, with `G = squared_range` and `t0 = burn_in`.
    fn lipschitz_run(
        &self,
        n_samples: u64,
        squared_range: f64,
        burn_in: u64,
        average_from: Option<f64>,
    ) -> Result<AveragedRun, Error> {
        let n = n_samples as f64;
        let Some(share) = average_from else {
            let needed = squared_range / self.lambda / self.eps;
            let first = burn_in.saturating_add(ceil(4.0 * needed - 2.0 * n));
            return self.run(first.saturating_add(ceil(needed).max(n_samples)), first);
        };
        if !(0.0 < share && share < 1.0) {
            return Err(parameter(
                "average_from",
                share,
                "a number in (0, 1), or None",
            ));
        }
        let total = smallest(1, |total| {
            let first = floor_share(share, total);
            let count = total - first;
            if first < burn_in || count < n_samples {
                return false;
            }
            let decayed = 2.0 * n + (first - burn_in) as f64;
            squared_range / self.lambda / 2.0 * (4.0 / decayed + 1.0 / count as f64) <= self.eps
        });
        self.run(total, floor_share(share, total))
    }

    fn run(&self, total: u64, first: u64) -> Result<AveragedRun, Error> {
        Ok(AveragedRun {
            iterations: self.counted(total)?,
            average_from_step: first,
        })
    }

    fn counted(&self, total: u64) -> Result<u64, Error> {
        if total < TOO_MANY {
            return Ok(total);
        }
        Err(parameter(
            "lam, eps",
            format!("{:?}, {:?}", self.lambda, self.eps),
            "values for which fewer than 2^63 iterations suffice",
        ))
    }
}

/// How long to run, and which iterates to average.
///
/// The output is the mean of the iterates before the steps `T0 + 1, ..., T`, or one of them drawn
/// uniformly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AveragedRun {
    /// `T`: the total number of steps, each on one row.
    pub iterations: u64,
    /// `T0`.
    pub average_from_step: u64,
}

impl AveragedRun {
    /// `T0 / T`, for [`Sdca::average_from`](crate::solver::Sdca::average_from) as a fraction.
    ///
    /// A longer run with the same ratio is sufficient too, because both of its parts are longer. So
    /// `T` may be rounded up to whole epochs.
    pub fn average_from(self) -> f64 {
        self.average_from_step as f64 / self.iterations as f64
    }
}

/// Bounds the iterations of SDCA for a Lipschitz loss and an averaged output.
///
/// The expected duality gap of the output is at most `eps` if, with `G = 4 L^2 R^2` and
/// `t0 = max(0, ceil(n log(2 lambda n g / G)))`,
///
/// ```text
/// T0 >= t0,   T - T0 >= n,
/// (G / (2 lambda)) (4 / (2 n + T0 - t0) + 1 / (T - T0)) <= eps.
/// ```
///
/// `average_from` is the ratio `T0 / T`, above 0 and below 1, for which to find the smallest `T`.
/// `None` takes `T0` and `T` from the theorem, which allots half of `eps` to each term.
///
/// Rows are drawn uniformly with replacement.
pub fn sdca_lipschitz_iterations(
    n_samples: u64,
    setting: Setting,
    lipschitz: f64,
    average_from: Option<f64>,
) -> Result<AveragedRun, Error> {
    check(n_samples, setting)?;
    let squared_range = setting.squared_range(lipschitz)?;
    let burn_in = setting.lipschitz_burn_in(n_samples, squared_range);
    setting.lipschitz_run(n_samples, squared_range, burn_in, average_from)
}

/// Bounds the iterations of SDCA for a Lipschitz loss, in the form most often quoted.
///
/// ```text
/// T = n + max(0, ceil(n log(lambda n g / (2 L^2 R^2)))) + 20 L^2 R^2 / (lambda eps)
/// ```
///
/// It is the theorem of [`sdca_lipschitz_iterations`] without the saving of `2 n` steps there.
///
/// ```
/// use sdca_rs::theory::{Setting, sdca_lipschitz_summary};
///
/// let run = sdca_lipschitz_summary(452, Setting::new(0.05, 1e-3), 1.0)?;
/// assert_eq!(run.iterations, 401_549);
/// # Ok::<(), sdca_rs::Error>(())
/// ```
pub fn sdca_lipschitz_summary(
    n_samples: u64,
    setting: Setting,
    lipschitz: f64,
) -> Result<AveragedRun, Error> {
    check(n_samples, setting)?;
    let squared_range = setting.squared_range(lipschitz)?;
    let burn_in = setting.lipschitz_burn_in(n_samples, squared_range);
    let needed = squared_range / setting.lambda / setting.eps;
    // T - T0 >= n + needed - 1 is at least `needed`, and at least n.
    let total = n_samples
        .saturating_add(burn_in)
        .saturating_add(ceil(5.0 * needed));
    setting.run(total, burn_in.saturating_add(ceil(4.0 * needed)))
}

/// Bounds the iterations of SDCA for a Lipschitz loss if the first epoch is modified SGD.
///
/// That epoch leaves the dual objective at most `2 L^2 R^2 log(e n) / (lambda n)` below its
/// maximum. From there the bound is that of [`sdca_lipschitz_iterations`], with
/// `t0 = ceil(n log(log(e n)))`. `T` and `T0` count the first epoch as `n` iterations.
///
/// It assumes that the rows are independent draws from one distribution, and the expectation is
/// over them as well. It does not depend on the initial gap.
pub fn sdca_sgd_iterations(
    n_samples: u64,
    setting: Setting,
    lipschitz: f64,
    average_from: Option<f64>,
) -> Result<AveragedRun, Error> {
    check(n_samples, setting)?;
    let n = n_samples as f64;
    // 2 lambda n / G times the bound on what the first epoch leaves is log(e n).
    let burn_in = n_samples.saturating_add(ceil(n * n.ln().ln_1p()));
    let squared_range = setting.squared_range(lipschitz)?;
    setting.lipschitz_run(n_samples, squared_range, burn_in, average_from)
}

/// Bounds the iterations of SDCA for a smooth loss and its last iterate.
///
/// With `k = n + R^2 / (lambda gamma)`, the expected duality gap after `T` steps is at most
/// `k g exp(-T / k)`, and so at most `eps` for
///
/// ```text
/// T >= k log(k g / eps).
/// ```
///
/// `T` is 0 if the start is good enough. Rows are drawn uniformly with replacement.
pub fn sdca_smooth_iterations(n_samples: u64, setting: Setting, gamma: f64) -> Result<u64, Error> {
    check(n_samples, setting)?;
    let rate = setting.smooth_rate(n_samples, gamma)?;
    let excess = rate * setting.initial_gap / setting.eps;
    setting.counted(ceil(rate * excess.max(1.0).ln()))
}

/// Bounds the iterations of SDCA for a smooth loss and an averaged output.
///
/// With `k = n + R^2 / (lambda gamma)`, the expected duality gap of the output is at most `eps` if
///
/// ```text
/// T > T0 >= k log(k g / ((T - T0) eps)).
/// ```
///
/// `average_from` is the ratio `T0 / T`, at least 0 and below 1, for which to find the smallest
/// `T`. `None` takes the best ratio: `T` is smallest for `T - T0 = k`, where it is
/// `k (1 + log(g / eps))`.
///
/// Rows are drawn uniformly with replacement.
pub fn sdca_smooth_averaged_iterations(
    n_samples: u64,
    setting: Setting,
    gamma: f64,
    average_from: Option<f64>,
) -> Result<AveragedRun, Error> {
    check(n_samples, setting)?;
    let rate = setting.smooth_rate(n_samples, gamma)?;
    // T - T0, given T0.
    let needed =
        |first: u64| rate * (-(first as f64) / rate).exp() * setting.initial_gap / setting.eps;
    let Some(share) = average_from else {
        let excess = setting.initial_gap / setting.eps;
        let first = ceil(rate * excess.max(1.0).ln());
        let count = ceil(needed(first)).max(1);
        return setting.run(first.saturating_add(count), first);
    };
    if !(0.0..1.0).contains(&share) {
        return Err(parameter(
            "average_from",
            share,
            "a number in [0, 1), or None",
        ));
    }
    let total = smallest(1, |total| {
        let first = floor_share(share, total);
        total - first >= needed(first).ceil() as u64
    });
    setting.run(total, floor_share(share, total))
}

/// The step parameter `theta` of accelerated mini-batch SDCA, above 0 and at most 1/4.
///
/// With `m` rows in a batch and `s = gamma lambda n / R^2`,
///
/// ```text
/// theta = (1/4) min(1, sqrt(s / m), s).
/// ```
///
/// The fourth term in the reference, `s^(2/3) / m^(1/3)`, equals `sqrt(s / m)^(2/3) s^(1/3)`: a
/// geometric mean of two other terms, so it is never smaller than both.
pub fn asdca_theta(
    n_samples: u64,
    batch_size: u64,
    lambda: f64,
    gamma: f64,
    radius: f64,
) -> Result<f64, Error> {
    check_rows(n_samples)?;
    if !(1..=n_samples).contains(&batch_size) {
        return Err(Error::BatchSize {
            found: batch_size.into(),
            n_samples,
        });
    }
    positive("lam", lambda)?;
    positive("gamma", gamma)?;
    positive("radius", radius)?;
    let s = gamma * lambda * n_samples as f64 / radius / radius;
    representable(theta(s, batch_size as f64), "gamma, lam, radius", "theta")
}

/// `theta` for `s = gamma lambda n / R^2` and batches of `m` rows; see [`asdca_theta`].
pub(crate) fn theta(s: f64, m: f64) -> f64 {
    (s / m).sqrt().min(s).min(1.0) / 4.0
}

/// Bounds the iterations of accelerated mini-batch SDCA for a smooth loss.
///
/// With `theta` of [`asdca_theta`] and batches of `m` rows, the expectation of `P(w) - min P` after
/// `T` batches is at most `(1 - theta m / n)^T g`, and so at most `eps` for
///
/// ```text
/// T >= n / (theta m) log(g / eps).
/// ```
///
/// `T` is 0 if the start is good enough.
pub fn asdca_iterations(
    n_samples: u64,
    batch_size: u64,
    setting: Setting,
    gamma: f64,
) -> Result<u64, Error> {
    check(n_samples, setting)?;
    let theta = asdca_theta(n_samples, batch_size, setting.lambda, gamma, setting.radius)?;
    let epochs = (setting.initial_gap / setting.eps).max(1.0).ln() / theta;
    setting.counted(ceil(n_samples as f64 / batch_size as f64 * epochs))
}

/// Bounds the iterations of Pegasos for a Lipschitz loss, for any number of rows and any batches.
///
/// It is the smallest `T` from which on the bound is at most `eps`. With
///
/// ```text
/// c = 4 L^2 R^2                  without projection,
/// c = (sqrt(lambda g) + L R)^2   if each iterate is projected to |w|^2 <= g / lambda,
/// ```
///
/// the expectation of `P - min P`, at the mean of the iterates before the steps `1, ..., T` or at
/// one of them drawn uniformly, is at most
///
/// ```text
/// c (1 + log(T)) / (2 lambda T),
/// ```
///
/// and with probability `1 - delta` at least half of these iterates have `P - min P` at most
///
/// ```text
/// 42 c log(T / delta) / (lambda T).
/// ```
///
/// A `delta`, above 0 and below 1, selects the second bound, for which [`Setting::initial_gap`]
/// must be an upper bound on `phi_i(0) - min phi_i` for every row. The bound requires
/// `L R >= 2 sqrt(lambda g)`, so a smaller `L R` is raised to that.
pub fn pegasos_iterations(
    setting: Setting,
    lipschitz: f64,
    project: bool,
    delta: Option<f64>,
) -> Result<u64, Error> {
    setting.check()?;
    let Setting { lambda, eps, .. } = setting;
    // lambda times the radius of the ball.
    let ball = lambda.sqrt() * setting.initial_gap.sqrt();
    let mut slope = setting.squared_range(lipschitz)?.sqrt() / 2.0;
    if let Some(delta) = delta {
        if !(0.0 < delta && delta < 1.0) {
            return Err(parameter(
                "delta",
                delta,
                "a number above 0 and below 1, or None",
            ));
        }
        slope = slope.max(2.0 * ball);
    }
    let largest = if project { ball + slope } else { 2.0 * slope };
    let unit = largest * largest / lambda;
    let total = match delta {
        None => smallest(1, |total| {
            let total = total as f64;
            unit * (1.0 + total.ln()) / 2.0 / total <= eps
        }),
        // The bound decreases from T = 3 on, because log(T / delta) > 1 there.
        Some(delta) => smallest(3, |total| {
            let total = total as f64;
            42.0 * unit * (total / delta).ln() / total <= eps
        }),
    };
    setting.counted(total)
}

/// A number of iterations that is out of the question.
const TOO_MANY: u64 = 1 << 63;

/// Rounds up, unless the excess is only the rounding error of the few preceding operations.
fn ceil(number: f64) -> u64 {
    let number = number * (1.0 - 2.0_f64.powi(-50));
    // Also false for NaN, which infinities can produce.
    if number < TOO_MANY as f64 {
        // Negative numbers become 0.
        number.ceil() as u64
    } else {
        TOO_MANY
    }
}

/// The smallest sufficient integer that is at least `least`.
///
/// All integers above a sufficient one must be sufficient too.
fn smallest(mut least: u64, sufficient: impl Fn(u64) -> bool) -> u64 {
    let mut high = least;
    while !sufficient(high) {
        (least, high) = (high + 1, 2 * high);
        if high >= TOO_MANY {
            return TOO_MANY;
        }
    }
    while least < high {
        let middle = u64::midpoint(least, high);
        if sufficient(middle) {
            high = middle;
        } else {
            least = middle + 1;
        }
    }
    high
}

/// `T0 = floor(share T)` for `0 <= share < 1`, computed exactly: neither `T0` nor `T - T0` may
/// decrease as `T` grows.
fn floor_share(share: f64, total: u64) -> u64 {
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = share.to_bits();
    let fraction = bits & ((1 << FRACTION) - 1);
    // share = mantissa 2^-shift, ignoring the sign, which only -0 can have.
    let (mantissa, shift) = match (bits >> FRACTION) as u32 & 0x7ff {
        0 => (fraction, 1074),
        exponent => (fraction | (1 << FRACTION), 1075 - exponent),
    };
    // 53 and 64 bits. A shift by 128 or more leaves nothing.
    let product = u128::from(mantissa) * u128::from(total);
    product.checked_shr(shift).unwrap_or(0) as u64
}

fn check(n_samples: u64, setting: Setting) -> Result<(), Error> {
    check_rows(n_samples)?;
    setting.check()
}

fn check_rows(n_samples: u64) -> Result<(), Error> {
    if n_samples == 0 {
        return Err(parameter("n_samples", 0, "an integer >= 1"));
    }
    Ok(())
}

fn positive(name: &'static str, value: f64) -> Result<(), Error> {
    if 0.0 < value && value.is_finite() {
        return Ok(());
    }
    Err(parameter(name, value, "a finite number > 0"))
}

fn representable(number: f64, names: &'static str, what: &str) -> Result<f64, Error> {
    if 0.0 < number && number.is_finite() {
        return Ok(number);
    }
    Err(parameter(
        names,
        format!("values for which {what} is {number:?}"),
        "one that is neither 0 nor infinite",
    ))
}

#[cfg(test)]
mod tests;
