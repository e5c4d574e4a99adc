//! The arithmetic on a dense row, in one version for each [`Level`] of vector instructions.
//!
//! The portable version consists of plain loops, compiled for the baseline CPU of a build; on arm64
//! that includes NEON. Each version adds in its own order, so results differ by rounding.

use std::sync::OnceLock;

use super::Real;

/// The vector instructions that the dense kernels use, chosen once per matrix.
///
/// Only levels supported by this CPU can be constructed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(pub(super) Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The level that every CPU supports.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// All levels, in ascending order.
    const ALL: &[Self] = &[
        Self::PORTABLE,
        #[cfg(target_arch = "x86_64")]
        Self(Kind::Avx2),
        #[cfg(target_arch = "x86_64")]
        Self(Kind::Avx512),
    ];

    /// The levels that this CPU supports, in ascending order.
    pub fn available() -> Vec<Self> {
        let has = |level: &Self| match level.0 {
            Kind::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")
            }
        };
        Self::ALL.iter().copied().filter(has).collect()
    }

    /// The best level that this CPU supports. If the environment variable `SDCA_RS_SIMD` names a
    /// level (`portable`, `avx2`, `avx512`), the best one up to that. The variable is read once.
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| {
            let mut levels = Self::available();
            let name = std::env::var("SDCA_RS_SIMD").unwrap_or_default();
            if let Some(limit) = NAMES.iter().position(|known| *known == name) {
                levels.retain(|level| level.rank() <= limit);
            }
            levels.pop().unwrap_or(Self::PORTABLE)
        })
    }

    fn rank(self) -> usize {
        match self.0 {
            Kind::Portable => 0,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => 1,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => 2,
        }
    }

    /// The name of the level.
    pub fn name(self) -> &'static str {
        NAMES[self.rank()]
    }
}

/// The names of the levels in the order of [`Level::rank`].
const NAMES: [&str; 3] = ["portable", "avx2", "avx512"];

/// The kernels for rows of one number type.
pub trait Vector: Sized {
    /// `sum_j x_j w_j` over the columns that both have.
    fn dot(level: Level, x: &[Self], w: &[f64]) -> f64;
    /// `w += scale x` over the columns that both have.
    fn axpy(level: Level, scale: f64, x: &[Self], w: &mut [f64]);
}

/// `sum_j x_j w_j`.
#[inline]
pub fn dense_dot<F: Real>(level: Level, x: &[F], w: &[f64]) -> f64 {
    F::dot(level, x, w)
}

/// `w += scale x`.
#[inline]
pub fn dense_axpy<F: Real>(level: Level, scale: f64, x: &[F], w: &mut [f64]) {
    F::axpy(level, scale, x, w);
}

/// `sum_j x_j^2`. Computed once per row, so the portable version is fast enough.
#[inline]
pub fn dense_sq_norm<F: Real>(x: &[F]) -> f64 {
    portable::sum_products(x, x)
}

pub(super) mod portable {
    use crate::kernel::Element;

    /// The number of accumulators: enough to hide the latency of an addition and to let the
    /// compiler vectorise, which it may not do with a single running sum.
    const LANES: usize = 8;

    #[inline]
    pub(in crate::kernel) fn sum_products<F, G>(x: &[F], w: &[G]) -> f64
    where
        F: Element + Into<f64>,
        G: Element + Into<f64>,
    {
        let n = x.len().min(w.len());
        let (x, w) = (&x[..n], &w[..n]);
        let mut sums = [0.0; LANES];
        let mut x_blocks = x.chunks_exact(LANES);
        let mut w_blocks = w.chunks_exact(LANES);
        for (x, w) in (&mut x_blocks).zip(&mut w_blocks) {
            for lane in 0..LANES {
                sums[lane] += x[lane].into() * w[lane].into();
            }
        }
        let rest: f64 = x_blocks
            .remainder()
            .iter()
            .zip(w_blocks.remainder())
            .map(|(&x, &w)| x.into() * w.into())
            .sum();
        let [a, b, c, d, e, f, g, h] = sums;
        ((a + e) + (c + g)) + ((b + f) + (d + h)) + rest
    }

    #[inline]
    pub(super) fn axpy<F: Element + Into<f64>>(scale: f64, x: &[F], w: &mut [f64]) {
        for (w, &x) in w.iter_mut().zip(x) {
            *w += scale * x.into();
        }
    }
}

