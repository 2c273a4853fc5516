//! The state and the settings of a CAN controller: bit timing and modes.
//!
//! linux/can/netlink.h; the names of modes are those of `ip -details link`.

use std::fmt;

use super::attribute::{Attributes, text, u16_at, u32_at};
use super::request::Request;

/// How near a controller is to being off the bus (`enum can_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Both error counters are below 96.
    ErrorActive,
    /// An error counter has reached 96.
    ErrorWarning,
    /// An error counter has reached 128: it no longer sends active error flags.
    ErrorPassive,
    /// The transmit error counter has reached 256: it neither sends nor receives.
    BusOff,
    /// The interface is down.
    Stopped,
    /// The controller sleeps.
    Sleeping,
}

/// The states in the order of `enum can_state`.
const STATES: [State; 6] = [
    State::ErrorActive,
    State::ErrorWarning,
    State::ErrorPassive,
    State::BusOff,
    State::Stopped,
    State::Sleeping,
];

/// With `ip`'s names.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ErrorActive => "ERROR-ACTIVE",
            Self::ErrorWarning => "ERROR-WARNING",
            Self::ErrorPassive => "ERROR-PASSIVE",
            Self::BusOff => "BUS-OFF",
            Self::Stopped => "STOPPED",
            Self::Sleeping => "SLEEPING",
        })
    }
}

/// Controller modes (`CAN_CTRLMODE_…`), a set.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Modes(pub u32);

impl Modes {
    /// Sent frames come back inside of the controller; nothing reaches the bus.
    pub const LOOPBACK: Self = Self(0x01);
    /// The controller only listens: it sends no frames and no acknowledgements.
    pub const LISTEN_ONLY: Self = Self(0x02);
    /// Three samples per bit.
    pub const TRIPLE_SAMPLING: Self = Self(0x04);
    /// A frame that lost arbitration or met an error is not repeated.
    pub const ONE_SHOT: Self = Self(0x08);
    /// Each bus error makes an error frame.
    pub const BERR_REPORTING: Self = Self(0x10);
    /// CAN FD.
    pub const FD: Self = Self(0x20);
    /// A missing acknowledgement is no error.
    pub const PRESUME_ACK: Self = Self(0x40);
    /// FD as Bosch first described it, before ISO 11898-1:2015.
    pub const FD_NON_ISO: Self = Self(0x80);
    /// The DLC 9…15 of classic frames is kept (`len8_dlc`).
    pub const CC_LEN8_DLC: Self = Self(0x100);
    /// Transmitter delay compensation by the controller.
    pub const TDC_AUTO: Self = Self(0x200);
    /// Transmitter delay compensation by given values.
    pub const TDC_MANUAL: Self = Self(0x400);

    const NAMES: [(Self, &'static str); 11] = [
        (Self::LOOPBACK, "LOOPBACK"),
        (Self::LISTEN_ONLY, "LISTEN-ONLY"),
        (Self::TRIPLE_SAMPLING, "TRIPLE-SAMPLING"),
        (Self::ONE_SHOT, "ONE-SHOT"),
        (Self::BERR_REPORTING, "BERR-REPORTING"),
        (Self::FD, "FD"),
        (Self::PRESUME_ACK, "PRESUME-ACK"),
        (Self::FD_NON_ISO, "FD-NON-ISO"),
        (Self::CC_LEN8_DLC, "CC-LEN8-DLC"),
        (Self::TDC_AUTO, "TDC-AUTO"),
        (Self::TDC_MANUAL, "TDC-MANUAL"),
    ];

    /// Whether all modes of `other` are in it.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the modes in it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |&(mode, _)| self.contains(mode)).map(|(_, name)| name)
    }

    fn when(self, wanted: bool) -> u32 {
        if wanted { self.0 } else { 0 }
    }
}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// The bit timing that a controller has (`struct can_bittiming`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Bit/s; 0: not set yet.
    pub bitrate: u32,
    /// Where a bit is sampled, in tenths of a percent.
    pub sample_point: u32,
    /// A time quantum in ns.
    pub time_quantum_ns: u32,
    /// Propagation segment in time quanta.
    pub propagation: u32,
    /// Phase segment 1 in time quanta.
    pub phase1: u32,
    /// Phase segment 2 in time quanta.
    pub phase2: u32,
    /// Synchronisation jump width in time quanta.
    pub sjw: u32,
    /// Clock periods per time quantum.
    pub prescaler: u32,
}

