//! Decimal numbers to binary ones and back, exactly.

use std::fmt::Debug;
use std::io::Write as _;

use crate::data::Number;

/// Powers of ten that are exact.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// All integers up to this one are exact.
const EXACT: u64 = 1 << 53;

/// A `u64` has room for this many decimal digits, whatever they are.
const DIGITS: usize = 19;

/// The number whose text begins at `from`, and where it ends, if a short computation gives it
/// exactly. `None` means nothing: the text may or may not be a number.
///
/// With at most 19 digits that form an integer below 2^53, and a power of ten below 23, both factors
/// are exact, so that the one operation on them rounds correctly.
#[inline(always)]
pub(super) fn simple(text: &[u8], from: usize) -> Option<(f64, usize)> {
    let mut at = from;
    let is_negative = match text.get(at) {
        Some(b'-') => {
            at += 1;
            true
        }
        Some(b'+') => {
            at += 1;
            false
        }
        _ => false,
    };
    let begin = at;
    let mut integer = digits(text, &mut at, 0);
    let mut n_digits = at - begin;
    let mut exponent = 0;
    if text.get(at) == Some(&b'.') {
        at += 1;
        let begin = at;
        integer = digits(text, &mut at, integer);
        n_digits += at - begin;
        exponent = -((at - begin).cast_signed() as i64);
    }
    if n_digits == 0 || n_digits > DIGITS || integer > EXACT {
        return None;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        let sign = match text.get(at) {
            Some(b'-') => -1,
            _ => 1,
        };
        at += usize::from(matches!(text.get(at), Some(b'-' | b'+')));
        let begin = at;
        let power = digits(text, &mut at, 0);
        if !(1..=4).contains(&(at - begin)) {
            return None;
        }
        exponent += sign * power.cast_signed();
    }
    let power = *TENS.get(exponent.unsigned_abs() as usize)?;
    let size = if exponent < 0 {
        integer as f64 / power
    } else {
        integer as f64 * power
    };
    Some((if is_negative { -size } else { size }, at))
}

/// Appends the digits that begin at `at` to `number`, which wraps around, and moves `at` behind them.
#[inline(always)]
fn digits(text: &[u8], at: &mut usize, mut number: u64) -> u64 {
    while let Some(eight) = text.get(*at..*at + 8) {
        let Some(value) = eight_digits(eight) else {
            break;
        };
        number = number.wrapping_mul(100_000_000).wrapping_add(value);
        *at += 8;
    }
    while let Some(digit) = text.get(*at).map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        *at += 1;
    }
    number
}

/// The number that eight bytes write, if all are digits: pairs are joined to numbers of two digits,
/// those to four, and those to eight.
#[inline(always)]
fn eight_digits(bytes: &[u8]) -> Option<u64> {
    let word = u64::from_le_bytes(bytes.try_into().ok()?);
    let low = word.wrapping_sub(0x3030_3030_3030_3030);
    let high = word.wrapping_add(0x4646_4646_4646_4646);
    if (low | high) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = (low * 10 + (low >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    Some((fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF)
}

/// A type for the values of a file.
pub trait Value: Number + Default + Debug {
    /// The number nearest to the one that `text` writes, which [`simple`] did not understand.
    #[doc(hidden)]
    fn parse(text: &str) -> Option<Self>;

    /// The number nearest to the one that `text` writes, of which `number` is the nearest `f64`.
    #[doc(hidden)]
    fn nearest(number: f64, text: &[u8]) -> Self;

    /// Appends the shortest text that is read as this number.
    #[doc(hidden)]
    fn write(self, out: &mut Vec<u8>);
}

impl Value for f64 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    #[inline(always)]
    fn nearest(number: f64, _: &[u8]) -> Self {
        number
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        if !write_integer(self, out) {
            append(self, out);
        }
    }
}

impl Value for f32 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// Rounding twice is wrong only if the first rounding ends half-way between two `f32`.
    #[inline(always)]
    fn nearest(number: f64, text: &[u8]) -> Self {
        let is_tiny = number != 0.0 && number.abs() < 1e-37;
        if number.to_bits() & 0x1FFF_FFFF == 0x1000_0000 || is_tiny {
            let exact = std::str::from_utf8(text).ok().and_then(Self::parse);
            return exact.unwrap_or(number as Self);
        }
        number as Self
    }

    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        if !write_integer(self.into(), out) {
            append(self, out);
        }
    }
}

/// Appends a number that is no small integer: as short as possible, with an exponent of a sign and
/// two digits or more if it is very small or very large, as C does.
fn append(number: impl Debug, out: &mut Vec<u8>) {
    let begin = out.len();
    write!(out, "{number:?}").expect("a vector takes everything");
    if let Some(at) = out[begin..].iter().position(|&byte| byte == b'e') {
        let exponent = out.split_off(begin + at + 1);
        let (sign, digits) = match exponent.strip_prefix(b"-") {
            Some(digits) => (b'-', digits),
            None => (b'+', exponent.as_slice()),
        };
        out.push(sign);
        if digits.len() < 2 {
            out.push(b'0');
        }
        out.extend_from_slice(digits);
    }
}

/// Appends a number if it is an integer of at most 16 digits and not -0.
#[inline]
fn write_integer(number: f64, out: &mut Vec<u8>) -> bool {
    let is_small = number.abs() < 1e16 && number.trunc() == number;
    if !is_small || (number == 0.0 && number.is_sign_negative()) {
        return false;
    }
    write_int(number as i64, out);
    true
}

/// Appends an integer.
#[inline]
pub(super) fn write_int(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut from = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        from -= 1;
        digits[from] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[from..]);
}
