//! Text that other programs write and canter only reads: frames as they wrote them; a length that its data contradicts is an
//! error, never a shorter frame.

use crate::{Direction, FORMATS, Reader};

/// The frames of a text as `stamp bus frame direction`, or the error.
fn read(text: &str) -> Result<Vec<String>, String> {
    let mut reader = Reader::from_read("x", Box::new(std::io::Cursor::new(text.to_owned())), FORMATS)
        .map_err(|error| error.to_string())?;
    let mut lines = Vec::new();
    while let Some(record) = reader.next_record().map_err(|error| error.to_string())? {
        let direction = match record.direction {
            None => "",
            Some(Direction::Received) => " R",
            Some(Direction::Sent) => " T",
        };
        let (us, bus) = (record.stamp_ns / 1000, reader.name(record.bus));
        lines.push(format!("{us} {bus} {}{direction}", record.frame));
    }
    if let Some(cut) = reader.cut() {
        lines.push(cut.to_owned());
    }
    lines.extend(reader.skipped().iter().map(|(what, count)| format!("{count} {what}")));
    Ok(lines)
}

fn error(text: &str) -> String {
    read(text).unwrap_err()
}

const START_US: u64 = 1_639_837_687_062_000;

#[test]
fn trc_is_read_in_all_versions() {
    let begin = ";$STARTTIME=44548.602859513889\n;\n";
    let v1_0 = ";####\n;   Start time: 18.12.2021 14:28:07.062\n;    PCAN-Net: N/A\n     1)     17535  00000100  8  00 01 02 03 04 05 06 07\n     2)     17540  FFFFFFFF  4  00 00 00 08 -- -- -- -- BUSHEAVY\n    12)     48937      0704  1  RTR\n";
    let v1_1 = format!(
        ";$FILEVERSION=1.1\n{begin}     1)     17535.4  Tx     00000100  2  00 01 \n     2)     17540.3  Warng  FFFFFFFF  4  00 00 00 08  BUSHEAVY \n    12)     48937.6  Rx         0704  1  RTR\n"
    );
    let v1_3 = format!(
        ";$FILEVERSION=1.3\n{begin}     1)     17535.400 2  Tx    00000100 -  2    00 01\n    12)     48937.600 1  Rx        0704 -  1    RTR\n"
    );
    let v2_0 = format!(
        ";$FILEVERSION=2.0\n{begin};$COLUMNS=N,O,T,I,d,l,D\n      1     17535.400 DT 00000100 Tx 2  00 01\n      2     17540.300 ST          Rx    00 00 00 08\n      3     18000.000 FB     0123 Rx 12 00 01 02 03 04 05 06 07 08 09 0A 0B\n     12     48937.600 RR     0704 Rx 1\n"
    );
    let v2_1 = format!(
        ";$FILEVERSION=2.1\n{begin};$COLUMNS=N,O,T,B,I,d,R,L,D\n      1     17535.400 DT 1  00000100 Tx -  2    00 01\n      2     17540.300 ST 1         - Rx -  4    00 00 00 08\n      3     18000.000 FE 1      0123 Rx -  9    00 01 02 03 04 05 06 07 08 09 0A 0B\n      4     18001.000 ER 1         - Rx -  5    00 00 00 00 00\n"
    );
    let at = |us: u64| START_US + us;
    assert_eq!(
        read(v1_0).unwrap(),
        [
            format!("{} can0 00000100#0001020304050607", at(17_535_000)),
            format!("{} can0 704#R1", at(48_937_000)),
            "1 status messages".to_owned(),
        ]
    );
    let sent = format!("{} can0 00000100#0001 T", at(17_535_400));
    let remote = format!("{} can0 704#R1 R", at(48_937_600));
    let status = "1 status messages".to_owned();
    assert_eq!(read(&v1_1).unwrap(), [sent.clone(), remote.clone(), status.clone()]);
    assert_eq!(read(&v1_3).unwrap(), [sent.replace("can0", "can1"), remote.clone()]);
    let fd = |flags| format!("{} can0 123##{flags}000102030405060708090A0B R", at(18_000_000));
    assert_eq!(read(&v2_0).unwrap(), [sent.clone(), fd(5), remote, status.clone()]);
    let error = format!("{} can0 20000080#0000000000000000", at(18_001_000));
    assert_eq!(read(&v2_1).unwrap(), [sent, fd(7), error, status]);
}

#[test]
fn damaged_lines_of_trc_are_refused() {
    let head = ";$FILEVERSION=2.1\n;$STARTTIME=44548.6\n;$COLUMNS=N,O,T,B,I,d,R,L,D\n";
    let line = |line: &str| error(&format!("{head}{line}\n"));
    for (text, reason) in [
        ("1 1.0 DT 1 0100 Rx - 3 00 01", "data that is shorter or longer than the length"),
        ("1 1.0 DT 1 0100 Rx - 1 00 01", "data that is shorter or longer than the length"),
        ("1 1.0 DT 1 0100 Rx - 2 00 0", "data that is not hex"),
        ("1 1.0 DT 1 0100 Rx - 16 00 01", "no length"),
        ("1 1.0 FD 1 0100 Rx - 9 00 01", "data that is shorter or longer than the length"),
        ("1 x DT 1 0100 Rx - 1 00", "no time in ms"),
        ("1 1.0 DT 1 0100 Up - 1 00", "a direction that is not Rx or Tx"),
        ("1 1.0 DT 1 FFFFFFFE Rx - 1 00", "an identifier that is no hex number of 29 bits"),
        ("1 1.0 DT", "not as many columns as the header has"),
    ] {
        let said = line(text);
        assert!(said.contains("line 4") && said.contains(reason), "{text}: {said}");
    }
    assert!(error(";$FILEVERSION=3.0\n").contains("is TRC 3.0"));
    assert!(error(";$FILEVERSION=2.0\n1 1.0 DT 0100 Rx 1 00\n").contains("no line $COLUMNS"));
    let cut = read(&format!("{head}1 1.0 DT 1 0100 Rx - 1 00\n2 1.0 DT 1 0100 Rx - 1 0")).unwrap();
    assert!(cut[1].contains("cut off after 1 frames"), "{cut:?}");
    assert_eq!(
        read(&format!("{head}1 1.0 DT 1 0100 Rx - 1 00")).unwrap().len(),
        1,
        "PEAK-Converter writes no last line break"
    );
}