/// The state and settings of a controller, as its driver reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controller {
    /// The driver's name of the chip (`sja1000`); empty when it has none.
    pub chip: String,
    /// The error state, from error-active to bus-off; `None` for a state unknown to this version.
    pub state: Option<State>,
    /// Bit timing; of FD frames: of the arbitration phase.
    pub timing: Timing,
    /// Bit timing of the data phase, of controllers that have FD on.
    pub data_timing: Option<Timing>,
    /// The controller's clock in Hz.
    pub clock_hz: u32,
    /// Restart this many ms after bus off; 0: by hand.
    pub restart_ms: u32,
    /// The modes that are on.
    pub modes: Modes,
    /// The modes that it supports; `None`: unknown (kernels before 5.18).
    pub supported: Option<Modes>,
    /// Transmit and receive error counter now, of drivers that can read them.
    pub error_counters: Option<ErrorCounters>,
}

/// The controller's error counters (`struct can_berr_counter`), 0…256 or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounters {
    /// Transmit error counter.
    pub tx: u16,
    /// Receive error counter.
    pub rx: u16,
}

impl Controller {
    /// From `IFLA_INFO_DATA` of a link of kind "can".
    pub(crate) fn decode(data: Attributes<'_>) -> Self {
        let state = data.get_u32(libc::IFLA_CAN_STATE as u16);
        let errors = data.get(libc::IFLA_CAN_BERR_COUNTER as u16);
        Self {
            chip: data.get(libc::IFLA_CAN_BITTIMING_CONST as u16).map(chip).unwrap_or_default(),
            state: state.and_then(|state| STATES.get(state as usize)).copied(),
            timing: data.get(libc::IFLA_CAN_BITTIMING as u16).and_then(timing).unwrap_or_default(),
            data_timing: data.get(libc::IFLA_CAN_DATA_BITTIMING as u16).and_then(timing),
            clock_hz: data.get_u32(libc::IFLA_CAN_CLOCK as u16).unwrap_or_default(),
            restart_ms: data.get_u32(libc::IFLA_CAN_RESTART_MS as u16).unwrap_or_default(),
            // struct can_ctrlmode: mask, flags
            modes: data
                .get(libc::IFLA_CAN_CTRLMODE as u16)
                .and_then(|mode| u32_at(mode, 4))
                .map(Modes)
                .unwrap_or_default(),
            supported: data
                .nested(libc::IFLA_CAN_CTRLMODE_EXT as u16)
                .get_u32(libc::IFLA_CAN_CTRLMODE_SUPPORTED as u16)
                .map(Modes),
            error_counters: errors
                .and_then(|both| Some(ErrorCounters { tx: u16_at(both, 0)?, rx: u16_at(both, 2)? })),
        }
    }

    /// Whether FD is on.
    pub fn is_fd(&self) -> bool {
        self.modes.contains(Modes::FD)
    }
}

/// The name at the start of `struct can_bittiming_const`.
fn chip(constants: &[u8]) -> String {
    text(&constants[..constants.len().min(16)])
}

fn timing(bytes: &[u8]) -> Option<Timing> {
    Some(Timing {
        bitrate: u32_at(bytes, 0)?,
        sample_point: u32_at(bytes, 4)?,
        time_quantum_ns: u32_at(bytes, 8)?,
        propagation: u32_at(bytes, 12)?,
        phase1: u32_at(bytes, 16)?,
        phase2: u32_at(bytes, 20)?,
        sjw: u32_at(bytes, 24)?,
        prescaler: u32_at(bytes, 28)?,
    })
}

/// How a controller is to be set; the kernel computes the segments. Every mode named here is set or cleared, others
/// stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitTiming {
    /// Bit/s, of FD frames in the arbitration phase: up to 1 000 000.
    pub bitrate: u32,
    /// Where a bit is sampled, in tenths of a percent, 1…999; `None`: the kernel chooses, mostly 875.
    pub sample_point: Option<u32>,
    /// Bit/s in the data phase of FD frames; needed with `fd` and only with it.
    pub data_bitrate: Option<u32>,
    /// As `sample_point`, for the data phase.
    pub data_sample_point: Option<u32>,
    /// CAN FD on.
    pub fd: bool,
    /// Restart this many ms after bus off; 0: by hand.
    pub restart_ms: u32,
    /// [`Modes::LISTEN_ONLY`]
    pub listen_only: bool,
    /// [`Modes::LOOPBACK`]
    pub loopback: bool,
    /// [`Modes::ONE_SHOT`]
    pub one_shot: bool,
    /// [`Modes::BERR_REPORTING`]
    pub berr_reporting: bool,
    /// [`Modes::TRIPLE_SAMPLING`]
    pub triple_sampling: bool,
}

impl BitTiming {
    /// A classic bus of `bitrate` bit/s, everything else as the kernel has it by default.
    pub fn classic(bitrate: u32) -> Self {
        Self { bitrate, ..Self::default() }
    }

