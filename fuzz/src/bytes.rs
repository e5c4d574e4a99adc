//! Decodes numbers and choices from the bytes of an input. Once the bytes are used up, all further
//! ones are 0.
//!
//! Each choice takes one byte, so that changing one byte of an input changes one thing.

use arbitrary::Unstructured;

/// The remaining bytes of an input.
pub struct Bytes<'a>(Unstructured<'a>);

/// A kind of numbers.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// See [`Bytes::tame`].
    Tame,
    /// See [`Bytes::number`].
    Number,
    /// See [`Bytes::wild`].
    Wild,
    /// See [`Bytes::any`].
    Any,
}

/// Numbers that are critical for arithmetic, each encoded in one byte so that the fuzzer finds
/// them.
const SPECIAL: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    4.0,
    1.0 + f64::EPSILON,
    1.0 - f64::EPSILON / 2.0,
    f64::EPSILON,
    f64::MIN_POSITIVE,
    -f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    f64::MAX,
    -f64::MAX,
    1e16,
    -1e16,
    1e154,
    1e-154,
    709.0,
    -745.0,
];

impl<'a> Bytes<'a> {
    /// The bytes of an input.
    pub fn new(data: &'a [u8]) -> Self {
        Self(Unstructured::new(data))
    }

    /// Whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or_default()
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number of `0..n`, for `n` up to 256.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// One of these items.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Eight raw bytes.
    pub fn word(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or_default()
    }

    /// Two bytes as a signed number.
    pub fn short(&mut self) -> i16 {
        self.0.arbitrary().unwrap_or_default()
    }

    /// A number of this kind.
    pub fn of(&mut self, kind: Kind) -> f64 {
        match kind {
            Kind::Tame => self.tame(),
            Kind::Number => self.number(),
            Kind::Wild => self.wild(),
            Kind::Any => self.any(),
        }
    }

    /// Any number, including NaN and infinities.
    pub fn any(&mut self) -> f64 {
        match self.byte() % 8 {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => f64::from_bits(self.word()),
            _ => self.number(),
        }
    }

    /// A finite number of any size.
    pub fn number(&mut self) -> f64 {
        match self.byte() % 8 {
            0 => self.pick(&SPECIAL),
            1 | 2 => self.tame(),
            3 => f64::from(self.short()) / 1024.0,
            4 | 5 => self.wild(),
            6 => f64::from(self.byte()) / 255.0,
            _ => finite(f64::from_bits(self.word())),
        }
    }

    /// A finite number >= 0.
    pub fn size(&mut self) -> f64 {
        self.number().abs()
    }

    /// A number from -8 to 8, often an integer.
    pub fn tame(&mut self) -> f64 {
        let byte = self.byte().cast_signed();
        if byte & 1 == 0 {
            f64::from(byte / 16)
        } else {
            f64::from(byte) / 16.0
        }
    }

    /// A mantissa times a power of 10 from -320 to 308.
    pub fn wild(&mut self) -> f64 {
        let mantissa = f64::from(self.byte().cast_signed()) / 100.0;
        mantissa * self.power()
    }

    /// A power of 10 from -320 to 308.
    pub fn power(&mut self) -> f64 {
        let exponent = i32::from(self.short().rem_euclid(629)) - 320;
        power_of_10(exponent)
    }

    /// A power of 10 from -6 to 6, in one byte.
    pub fn tame_power(&mut self) -> f64 {
        power_of_10(i32::from(self.byte() % 13) - 6)
    }
}

/// `10^exponent`, including subnormal numbers.
pub fn power_of_10(exponent: i32) -> f64 {
    let half = exponent / 2;
    10f64.powi(half) * 10f64.powi(exponent - half)
}

/// The number, or one with another exponent if it is not finite.
fn finite(number: f64) -> f64 {
    if number.is_finite() {
        number
    } else {
        f64::from_bits(number.to_bits() & !(1 << 62))
    }
}
