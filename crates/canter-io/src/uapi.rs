//! Mirrors of kernel headers that the libc crate does not have, with their sizes asserted.

pub mod can_gw;
pub mod canbare;
pub mod canchar;
pub mod canprobe;
pub mod canwire;

/// The ioctl code of canchar, canprobe and canbare, each of which has its own range of numbers.
const IOCTL_TYPE: u32 = 0xc4;

/// `_IO`, `_IOW` and `_IOR` of asm-generic/ioctl.h.
const fn request(direction: u32, number: u32, size: usize) -> u32 {
    direction << 30 | (size as u32) << 16 | IOCTL_TYPE << 8 | number
}

#[cfg(test)]
mod tests {
    use super::{canbare, canchar, canprobe};
    use std::collections::BTreeMap;

    /// What a header's `#define NAME _IOW(CODE, 0x01, struct name)` means.
    fn requests(header: &str, sizes: &[(&str, usize)]) -> BTreeMap<String, u32> {
        let number = |text: &str| {
            let text = text.trim();
            text.strip_prefix("0x").map_or(text.parse(), |digits| u32::from_str_radix(digits, 16)).unwrap()
        };
        let code = header.lines().find_map(|line| line.split_once("_IOC\t")).unwrap().1;
        let code = number(code.split_whitespace().next().unwrap());
        let mut found = BTreeMap::new();
        for line in header.lines().filter_map(|line| line.strip_prefix("#define ")) {
            let Some((name, (direction, arguments))) = line.split_once('\t').and_then(|(name, rest)| {
                let (direction, arguments) = rest.trim().strip_suffix(')')?.split_once('(')?;
                direction.starts_with("_IO").then_some((name, (direction, arguments)))
            }) else {
                continue;
            };
            let mut arguments = arguments.split(',').skip(1);
            let nr = number(arguments.next().unwrap());
            let size = arguments.next().map_or(0, |argument| {
                let structure = argument.trim();
                sizes
                    .iter()
                    .find(|(name, _)| *name == structure)
                    .unwrap_or_else(|| panic!("{structure}: no size"))
                    .1
            });
            let direction = ["_IO", "_IOW", "_IOR"].iter().position(|one| *one == direction).unwrap();
            found.insert(name.to_owned(), (direction as u32) << 30 | (size as u32) << 16 | code << 8 | nr);
        }
        found
    }

    #[test]
    fn every_request_has_the_number_of_the_kernel_s_header_and_none_has_that_of_another() {
        let sizes = [
            ("struct canchar_info", 48),
            ("struct canchar_timing", 32),
            ("struct canchar_options", size_of::<canchar::Options>()),
            ("struct canchar_filters", size_of::<canchar::FilterSet>()),
            ("struct canchar_statistics", size_of::<canchar::Statistics>()),
            ("struct canchar_wait", size_of::<canchar::Wait>()),
            ("struct canchar_poll_set", size_of::<canchar::PollSet>()),
            ("struct canprobe_plan", size_of::<canprobe::Plan>()),
            ("struct canprobe_state", size_of::<canprobe::State>()),
            ("struct canbare_start", size_of::<canbare::Start>()),
            ("struct canbare_status", size_of::<canbare::Status>()),
            ("__u32", 4),
            ("__u64", 8),
        ];
        let mut theirs = requests(include_str!("../../../kernel/uapi/canchar.h"), &sizes);
        assert_eq!(theirs.len(), 13);
        theirs.extend(requests(include_str!("../../../kernel/uapi/canprobe.h"), &sizes));
        theirs.extend(requests(include_str!("../../../kernel/uapi/canbare.h"), &sizes));
        let ours = [
            ("CANCHAR_GET_OPTIONS", canchar::GET_OPTIONS),
            ("CANCHAR_SET_OPTIONS", canchar::SET_OPTIONS),
            ("CANCHAR_SET_FILTERS", canchar::SET_FILTERS),
            ("CANCHAR_GET_STATISTICS", canchar::GET_STATISTICS),
            ("CANCHAR_WAIT", canchar::WAIT),
            ("CANCHAR_KICK", canchar::KICK),
            ("CANCHAR_WAIT_TX_DONE", canchar::WAIT_TX_DONE),
            ("CANCHAR_POLL_SET", canchar::POLL_SET),
            ("CANPROBE_START", canprobe::START),
            ("CANPROBE_STOP", canprobe::STOP),
            ("CANPROBE_GET_STATE", canprobe::GET_STATE),
            ("CANPROBE_FLOOR", canprobe::FLOOR),
            ("CANPROBE_WATCH", canprobe::WATCH),
            ("CANBARE_START", canbare::START),
            ("CANBARE_STOP", canbare::STOP),
            ("CANBARE_GET_STATUS", canbare::GET_STATUS),
        ];
        for (name, number) in ours {
            assert_eq!(theirs.get(name), Some(&number), "{name}");
        }
        let numbers: std::collections::BTreeSet<u32> =
            theirs.values().map(|request| request & 0xffff).collect();
        assert_eq!(numbers.len(), theirs.len(), "{theirs:x?}");
    }
}
