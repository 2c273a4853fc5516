//! Interfaces that come and go during a recording, on any kind of bus: each test file names the buses and the ways to record.

use super::{Buses, Capture, Disk, account, assert_all, events, is_complete, send};

/// Records `PREFIX0` with each of these options, removes it and makes it again: it is recorded as the same bus.
#[track_caller]
pub fn removed_and_made_again<B: Buses>(prefix: &str, ways: &[&[&str]]) {
    let (disk, name) = (Disk::new("again", "16M"), format!("{prefix}0"));
    for options in ways {
        let file = disk.file("a.log");
        let mut arguments = vec![name.as_str(), "-o", &file, "--overwrite"];
        arguments.extend(*options);
        let buses = B::new(prefix, 1);
        let mut capture = Capture::start(&arguments);
        send(&mut buses.senders(), 0, 100);
        drop(buses);
        capture.until_it_says(&[&format!("{name}: is gone")]);
        let buses = B::new(prefix, 1);
        capture.until_it_says(&[&format!("{name}: appeared again")]);
        send(&mut buses.senders(), 100, 200);
        let ended = capture.stop();
        let account = account(&file);
        is_complete(&ended, &account);
        assert_all(&file, std::slice::from_ref(&name), 200);
        assert_eq!(account["buses"][0]["counted"], 200, "{options:?}: {account}");
        let events = events(&account);
        assert!(
            events.contains(&format!("{name}: is gone\n"))
                && events.contains(&format!("{name}: appeared again")),
            "{options:?}: {events}"
        );
        assert!(ended.said.contains(&format!("canter: {name}: is gone")), "{options:?}: {}", ended.said);
    }
}

/// Records with each of these ways, which name the first three interfaces of the prefix or `any`, and makes two of them later.
#[track_caller]
pub fn made_later<B: Buses>(prefix: &str, ways: &[&[&str]]) {
    let disk = Disk::new("later", "16M");
    for arguments in ways {
        let file = disk.file("a.log");
        let output = ["-o", &file, "--overwrite"];
        let mut capture = Capture::start(&[arguments, &output[..]].concat());
        let buses = B::new(prefix, 2); // made down, then brought up
        capture.until_it_says(&[&format!("{prefix}0: found"), &format!("{prefix}1: found")]);
        send(&mut buses.senders(), 0, 150);
        let ended = capture.stop();
        let account = account(&file);
        is_complete(&ended, &account);
        assert_all(&file, &buses.names(), 150);
        let events = events(&account);
        assert!(events.contains(&format!("{prefix}0: found")), "{events}");
        let named = arguments.len() > 1;
        assert_eq!(events.contains(&format!("{prefix}2: never appeared")), named, "{events}");
    }
}
