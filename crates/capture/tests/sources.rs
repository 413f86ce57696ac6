// SPDX-License-Identifier: MIT
//! Compressed captures, streams and sets of files: possible errors, and memory use.

mod fixtures;

use ackwise_capture::write::{PcapStyle, PcapngWriter, TcpPacket};
use ackwise_capture::{
    link, packets, CaptureError, CaptureErrorKind, CaptureNotes, Compression, Packet, Progress, ReadOptions,
    Source,
};
use fixtures::{pcap, short_connection, v4, Folder, MS, START_NS};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

fn all(source: Source<'_>) -> Result<(Vec<Packet>, CaptureNotes), CaptureError> {
    let mut found = Vec::new();
    let notes = packets([source], &ReadOptions::default(), |p| {
        found.push(p.clone());
        ControlFlow::Continue(())
    })?;
    Ok((found, notes))
}

fn of(bytes: &[u8]) -> Result<(Vec<Packet>, CaptureNotes), CaptureError> {
    all(Source::reader(bytes, "x.pcap"))
}

/// A few hundred kilobytes that compress only moderately.
fn transfer() -> Vec<u8> {
    let [a, b] = v4();
    let one = |i: u32| (u64::from(i) * MS, TcpPacket::new(a, b, i.wrapping_mul(2_654_435_761), i * i, 100));
    let packets: Vec<_> = (0..3000).map(one).collect();
    pcap(link::ETHERNET, PcapStyle::default(), &packets)
}

/// Output of a compression program; None if it is not installed.
fn packed(program: &str, words: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    let child = Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: {program} is not installed (apt-get install {program})");
        return None;
    };
    let mut stdin = child.stdin.take().expect("piped");
    let bytes = bytes.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().expect("it ends");
    writing.join().expect("no panic").expect("it reads all");
    assert!(output.status.success());
    Some(output.stdout)
}

const PACKERS: [(&str, &[&str], Compression); 4] = [
    ("gzip", &["-c"], Compression::Gzip),
    ("gzip", &["-1c"], Compression::Gzip),
    ("zstd", &["-c"], Compression::Zstd),
    ("zstd", &["-19c", "--no-check"], Compression::Zstd),
];