/// The kernels for rows of `$number`, given how to load vectors of them as `f64`.
macro_rules! vector {
    ($number:ty, $module:ident, $load4:expr, $load8:expr, $load_some:expr) => {
        impl Vector for $number {
            #[inline]
            fn dot(level: Level, x: &[Self], w: &[f64]) -> f64 {
                match level.0 {
                    Kind::Portable => portable::sum_products(x, w),
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: a level is only constructed where the CPU supports it.
                    Kind::Avx2 => unsafe { $module::dot_avx2(x, w) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Kind::Avx512 => unsafe { $module::dot_avx512(x, w) },
                }
            }

            #[inline]
            fn axpy(level: Level, scale: f64, x: &[Self], w: &mut [f64]) {
                match level.0 {
                    Kind::Portable => portable::axpy(scale, x, w),
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: a level is only constructed where the CPU supports it.
                    Kind::Avx2 => unsafe { $module::axpy_avx2(scale, x, w) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Kind::Avx512 => unsafe { $module::axpy_avx512(scale, x, w) },
                }
            }
        }

        #[cfg(target_arch = "x86_64")]
        mod $module {
            use std::arch::x86_64::*;

            #[target_feature(enable = "avx2,fma")]
            pub(super) fn dot_avx2(x: &[$number], w: &[f64]) -> f64 {
                let n = x.len().min(w.len());
                let mut sums = [_mm256_setzero_pd(); 4];
                let mut k = 0;
                while k + 16 <= n {
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        let at = k + 4 * lane;
                        // SAFETY: at + 4 <= n, the shorter of the two lengths.
                        let (x, w) = unsafe {
                            (
                                $load4(x.as_ptr().add(at)),
                                _mm256_loadu_pd(w.as_ptr().add(at)),
                            )
                        };
                        *sum = _mm256_fmadd_pd(x, w, *sum);
                    }
                    k += 16;
                }
                while k + 4 <= n {
                    // SAFETY: as above.
                    let (x, w) = unsafe {
                        (
                            $load4(x.as_ptr().add(k)),
                            _mm256_loadu_pd(w.as_ptr().add(k)),
                        )
                    };
                    sums[0] = _mm256_fmadd_pd(x, w, sums[0]);
                    k += 4;
                }
                let [a, b, c, d] = sums;
                let sum = _mm256_add_pd(_mm256_add_pd(a, b), _mm256_add_pd(c, d));
                let half = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1));
                let mut total = _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
                for (&x, &w) in x[k..n].iter().zip(&w[k..n]) {
                    total += f64::from(x) * w;
                }
                total
            }

            #[target_feature(enable = "avx2,fma")]
            pub(super) fn axpy_avx2(scale: f64, x: &[$number], w: &mut [f64]) {
                let n = x.len().min(w.len());
                let scales = _mm256_set1_pd(scale);
                let mut k = 0;
                while k + 4 <= n {
                    // SAFETY: k + 4 <= n, the shorter of the two lengths.
                    unsafe {
                        let at = w.as_mut_ptr().add(k);
                        let x = $load4(x.as_ptr().add(k));
                        _mm256_storeu_pd(at, _mm256_fmadd_pd(scales, x, _mm256_loadu_pd(at)));
                    }
                    k += 4;
                }
                for (&x, w) in x[k..n].iter().zip(&mut w[k..n]) {
                    *w += scale * f64::from(x);
                }
            }

            /// The mask for the last, incomplete vector.
            fn lanes(rest: usize) -> __mmask8 {
                (1 << rest) - 1
            }

            #[target_feature(enable = "avx512f,avx512vl")]
            pub(super) fn dot_avx512(x: &[$number], w: &[f64]) -> f64 {
                let n = x.len().min(w.len());
                let mut sums = [_mm512_setzero_pd(); 4];
                let mut k = 0;
                while k + 32 <= n {
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        let at = k + 8 * lane;
                        // SAFETY: at + 8 <= n, the shorter of the two lengths.
                        let (x, w) = unsafe {
                            (
                                $load8(x.as_ptr().add(at)),
                                _mm512_loadu_pd(w.as_ptr().add(at)),
                            )
                        };
                        *sum = _mm512_fmadd_pd(x, w, *sum);
                    }
                    k += 32;
                }
                while k + 8 <= n {
                    // SAFETY: as above.
                    let (x, w) = unsafe {
                        (
                            $load8(x.as_ptr().add(k)),
                            _mm512_loadu_pd(w.as_ptr().add(k)),
                        )
                    };
                    sums[0] = _mm512_fmadd_pd(x, w, sums[0]);
                    k += 8;
                }
                if k < n {
                    let lanes = lanes(n - k);
                    // SAFETY: only the first n - k lanes are read.
                    let (x, w) = unsafe {
                        (
                            $load_some(lanes, x.as_ptr().add(k)),
                            _mm512_maskz_loadu_pd(lanes, w.as_ptr().add(k)),
                        )
                    };
                    sums[1] = _mm512_fmadd_pd(x, w, sums[1]);
                }
                let [a, b, c, d] = sums;
                _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(a, b), _mm512_add_pd(c, d)))
            }

            #[target_feature(enable = "avx512f,avx512vl")]
            pub(super) fn axpy_avx512(scale: f64, x: &[$number], w: &mut [f64]) {
                let n = x.len().min(w.len());
                let scales = _mm512_set1_pd(scale);
                let mut k = 0;
                while k + 8 <= n {
                    // SAFETY: k + 8 <= n, the shorter of the two lengths.
                    unsafe {
                        let at = w.as_mut_ptr().add(k);
                        let x = $load8(x.as_ptr().add(k));
                        _mm512_storeu_pd(at, _mm512_fmadd_pd(scales, x, _mm512_loadu_pd(at)));
                    }
                    k += 8;
                }
                if k < n {
                    let lanes = lanes(n - k);
                    // SAFETY: only the first n - k lanes are read and written.
                    unsafe {
                        let at = w.as_mut_ptr().add(k);
                        let x = $load_some(lanes, x.as_ptr().add(k));
                        let sum = _mm512_fmadd_pd(scales, x, _mm512_maskz_loadu_pd(lanes, at));
                        _mm512_mask_storeu_pd(at, lanes, sum);
                    }
                }
            }
        }
    };
}

vector!(
    f64,
    double,
    _mm256_loadu_pd,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd
);
vector!(
    f32,
    single,
    |at| _mm256_cvtps_pd(_mm_loadu_ps(at)),
    |at| _mm512_cvtps_pd(_mm256_loadu_ps(at)),
    |lanes, at| _mm512_cvtps_pd(_mm256_maskz_loadu_ps(lanes, at))
);
