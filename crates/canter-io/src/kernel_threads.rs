//! The kernel's threads in `/proc`: whose work they do, and how urgent they are.

/// The interface whose NAPI a thread of this name serves: `can5` of `napi/can5-8193`.
pub fn napi_interface(name: &str) -> Option<&str> {
    Some(name.strip_prefix("napi/")?.rsplit_once('-')?.0)
}

/// The priority under SCHED_FIFO or SCHED_RR, from a thread's `stat`; 0: an ordinary one.
pub fn real_time_priority(stat: &str) -> Option<u8> {
    // proc(5): field 40; the fields are counted after the name, which may have spaces and parentheses.
    stat.rsplit_once(')')?.1.split_whitespace().nth(40 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_s_name_may_have_hyphens() {
        assert_eq!(napi_interface("napi/my-can-7"), Some("my-can"));
        for other in ["napi/wcan3", "irq/23-can3", "wcan3-7"] {
            assert_eq!(napi_interface(other), None, "{other}");
        }
    }

    #[test]
    fn a_thread_s_name_may_look_like_fields() {
        let stat = |name: &str| format!("70 ({name}) S {} 50 1 0", "0 ".repeat(36).trim());
        assert_eq!(
            [stat("irq/23-can0"), stat("a) S 1")].map(|text| real_time_priority(&text)),
            [Some(50); 2]
        );
        assert_eq!(real_time_priority("70 (x) S 1"), None);
    }
}
