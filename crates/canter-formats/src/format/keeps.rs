//! What a format keeps of a frame.

/// What a format keeps of a frame. Identifier, flags, length and data are in every format. It is for documentation and
/// tests: what a frame loses, the encoder itself counts in [`NotKept`](super::NotKept).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeps {
    /// The resolution of stamps.
    pub stamps: Stamps,
    /// How a bus is identified.
    pub bus: BusLabel,
    /// Whether a frame was received or sent.
    pub direction: Directions,
    /// How much of an error frame.
    pub error_frames: ErrorFrames,
    /// The DLC of a classic frame where it is above 8.
    pub dlc_above_8: bool,
    /// The controller's own stamp, when it is recorded live.
    pub hardware_stamps: bool,
}

impl Keeps {
    /// A format that keeps everything but the controllers' own stamps: the base of other rows.
    pub const ALL: Self = Self {
        stamps: Stamps::Ns,
        bus: BusLabel::Name,
        direction: Directions::All,
        error_frames: ErrorFrames::All,
        dlc_above_8: true,
        hardware_stamps: false,
    };
}

/// The resolution of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// Nanoseconds.
    Ns,
    /// Microseconds; nanoseconds with [`WriteOptions::ns`](super::WriteOptions::ns).
    Us,
    /// Microseconds, counted from the first frame, so that no frame can be before it; nanoseconds with
    /// [`WriteOptions::ns`](super::WriteOptions::ns).
    UsFromFirst,
    /// Seconds as a floating-point number, exact to a nanosecond for 26 days.
    Float,
}

/// How a bus is identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusLabel {
    /// By its name.
    Name,
    /// By a number from 1 on; canter keeps the name in a comment.
    Channel,
    /// By both.
    ChannelAndName,
}

/// Whether a frame was received or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// Received, sent, or unknown.
    All,
    /// Received, sent, or unknown, with [`WriteOptions::direction`](super::WriteOptions::direction) only.
    Asked,
    /// Received or sent; an unknown direction becomes received.
    Known,
    /// No direction.
    None,
}

/// How much of an error frame is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorFrames {
    /// All of it, as Linux has it.
    All,
    /// The error class and the data.
    ClassAndData,
    /// Only that there was one.
    Presence,
}
