use super::*;
use std::sync::atomic::AtomicBool;

#[test]
fn the_reserve_serves_small_allocations_once() {
    static IS_USED: AtomicBool = AtomicBool::new(false);
    let reserve = WithReserve::new(|is_used| IS_USED.store(is_used, Ordering::Release));
    let failing = || ptr::null_mut();
    // The reserve is empty, so nothing is retried.
    assert!(reserve.retried(8, failing).is_null());
    reserve.fill();
    assert!(!reserve.block.load(Ordering::Acquire).is_null());
    let attempts = std::cell::Cell::new(0);
    let second = |block: *mut u8| {
        attempts.set(attempts.get() + 1);
        if attempts.get() == 2 {
            block
        } else {
            ptr::null_mut()
        }
    };
    let mut byte = 0_u8;
    let at = &raw mut byte;
    // Large allocations are not retried.
    assert!(reserve.retried(SMALL + 1, || second(at)).is_null());
    attempts.set(0);
    assert_eq!(reserve.retried(SMALL, || second(at)), at);
    attempts.set(0);
    assert!(reserve.retried(SMALL, || second(at)).is_null());
    assert!(IS_USED.load(Ordering::Acquire));
    reserve.fill();
    assert!(!IS_USED.load(Ordering::Acquire));
    assert!(reserve.release());
}
