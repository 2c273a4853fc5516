//! A Kvaser PCI card that this process controls through I/O ports: the card, and its channels. Below both the
//! carrier, which finds and names channels, and the method, which moves frames through them.

pub(crate) mod card;
pub(crate) mod channel;
