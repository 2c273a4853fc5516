//! Records a wire into a file. A frame's stamp is its end, as with hardware, in CLOCK_REALTIME; its interface is the
//! sender. An error becomes a CAN error frame (linux/can/error.h), as a controller reports it, so that Wireshark can filter
//! it. In formats with comments, the comment has the frame that the error destroyed.

use super::{line, summary::Report};
use canter_cli::{failure, trouble};
use canter_formats::{Append, Closing};
use canter_frame::{BusId, RawRecord};
use canter_io::{clock, frame::ERR_FLAG, netlink::wire::Fault, tap::Record};
use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 16;

pub struct Recording {
    path: PathBuf,
    file: File,
    format: Box<dyn Append>,
    senders: Vec<String>,
    buffer: Vec<u8>,
    started_ns: u64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    ahead_ns: u64,
}

impl Recording {
    pub fn create(path: &Path, mut format: Box<dyn Append>) -> failure::Result<Self> {
        let file = File::create_new(path).map_err(|error| trouble::file_failure(path, "create", error))?;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        format.begin(&mut buffer);
        let started_ns = clock::realtime_ns();
        let ahead_ns = started_ns.saturating_sub(clock::monotonic_ns());
        Ok(Self { path: path.to_owned(), file, format, senders: Vec::new(), buffer, started_ns, ahead_ns })
    }

    pub fn write(&mut self, record: &Record, sender: &str) -> failure::Result<()> {
        let known = self.senders.iter().position(|known| known == sender);
        let interface = known.unwrap_or_else(|| {
            self.senders.push(sender.to_owned());
            self.format.interface(&mut self.buffer, sender);
            self.senders.len() - 1
        }) as u32;
        let bytes = match record.error {
            Some(fault) => error_frame(fault),
            None => record.frame.kernel_bytes()[..record.frame.mtu()].to_vec(),
        };
        let comment = line::comment(record);
        if !comment.is_empty() {
            self.format.remark(&comment);
        }
        let stamp_ns = record.end_ns + self.ahead_ns;
        let entry = RawRecord::new(stamp_ns, BusId(interface), &bytes);
        self.format.frame(&mut self.buffer, &entry, false);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends the file with its statistics.
    pub fn close(mut self, report: &Report) -> failure::Result<()> {
        let ended_ns = clock::realtime_ns();
        let mut closings =
            vec![Closing { started_ns: self.started_ns, ended_ns, ..Closing::default() }; self.senders.len()];
        if let Some(first) = closings.first_mut() {
            first.lost = Some(report.missed);
        }
        self.format.finish(&mut self.buffer, &closings, &report.to_string());
        self.flush()?;
        self.file.sync_all().map_err(|error| trouble::file_failure(&self.path, "write", error))
    }

    fn flush(&mut self) -> failure::Result<()> {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| trouble::file_failure(&self.path, "write", error))
    }
}

// linux/can/error.h
const CAN_ERR_PROT: u32 = 0x08;
const CAN_ERR_ACK: u32 = 0x20;
const CAN_ERR_BUSERROR: u32 = 0x80;
const CAN_ERR_PROT_BIT: u8 = 0x01;
const CAN_ERR_PROT_FORM: u8 = 0x02;
const CAN_ERR_PROT_STUFF: u8 = 0x04;
const CAN_ERR_PROT_LOC_CRC_SEQ: u8 = 0x08;
const CAN_ERR_PROT_LOC_ACK: u8 = 0x19;
const CAN_ERR_DLC: u8 = 8;

fn error_frame(fault: Fault) -> Vec<u8> {
    let (class, kind, location) = match fault {
        Fault::Bit => (CAN_ERR_PROT, CAN_ERR_PROT_BIT, 0),
        Fault::Stuff => (CAN_ERR_PROT, CAN_ERR_PROT_STUFF, 0),
        Fault::Form | Fault::Rate => (CAN_ERR_PROT, CAN_ERR_PROT_FORM, 0),
        Fault::Crc => (CAN_ERR_PROT, 0, CAN_ERR_PROT_LOC_CRC_SEQ),
        Fault::Ack => (CAN_ERR_ACK, 0, CAN_ERR_PROT_LOC_ACK),
        Fault::Aborted => (0, 0, 0),
    };
    let mut bytes = (ERR_FLAG | CAN_ERR_BUSERROR | class).to_ne_bytes().to_vec();
    bytes.extend([CAN_ERR_DLC, 0, 0, 0]);
    bytes.extend([0, 0, kind, location, 0, 0, 0, 0]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_frame::RawRecord;

    #[test]
    fn an_error_is_recorded_as_a_controller_reports_it() {
        let bytes = error_frame(Fault::Crc);
        let frame = RawRecord::new(0, BusId(0), &bytes).frame();
        assert!(frame.is_error());
        assert_eq!(frame.to_string(), "20000088#0000000800000000");
        let bytes = error_frame(Fault::Ack);
        assert_eq!(RawRecord::new(0, BusId(0), &bytes).frame().to_string(), "200000A0#0000001900000000");
    }
}
