//! Records interfaces for some seconds and prints the account of all frames.
//!
//!     cargo run -p canter-capture --example record -- drive.pcapng 10 can0 can1

use canter_capture::{Account, InterfaceFilters, Recording, Settings};
use std::{
    error::Error,
    thread,
    time::{Duration, Instant},
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(seconds)) = (arguments.next(), arguments.next()) else {
        return Err("usage: record FILE SECONDS IFACE[,FILTERS]…".into());
    };
    let interfaces = arguments.map(|text| InterfaceFilters::parse(&text)).collect::<Result<Vec<_>, _>>()?;
    let length = Duration::from_secs(seconds.parse()?);

    let mut settings = Settings::new(interfaces, &file);
    settings.overwrite = true;
    let mut recording = Recording::start(&settings)?;
    let begun = Instant::now();
    while begun.elapsed() < length && !recording.is_over() {
        thread::sleep(Duration::from_millis(100));
        for event in recording.events() {
            println!("{}", event.what); // an interface went down, the disk is full
        }
    }
    let account = recording.finish();
    account.save(Account::path(&file))?;
    println!("{account}");
    if account.verdict.is_complete() { Ok(()) } else { Err(account.verdict.to_string().into()) }
}