#[test]
fn what_candump_prints_is_read_with_every_kind_of_stamp() {
    let frames = [
        "can0  123   [2]  11 22",
        "can1  12345678   [0]",
        "can0  123   [0]  remote request",
        "can0  123  [12]  00 01 02 03 04 05 06 07 08 09 0A 0B",
    ];
    let lines = |stamps: [&str; 4]| -> String {
        frames.iter().zip(stamps).map(|(frame, stamp)| format!(" {stamp}  {frame}\n")).collect()
    };
    let expected = |us: [u64; 4]| {
        let [a, b, c, d] = us;
        vec![
            format!("{a} can0 123#1122"),
            format!("{b} can1 12345678#"),
            format!("{c} can0 123#R"),
            format!("{d} can0 123##4000102030405060708090A0B"),
        ]
    };
    let absolute =
        lines(["(1700000000.000001)", "(1700000000.000002)", "(1700000000.000003)", "(1700000001.000004)"]);
    let base = 1_700_000_000_000_000;
    let absolutes = [base + 1, base + 2, base + 3, base + 1_000_004];
    assert_eq!(read(&absolute).unwrap(), expected(absolutes));
    assert_eq!(read(&absolute.replace(')', "000)")).unwrap(), expected(absolutes), "-N");
    let dates = lines([
        "(2023-11-14 22:13:20.000001)",
        "(2023-11-14 22:13:20.000002)",
        "(2023-11-14 22:13:20.000003)",
        "(2023-11-14 22:13:21.000004)",
    ]);
    assert_eq!(read(&dates).unwrap(), expected(absolutes));
    let zero = lines(["(000.000000)", "(000.000002)", "(000.000003)", "(001.000004)"]);
    assert_eq!(read(&zero).unwrap(), expected([0, 2, 3, 1_000_004]));
    let delta = lines(["(000.000000)", "(000.000002)", "(000.000001)", "(001.000004)"]);
    assert_eq!(read(&delta).unwrap(), expected([0, 2, 3, 1_000_007]));
    let without: String = frames.iter().map(|frame| format!("  {frame}\n")).collect();
    assert_eq!(read(&without).unwrap(), expected([0; 4]));
}

#[test]
fn what_candump_adds_to_a_line_is_understood() {
    let text = "  can0  RX - -  123   [2]  11 22   '.\"'\n  can0  TX B E       123  [08]  00 01 02 03 04 05 06 07\n  can0  20000004   [8]  00 04 00 00 00 00 00 00   ERRORFRAME\n\tcontroller-problem{rx-overflow}\n";
    let expected = [
        "0 can0 123#1122 R",
        "0 can0 123##70001020304050607 T",
        "0 can0 20000004#0004000000000000",
        "1 lines that are no frames",
    ];
    assert_eq!(read(text).unwrap(), expected);
    assert!(error("  can0  123   [3]  11 22\n").contains("no frame behind the interface"));
    assert!(error("  can0  923   [2]  11 22\n").contains("no frame behind the interface"));
}

#[test]
fn tables_of_python_can_and_savvycan_are_read() {
    let text = "timestamp,arbitration_id,extended,remote,error,dlc,data\n1483389946.197,0xdadada,1,0,0,6,WzQyLCA5\n1483389946.2,0x123,0,1,0,2,\n1e-05,0x123,0,0,0,12,AAECAwQFBgcICQoL\n2.0,0x0,1,0,1,0,\n";
    let expected = [
        "1483389946197000 can0 00DADADA#5B34322C2039",
        "1483389946200000 can0 123#R2",
        "10 can0 123##4000102030405060708090A0B",
        "2000000 can0 20000080#0000000000000000",
    ];
    assert_eq!(read(text).unwrap(), expected);
    assert!(
        error(&text.replace(",6,", ",5,")).contains("line 2: a DLC that is not the number of data bytes")
    );
    let text = "Time Stamp,ID,Extended,Dir,Bus,LEN,D1,D2,D3,D4,D5,D6,D7,D8\n166064000,0000021A,false,Rx,0,2,FE,36,\n166065000,18DAF110,true,Tx,1,0,\n";
    assert_eq!(read(text).unwrap(), ["166064000 can0 21A#FE36 R", "166065000 can1 18DAF110# T"]);
    assert_eq!(
        read(&text.replace("Dir,", "").replace("Rx,", "").replace("Tx,", "")).unwrap(),
        ["166064000 can0 21A#FE36", "166065000 can1 18DAF110#"]
    );
    assert!(
        error(&text.replace("Rx,0,2", "Rx,0,3")).contains("line 2: not as many data bytes as its length")
    );
}
