//! Catches panics of other crates on damaged files, without their messages.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `work`, or `None` if it panicked; then the objects that it used must not be used again.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !INSIDE.get() {
                others(panic);
            }
        }));
    });
    INSIDE.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(false);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_none() {
        assert_eq!(catch_panic(|| 7), Some(7));
        assert_eq!(catch_panic(|| -> u8 { panic!("not to be seen") }), None);
    }
}