    /// An FD bus of `bitrate` and, in the data phase, `data_bitrate` bit/s.
    pub fn fd(bitrate: u32, data_bitrate: u32) -> Self {
        Self { bitrate, data_bitrate: Some(data_bitrate), fd: true, ..Self::default() }
    }

    /// The fault of settings that no controller accepts.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let outside = |point: Option<u32>| point.is_some_and(|point| !(1..=999).contains(&point));
        if self.bitrate == 0 || self.data_bitrate == Some(0) {
            Some("a bit rate of 0 bit/s")
        } else if outside(self.sample_point) || outside(self.data_sample_point) {
            Some("the sample point is not 1…999 tenths of a percent")
        } else if self.fd && self.data_bitrate.is_none() {
            Some("FD needs a data bit rate as well")
        } else if !self.fd && (self.data_bitrate.is_some() || self.data_sample_point.is_some()) {
            Some("a data bit rate needs FD")
        } else {
            None
        }
    }

    /// The modes named here that are wanted.
    pub(crate) fn modes(&self) -> Modes {
        let bits = Modes::LISTEN_ONLY.when(self.listen_only)
            | Modes::LOOPBACK.when(self.loopback)
            | Modes::ONE_SHOT.when(self.one_shot)
            | Modes::BERR_REPORTING.when(self.berr_reporting)
            | Modes::TRIPLE_SAMPLING.when(self.triple_sampling)
            | Modes::FD.when(self.fd);
        Modes(bits)
    }

    /// As attributes of `IFLA_INFO_DATA`.
    pub(crate) fn encode(&self, request: &mut Request) {
        let all = Self { fd: true, listen_only: true, loopback: true, one_shot: true, ..*self };
        let mask = Self { berr_reporting: true, triple_sampling: true, ..all }.modes().0;
        request.put(
            libc::IFLA_CAN_CTRLMODE as u16,
            &[mask.to_ne_bytes(), self.modes().0.to_ne_bytes()].concat(),
        );
        request.put(libc::IFLA_CAN_BITTIMING as u16, &wanted(self.bitrate, self.sample_point));
        if let Some(bitrate) = self.data_bitrate {
            request.put(libc::IFLA_CAN_DATA_BITTIMING as u16, &wanted(bitrate, self.data_sample_point));
        }
        request.put_u32(libc::IFLA_CAN_RESTART_MS as u16, self.restart_ms);
    }
}

/// `struct can_bittiming` with only the requested fields; the kernel computes fields that are 0.
fn wanted(bitrate: u32, sample_point: Option<u32>) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0..4].copy_from_slice(&bitrate.to_ne_bytes());
    bytes[4..8].copy_from_slice(&sample_point.unwrap_or(0).to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_states_are_in_the_kernels_order() {
        for (at, &state) in STATES.iter().enumerate() {
            assert_eq!(state as usize, at);
        }
        assert_eq!(State::BusOff.to_string(), "BUS-OFF");
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let classic = BitTiming::classic(500_000);
        assert_eq!(classic.fault(), None);
        assert_eq!(BitTiming::fd(500_000, 2_000_000).fault(), None);
        for (timing, part) in [
            (BitTiming::classic(0), "0 bit/s"),
            (BitTiming { fd: true, ..classic }, "data bit rate"),
            (BitTiming { data_bitrate: Some(1), ..classic }, "needs FD"),
            (BitTiming { sample_point: Some(1000), ..classic }, "sample point"),
        ] {
            assert!(timing.fault().is_some_and(|fault| fault.contains(part)), "{timing:?}");
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn bit_timing_is_laid_out_as_the_header_has_it() {
        let mut request = Request::new(16, 0, &[]);
        BitTiming { sample_point: Some(875), listen_only: true, ..BitTiming::classic(500_000) }
            .encode(&mut request);
        let bytes = request.finish(0);
        let attributes = Attributes::new(&bytes[16..]);
        assert_eq!(attributes.get(5), Some(&[0x3f, 0, 0, 0, 0x02, 0, 0, 0][..]));
        assert_eq!(
            attributes.get(1).map(|timing| &timing[..8]),
            Some(&[0x20, 0xa1, 7, 0, 0x6b, 3, 0, 0][..])
        );
        assert_eq!(attributes.get(1).map(<[u8]>::len), Some(32));
        assert_eq!(attributes.get(9), None);
    }

    proptest! {
        #[test]
        fn any_controller_data_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let controller = Controller::decode(Attributes::new(&bytes));
            let _ = format!("{controller:?}");
        }
    }
}
