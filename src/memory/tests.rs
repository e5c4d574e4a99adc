use super::*;

#[test]
fn they_do_what_the_standard_library_does() {
    assert_eq!(zeros(3), [0.0; 3]);
    assert_eq!(filled(2, 7), [7; 2]);
    assert_eq!((1..4).into_vec(), [1, 2, 3]);
    assert_eq!((1..9).filter(|k| k % 2 == 0).into_vec(), [2, 4, 6, 8]);
    assert_eq!([1, 2][..].duplicate(), [1, 2]);
    let mut vec = vec![1];
    push(&mut vec, 2);
    extend(&mut vec, [3, 4]);
    resize(&mut vec, 6, 9);
    assert_eq!(vec, [1, 2, 3, 4, 9, 9]);
    resize(&mut vec, 2, 0);
    assert_eq!(vec, [1, 2]);
    assign(&mut vec, &[5, 6, 7]);
    assert_eq!(vec, [5, 6, 7]);
}

#[test]
fn what_cannot_be_had_is_an_error_that_says_how_much() {
    let len = usize::MAX / 32;
    for found in [
        error::catch(|| Ok(zeros(len).len())),
        error::catch(|| Ok(with_capacity::<f64>(len).len())),
        error::catch(|| {
            let mut vec = vec![0.0];
            resize(&mut vec, len, 0.0);
            Ok(vec.len())
        }),
    ] {
        assert_eq!(found, Err(Error::Memory { bytes: 8 * len }));
    }
}
