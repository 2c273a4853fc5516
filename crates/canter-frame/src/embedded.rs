//! The traits of the crate embedded-can, so that drivers and protocol stacks written for them take our frames.

use crate::{Frame, Identifier};
use embedded_can::{ExtendedId, Id, StandardId};

impl From<Id> for Identifier {
    fn from(id: Id) -> Self {
        match id {
            Id::Standard(id) => Self::Sff(id.as_raw()),
            Id::Extended(id) => Self::Eff(id.as_raw()),
        }
    }
}

impl From<Identifier> for Id {
    /// Bits above the format's width are cut off; a [`Frame`] never has any.
    fn from(id: Identifier) -> Self {
        match id {
            Identifier::Sff(id) => StandardId::new(id & 0x7ff).unwrap_or(StandardId::MAX).into(),
            Identifier::Eff(id) => ExtendedId::new(id & 0x1fff_ffff).unwrap_or(ExtendedId::MAX).into(),
        }
    }
}

/// Classic frames only, as the trait knows no FD: `new` makes them, the getters read any frame.
impl embedded_can::Frame for Frame {
    fn new(id: impl Into<Id>, data: &[u8]) -> Option<Self> {
        Self::classic(id.into().into(), data).ok()
    }

    fn new_remote(id: impl Into<Id>, dlc: usize) -> Option<Self> {
        Self::rtr(id.into().into(), u8::try_from(dlc).ok()?).ok()
    }

    fn is_extended(&self) -> bool {
        self.is_eff()
    }

    fn is_remote_frame(&self) -> bool {
        self.is_rtr()
    }

    fn id(&self) -> Id {
        Frame::id(self).into()
    }

    fn dlc(&self) -> usize {
        usize::from(self.len)
    }

    fn data(&self) -> &[u8] {
        Frame::data(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use embedded_can::Frame as _;

    #[test]
    fn a_frame_made_through_the_trait_is_the_frame_made_directly() {
        let id = StandardId::new(0x123).unwrap();
        let frame = <Frame as embedded_can::Frame>::new(id, &[1, 2]).unwrap();
        assert_eq!(frame, "123#0102".parse().unwrap());
        assert_eq!((embedded_can::Frame::id(&frame), frame.dlc()), (Id::Standard(id), 2));
        let remote = Frame::new_remote(ExtendedId::new(0x1234).unwrap(), 5).unwrap();
        assert_eq!(remote, "00001234#R5".parse().unwrap());
        assert!(remote.is_remote_frame() && remote.is_extended());
        assert_eq!(<Frame as embedded_can::Frame>::new(id, &[0; 9]), None);
        assert_eq!(Frame::new_remote(id, 9), None);
    }
}
