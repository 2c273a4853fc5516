//! Which frames a receiver wants: identifier and mask, as the kernel's `struct can_filter`.

/// Set in `id`: the filter passes what does not match (`CAN_INV_FILTER`).
pub const INVERSE: u32 = 0x2000_0000;

/// A frame matches when `can_id & mask == id & mask`; with [`INVERSE`] in `id`, when it does not.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Identifier with EFF and RTR flags, and [`INVERSE`].
    pub id: u32,
    /// Which bits of it count.
    pub mask: u32,
}

/// The filters of one receiver. The default passes every data and RTR frame, and no error frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// A frame passes when any of these matches (all of them with `join`). Empty: every frame passes.
    pub list: Vec<Filter>,
    /// Error classes wanted (linux/can/error.h); 0: no error frames.
    pub error_mask: u32,
    /// All filters must match (`CAN_RAW_JOIN_FILTERS`).
    pub join: bool,
}
