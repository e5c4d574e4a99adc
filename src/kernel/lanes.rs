//! The same arithmetic on many numbers, in one version for each [`Level`] of vector instructions.
//!
//! The versions differ only in the instructions that the compiler may use: their results are
//! bitwise identical.

use super::dense::{Kind, Level};

/// The number of elements processed together.
const LANES: usize = 8;

/// `sum_k term(x_k, ..)` over the elements `x_k, ..` of the inputs, which must all have the same
/// length.
#[inline]
pub(crate) fn sum<const IN: usize, const OUT: usize>(
    level: Level,
    inputs: [&[f64]; IN],
    term: impl Fn([f64; IN]) -> [f64; OUT],
) -> [f64; OUT] {
    match level.0 {
        Kind::Portable => portable::sum(inputs, term),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is only constructed where the CPU supports it.
        Kind::Avx2 => unsafe { avx2::sum(inputs, term) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kind::Avx512 => unsafe { avx512::sum(inputs, term) },
    }
}

/// `out_k = value(x_k, ..)` for the elements `x_k, ..` of the inputs, which must all have the same
/// length.
#[inline]
pub(crate) fn map<const IN: usize>(
    level: Level,
    inputs: [&[f64]; IN],
    out: &mut [f64],
    value: impl Fn([f64; IN]) -> f64,
) {
    match level.0 {
        Kind::Portable => portable::map(inputs, out, value),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is only constructed where the CPU supports it.
        Kind::Avx2 => unsafe { avx2::map(inputs, out, value) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kind::Avx512 => unsafe { avx512::map(inputs, out, value) },
    }
}

mod portable {
    use super::LANES;

    /// The elements at `k` and the following places of each input.
    #[inline(always)]
    fn take<const IN: usize>(inputs: [&[f64]; IN], k: usize) -> [&[f64; LANES]; IN] {
        let mut taken = [&[0.0; LANES]; IN];
        for (taken, input) in taken.iter_mut().zip(inputs) {
            *taken = input[k..].first_chunk().expect("k + LANES <= len");
        }
        taken
    }

    /// The elements in one lane.
    ///
    /// (A loop, like all array operations in [`sum`]: there, `array::map` is not always inlined,
    /// and then nothing is vectorised. In [`map`], however, such loops make the compiler gather
    /// adjacent numbers.)
    #[inline(always)]
    fn lane_of<const IN: usize>(taken: [&[f64; LANES]; IN], lane: usize) -> [f64; IN] {
        let mut numbers = [0.0; IN];
        for (number, taken) in numbers.iter_mut().zip(taken) {
            *number = taken[lane];
        }
        numbers
    }

    /// The element at `k` of each input.
    #[inline(always)]
    fn pick<const IN: usize>(inputs: [&[f64]; IN], k: usize) -> [f64; IN] {
        let mut picked = [0.0; IN];
        for (picked, input) in picked.iter_mut().zip(inputs) {
            *picked = input[k];
        }
        picked
    }

    /// The length of the shortest input.
    #[inline(always)]
    fn shortest<const IN: usize>(inputs: [&[f64]; IN]) -> usize {
        let mut shortest = usize::MAX;
        for input in inputs {
            shortest = shortest.min(input.len());
        }
        shortest
    }

    #[inline(always)]
    pub(super) fn sum<const IN: usize, const OUT: usize>(
        inputs: [&[f64]; IN],
        term: impl Fn([f64; IN]) -> [f64; OUT],
    ) -> [f64; OUT] {
        let n = shortest(inputs);
        let whole = n - n % LANES;
        let mut sums = [[0.0; LANES]; OUT];
        for k in (0..whole).step_by(LANES) {
            let x = take(inputs, k);
            for lane in 0..LANES {
                let terms = term(lane_of(x, lane));
                for (sums, term) in sums.iter_mut().zip(terms) {
                    sums[lane] += term;
                }
            }
        }
        let mut totals = [0.0; OUT];
        for (total, sums) in totals.iter_mut().zip(&sums) {
            *total = sums.iter().sum();
        }
        for k in whole..n {
            for (total, term) in totals.iter_mut().zip(term(pick(inputs, k))) {
                *total += term;
            }
        }
        totals
    }

    #[inline(always)]
    pub(super) fn map<const IN: usize>(
        inputs: [&[f64]; IN],
        out: &mut [f64],
        value: impl Fn([f64; IN]) -> f64,
    ) {
        let n = shortest(inputs).min(out.len());
        let whole = n - n % LANES;
        for k in (0..whole).step_by(LANES) {
            let x: [&[f64; LANES]; IN] =
                inputs.map(|x| x[k..].first_chunk().expect("k + LANES <= len"));
            let mut values = [0.0; LANES];
            for lane in 0..LANES {
                values[lane] = value(x.map(|x| x[lane]));
            }
            out[k..k + LANES].copy_from_slice(&values);
        }
        for k in whole..n {
            out[k] = value(inputs.map(|x| x[k]));
        }
    }
}

/// The portable functions, compiled for wider vector instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($module:ident, $features:literal) => {
        mod $module {
            use super::portable;

            #[target_feature(enable = $features)]
            pub(super) fn sum<const IN: usize, const OUT: usize>(
                inputs: [&[f64]; IN],
                term: impl Fn([f64; IN]) -> [f64; OUT],
            ) -> [f64; OUT] {
                portable::sum(inputs, term)
            }

            #[target_feature(enable = $features)]
            pub(super) fn map<const IN: usize>(
                inputs: [&[f64]; IN],
                out: &mut [f64],
                value: impl Fn([f64; IN]) -> f64,
            ) {
                portable::map(inputs, out, value);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, "avx2");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, "avx512f,avx512vl");

#[cfg(test)]
mod tests;
