//! A gateway for tests: it reports three forwarded frames in each direction, and ends.

use super::{
    account::RouteAccount,
    kind::{Kind, Outcome, Place, Refusal},
    refusal,
    table::GATEWAYS,
};
use crate::rules::counts::Counts;
use canter_io::method::Capabilities;

pub const TOY: Kind = Kind {
    name: "toy",
    paper_name: "toy-of-2014",
    about: "three frames and no bus",
    example: "in a test",
    pairs: false,
    place: Place::Kernel,
    capabilities: Capabilities { fd: false, batch: true, origin: false },
    devices: false,
    rules_apply: false,
    waits_for_interfaces: false,
    takes_hops: false,
    right: None,
    check: || Err(TOY.unable("exists in tests only")),
    check_between: |_, _| Ok(()),
    refuses: &[Refusal { when: refusal::several_directions, reason: "it has one direction" }],
    run: |request| {
        let counts = Counts { received: 3, transmitted: 3, ..Counts::default() };
        let routes = request.directions.iter().map(|direction| RouteAccount::new(direction, counts));
        Ok(Outcome { routes: routes.collect(), ended: Ok(()) })
    },
};

/// The table with the toy.
pub fn table() -> &'static [Kind] {
    Box::leak([GATEWAYS, &[TOY]].concat().into())
}
