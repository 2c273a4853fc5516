//! The same frames by the papers' method and by the analyzer, which is independent of it: sockets stamp each frame on both
//! buses while the analyzer sees its way. The stamps are read when all frames are through.

use super::{experiment::drain, instrument::Setup, sockets};
use crate::analyzer::account::Way;
use canter_cli::failure;
use canter_io::{Batch, Frame, Interface, batch::BATCH_FRAMES, frame::BitRate, method::Receive};
use canter_measure::matcher::Passage;

/// The sockets of a measurement.
pub struct BesideSockets {
    /// On the sender's bus and on the routed one.
    receivers: [Box<dyn Receive>; 2],
    /// The bit rates of the routed bus, if a frame takes time there.
    wire: Option<BitRate>,
}

impl BesideSockets {
    pub fn open(setup: &Setup, on: [&Interface; 2]) -> failure::Result<Self> {
        let receiver = |on| sockets::receiver(on, setup.count);
        let wire = sockets::wire(setup, on[1]);
        Ok(Self { receivers: [receiver(on[0])?, receiver(on[1])?], wire })
    }

    /// How far the latency by the sockets is from the analyzer's, in ns, of each frame that came through.
    pub fn apart_ns(&mut self, ways: &[Way], like: &Frame) -> Result<Vec<u64>, String> {
        let count = ways.iter().map(|way| way.number + 1).max().unwrap_or(0);
        let mut stamps = [vec![None; count], vec![None; count]];
        let mut batch = Batch::new(BATCH_FRAMES);
        for (receiver, stamps) in self.receivers.iter_mut().zip(&mut stamps) {
            let take = |number: u16, stamp_ns, _: &Frame| {
                if let Some(place) = stamps.get_mut(usize::from(number)) {
                    *place = Some(stamp_ns);
                }
            };
            drain(&mut **receiver, &mut batch, like, take).map_err(|error| error.to_string())?;
        }
        let taken_ns = self.wire.map_or(0, |rate| like.duration_ns(rate));
        let of_frame = |way: &Way| {
            let end = way.end?;
            let [direct, routed] = [0, 1].map(|side: usize| stamps[side][way.number]);
            let by_analyzer = (end.time_ns - end.of_meter() - way.begin_ns) as i64;
            let by_sockets = direct
                .zip(routed)
                .map(|(direct_ns, routed_ns)| Passage { direct_ns, routed_ns }.latency_ns(taken_ns));
            let apart = by_sockets.map(|by_sockets| by_sockets.abs_diff(by_analyzer));
            Some(apart.ok_or_else(|| format!("frame {}: the sockets have not stamped it", way.number)))
        };
        ways.iter().filter_map(of_frame).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzer::account::End;
    use canter_io::{
        Meta,
        batch::{Clock, Origin},
    };
    use canter_route::traffic::template;
    use std::{io, os::fd::BorrowedFd};

    const FRAME: &str = "100#00001122";

    /// Frames of these numbers, at these times.
    struct Stamped(Vec<(u16, u64)>);

    impl Receive for Stamped {
        fn receive(&mut self, batch: &mut Batch) -> io::Result<usize> {
            let stamped = std::mem::take(&mut self.0);
            for &(number, stamp_ns) in &stamped {
                let mut frame = FRAME.parse().unwrap();
                template::set_number(&mut frame, number);
                let (clock, origin) = (Clock::Software, Origin::Bus);
                batch.push(&frame, Meta { stamp_ns, interface: 0, drops: 0, clock, origin });
            }
            Ok(stamped.len())
        }

        fn drops(&mut self) -> io::Result<u64> {
            Ok(0)
        }

        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    fn way(number: usize, begin_ns: u64, end_ns: Option<u64>) -> Way {
        let end = end_ns.map(|time_ns| End { time_ns, ..End::default() });
        Way { number, begin_ns, end }
    }

    #[test]
    fn each_frame_that_came_through_is_compared_and_one_without_a_stamp_decides_nothing() {
        let apart = |routed: &[(u16, u64)], wire| {
            let direct = Stamped(vec![(0, 1_000), (1, 2_000), (2, 3_000)]);
            let receivers: [Box<dyn Receive>; 2] = [Box::new(direct), Box::new(Stamped(routed.to_vec()))];
            let ways = [way(0, 50, Some(150)), way(1, 60, None), way(2, 70, Some(170))];
            BesideSockets { receivers, wire }.apart_ns(&ways, &FRAME.parse().unwrap())
        };
        assert_eq!(apart(&[(0, 1_110), (2, 3_080)], None), Ok(vec![10, 20]));
        let frame: Frame = FRAME.parse().unwrap();
        let wire = BitRate::classic(1_000_000);
        let on_the_wire_ns = frame.duration_ns(wire);
        let later = [(0, 1_100 + on_the_wire_ns), (2, 3_100 + on_the_wire_ns)];
        assert_eq!(apart(&later, Some(wire)), Ok(vec![0, 0]));
        let missing = apart(&[(0, 1_110)], None);
        assert_eq!(missing, Err("frame 2: the sockets have not stamped it".to_owned()));
    }
}