#[test]
fn what_gzip_and_zstd_pack_is_read_as_before() {
    let plain = transfer();
    let (expected, _) = of(&plain).expect("valid");
    let halves = plain.split_at(plain.len() / 3);
    for (program, words, compression) in PACKERS {
        let Some(whole) = packed(program, words, &plain) else { return };
        let parts = [halves.0, halves.1].map(|part| packed(program, words, part).expect("it ran before"));
        let mut members = parts.concat();
        if compression == Compression::Zstd {
            // A skippable frame, as pzstd writes.
            members.splice(parts[0].len()..parts[0].len(), [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        }
        for bytes in [whole, members] {
            let (found, notes) = of(&bytes).expect("valid");
            assert!(found == expected, "{program} {words:?}");
            assert_eq!(notes.files[0].compression, Some(compression));
            assert_eq!(notes.files[0].bytes, plain.len() as u64);
            assert!(notes.files[0].truncated.is_none());
        }
    }
}

#[test]
fn a_compressed_file_that_breaks_off_keeps_what_is_whole() {
    let plain = transfer();
    for (program, words, _) in PACKERS {
        let Some(whole) = packed(program, words, &plain) else { return };
        let e = of(&whole[..8]).expect_err("not a byte of the capture");
        assert_eq!(e.kind, CaptureErrorKind::NotACapture, "{e}");
        for cut in [1, 9, whole.len() / 2] {
            let (found, notes) =
                of(&whole[..whole.len() - cut]).unwrap_or_else(|e| panic!("{program} {cut}: {e}"));
            let truncated = notes.files[0].truncated.as_ref().expect("it breaks off");
            assert_eq!(truncated.packet, found.len() as u64 + 1);
            // zstd outputs only whole blocks, of 128 KiB unpacked.
            let least = match program {
                "gzip" => 3000 * (whole.len() - cut) / whole.len() - 100,
                _ if cut < 10 => ((plain.len() - 1) >> 17 << 17) / (plain.len() / 3000) - 1,
                _ => 0,
            };
            assert!(found.len() >= least, "{program}: {} packets of {least}", found.len());
        }
    }
}

#[test]
fn damaged_compression_is_an_error_that_says_so() {
    let plain = transfer();
    for (program, words, compression) in PACKERS {
        let Some(whole) = packed(program, words, &plain) else { return };
        let mut seen = 0;
        for at in (20..whole.len()).step_by(whole.len() / 50) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            // Damage may also truncate the data; where there is a checksum, it must not go
            // unnoticed.
            match of(&bytes) {
                Err(e) => {
                    let text = e.to_string();
                    assert!(text.starts_with("x.pcap: byte "), "{text}");
                    seen += u32::from(
                        text.contains(" unpacked") && text.contains(&format!("damaged {compression} data")),
                    );
                }
                Ok((_, notes)) => {
                    assert!(notes.files[0].truncated.is_some() || words.contains(&"--no-check"))
                }
            }
        }
        assert!(seen > 5, "{program} {words:?}: {seen}");
    }
}

/// Endless zeros, compressed by a program while they are read.
fn bomb(program: &str, words: &[&str], bytes: u64) -> Option<Vec<u8>> {
    let head = pcap(link::ETHERNET, PcapStyle::default(), &[]);
    let zeros = io::repeat(0).take(bytes);
    let mut unpacked = head;
    zeros.chain(io::empty()).read_to_end(&mut unpacked).expect("memory");
    packed(program, words, &unpacked)
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|l| l.starts_with("VmHWM")).expect("it is there");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

/// Runs in a separate process, because the peak memory of the process is measured.
#[test]
fn a_bomb_takes_time_but_no_memory() {
    let Ok(path) = std::env::var("ACKWISE_BOMB") else {
        let folder = Folder::new("bomb");
        for (program, words) in [("gzip", &["-9c"][..]), ("zstd", &["-c", "--long=23"])] {
            let Some(bytes) = bomb(program, words, 160 << 20) else { return };
            assert!(bytes.len() < 400_000);
            let path = folder.file("bomb", &bytes);
            let name = "a_bomb_takes_time_but_no_memory";
            let mut again = Command::new(std::env::current_exe().expect("this test"));
            let done = again.args(["--exact", name, "--nocapture"]).env("ACKWISE_BOMB", &path).output();
            let done = done.expect("it runs");
            assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
        }
        return;
    };
    // Records without data, at 0 s: 16 bytes each.
    let (_, notes) = {
        let mut count = 0u64;
        let notes = packets([Source::file(path)], &ReadOptions::default(), |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        (count, notes.expect("valid"))
    };
    assert_eq!(notes.packets, (160 << 20) / 16);
    assert!(resident_kb() < 30_000, "{} kB", resident_kb());
}

/// A block of a zstd frame that is not its last one (RFC 8878, 3.1.1.2).
fn block(kind: u32, size: u32, body: &[u8]) -> Vec<u8> {
    [&(kind << 1 | size << 3).to_le_bytes()[..3], body].concat()
}

/// A frame with this window descriptor (RFC 8878, 3.1.1.1.2): the head of a capture, and then `blocks`.
fn frame(window: u8, blocks: &[u8]) -> Vec<u8> {
    let head = pcap(link::ETHERNET, PcapStyle::default(), &[]);
    let head = block(0, head.len() as u32, &head);
    [&[0x28, 0xb5, 0x2f, 0xfd, 0, window][..], &head, blocks].concat()
}

#[test]
fn a_frame_with_a_large_window_is_refused_with_a_remedy() {
    let run = block(1, 1 << 17, &[0]);
    // 8 MiB; 9 MiB; almost 4 TiB.
    for (window, taken) in [(0x68, true), (0x69, false), (0xff, false)] {
        match of(&frame(window, &run.repeat(100))) {
            Ok((_, notes)) => {
                assert!(taken);
                assert_eq!(notes.packets, (100 << 17) / 16);
            }
            Err(e) => {
                assert!(!taken, "{e}");
                assert_eq!(e.kind, CaptureErrorKind::Unsupported);
                assert_eq!(
                    e.to_string(),
                    "x.pcap: byte 0 unpacked: needs a window of more than 8 MiB; \
                     unpack it first: zstd -d --long=31 x.pcap"
                );
            }
        }
    }
}

#[test]
fn a_block_unpacks_to_what_a_block_may_hold() {
    // Literals: none. Sequences: one code for all lengths and offsets, a match of 65 539 bytes each.
    let sequences = 20_000_u16;
    let [low, high] = sequences.to_le_bytes();
    let mut body = vec![0, high | 0x80, low, 0x54, 0, 0, 52];
    body.extend(vec![0; 2 * usize::from(sequences)]);
    body.push(1);
    let e = of(&frame(0x58, &block(2, body.len() as u32, &body))).expect_err("1.3 GB in one block");
    assert_eq!(e.kind, CaptureErrorKind::Corrupt);
    assert!(e.to_string().contains("damaged zstd data"), "{e}");
}

#[test]
fn other_compressions_are_named_with_the_tool_that_unpacks_them() {
    for (head, tool) in [
        (&b"\xfd7zXZ\0\0\0"[..], "unxz x.pcap"),
        (b"BZh91AY", "bunzip2 x.pcap"),
        (b"\x04\x22\x4d\x18\x64\x40", "unlz4 x.pcap"),
        (b"PK\x03\x04\x14\0\0\0", "unzip x.pcap"),
    ] {
        let e = of(head).expect_err("not unpacked");
        assert_eq!(e.kind, CaptureErrorKind::Compressed);
        assert!(e.to_string().contains(tool), "{e}");
    }
    // Data compressed twice.
    let Some(twice) = packed("gzip", &["-c"], &transfer()).and_then(|once| packed("gzip", &["-c"], &once))
    else {
        return;
    };
    let e = of(&twice).expect_err("unpacked once");
    assert!(e.to_string().contains("gunzip"), "{e}");
}

#[test]
fn a_connection_goes_on_over_files_and_an_empty_newest_file_does_no_harm() {
    let folder = Folder::new("set");
    let connection = short_connection(v4());
    let parts = [&connection[..3], &connection[3..6], &connection[6..]];
    let mut sources: Vec<_> = parts
        .iter()
        .enumerate()
        .map(|(i, part)| {
            Source::file(folder.file(&format!("x.pcap{i}"), &pcap(link::RAW, PcapStyle::default(), part)))
        })
        .collect();
    sources.reverse();
    sources.insert(1, Source::file(folder.file("x.pcap3", b"")));
    let mut seen = Vec::new();
    let notes = packets(sources, &ReadOptions::default(), |p| {
        seen.push((p.file, p.number, p.time_ns));
        ControlFlow::Continue(())
    });
    let notes = notes.expect("readable");
    let files = [0, 0, 0, 1, 1, 1, 2, 2];
    let numbers = [1, 2, 3, 1, 2, 3, 1, 2];
    let times = connection.iter().map(|(t, _)| START_NS + t);
    assert!(seen.into_iter().eq(files.into_iter().zip(numbers).zip(times).map(|((f, n), t)| (f, n, t))));
    assert_eq!(notes.files.len(), 4);
    assert_eq!((notes.files[3].format, notes.files[3].packets), (None, 0));
    assert!(notes.files[3].name.ends_with("x.pcap3"));
    let alone = packets([Source::file(folder.path("x.pcap3"))], &ReadOptions::default(), |_| {
        ControlFlow::Continue(())
    });
    assert_eq!(alone.expect_err("nothing at all").kind, CaptureErrorKind::Empty);
}

#[test]
fn drops_of_a_ring_are_counted_once() {
    let file = |start_ns, dropped| {
        let mut w = PcapngWriter::new(false);
        let eth0 = w.interface_with(link::RAW, 9, 0, &[(2, b"eth0")]);
        w.statistics(eth0, start_ns, 100, dropped);
        w.into_bytes()
    };
    // dumpcap's counters continue from file to file; those of another capture are added.
    let files = [file(START_NS, 3), file(START_NS, 7), file(START_NS, 5), file(START_NS + 1, 20)];
    let sources = files.iter().map(|bytes| Source::reader(&bytes[..], "x"));
    let notes = packets(sources, &ReadOptions::default(), |_| ControlFlow::Continue(()));
    assert_eq!(notes.expect("valid").dropped_packets(), Some(27));
}

#[test]
fn files_and_streams_merge() {
    let folder = Folder::new("streams");
    let connection = short_connection(v4());
    let (even, odd): (Vec<_>, Vec<_>) = connection.iter().cloned().enumerate().partition(|(i, _)| i % 2 == 0);
    let of = |part: Vec<(usize, (u64, TcpPacket))>| {
        pcap(link::RAW, PcapStyle::default(), &part.into_iter().map(|p| p.1).collect::<Vec<_>>())
    };
    let (even, odd) = (of(even), of(odd));
    let sources = [Source::reader(&odd[..], "stdin"), Source::file(folder.file("even.pcap", &even))];
    let mut times = Vec::new();
    let notes = packets(sources, &ReadOptions::default(), |p| {
        times.push(p.time_ns - START_NS);
        ControlFlow::Continue(())
    });
    assert!(times.into_iter().eq(connection.iter().map(|c| c.0)));
    assert_eq!(notes.expect("valid").files[1].name, "stdin");
}

#[test]
fn a_limit_holds_for_all_files_together() {
    let connection = short_connection(v4());
    let bytes = [&connection[..4], &connection[4..]].map(|p| pcap(link::RAW, PcapStyle::default(), p));
    for (limit, expected) in [(3, 3), (4, 4), (6, 6), (8, 8), (9, 8)] {
        let options = ReadOptions { max_packets: Some(limit), ..ReadOptions::default() };
        let sources = bytes.each_ref().map(|b| Source::reader(&b[..], "x"));
        let mut seen = 0;
        let notes = packets(sources, &options, |_| {
            seen += 1;
            ControlFlow::Continue(())
        });
        let notes = notes.expect("valid");
        assert_eq!((seen, notes.packets, notes.stopped_at_limit), (expected, expected, limit <= 8));
    }
}

/// Endless packets without data.
fn endless() -> impl Read {
    io::Cursor::new(pcap(link::RAW, PcapStyle::default(), &[])).chain(io::repeat(0))
}

#[test]
fn the_watch_sees_how_far_it_is_and_can_stop_it() {
    let calls = AtomicU64::new(0);
    let watch = |progress: Progress| {
        assert_eq!(progress.bytes_total, None);
        match calls.fetch_add(1, Ordering::Relaxed) {
            0..=9 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    };
    let options = ReadOptions { watch: Some(&watch), ..ReadOptions::default() };
    let e = packets([Source::reader(endless(), "endless")], &options, |_| ControlFlow::Continue(()));
    assert_eq!(e.expect_err("stopped").kind, CaptureErrorKind::Stopped);
    assert_eq!(calls.load(Ordering::Relaxed), 11);

    let folder = Folder::new("watch");
    let plain = transfer();
    let paths = [folder.file("a.pcap", &plain), folder.file("b.pcap", &plain)];
    let (last, total) = (AtomicU64::new(0), 2 * plain.len() as u64);
    let watch = |progress: Progress| {
        assert_eq!(progress.bytes_total, Some(total));
        last.fetch_max(progress.bytes_read, Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let options = ReadOptions { watch: Some(&watch), ..ReadOptions::default() };
    let done = packets(paths.iter().map(Source::file), &options, |_| ControlFlow::Continue(()));
    assert_eq!(done.expect("valid").packets, 6000);
    assert_eq!(last.load(Ordering::Relaxed), total, "all was read, and is asked about once more at the end");
}

#[test]
fn a_signal_while_a_pipe_is_silent_reaches_the_watch() {
    struct Silent(u32);
    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            assert!(self.0 < 10, "it was asked to stop");
            Err(io::ErrorKind::Interrupted.into())
        }
    }
    let stop = |_: Progress| ControlFlow::Break(());
    let options = ReadOptions { watch: Some(&stop), ..ReadOptions::default() };
    let e = packets([Source::reader(Silent(0), "stdin")], &options, |_| ControlFlow::Continue(()));
    assert_eq!(e.expect_err("stopped").kind, CaptureErrorKind::Stopped);
}
