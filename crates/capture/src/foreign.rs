// SPDX-License-Identifier: MIT
//! Inputs that are neither pcap nor pcapng: their names, and the command that converts them.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::input::{shown, Input};

/// Capture formats that Wireshark's editcap converts, by their first bytes.
const CONVERTED: [(&[u8], &str); 17] = [
    (b"snoop\0\0\0", "snoop"),
    (b"RTSS", "Network Monitor 1"),
    (b"GMBU", "Network Monitor 2"),
    (b"XCP\0", "NetXray and Sniffer for Windows"),
    (b"TRSNIFF data    \x1a", "Sniffer for DOS"),
    (b"ObserverPktBuffe", "Network Instruments Observer"),
    (b"\x05VNF", "Visual Networks"),
    (b"\x54\x52\x00\x64\x00", "HP-UX nettl"),
    (b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x07\xd0\x00", "HP-UX nettl"),
    (b"iptrace 1.0", "AIX iptrace"),
    (b"iptrace 2.0", "AIX iptrace"),
    (b"\x7fver", "Savvius *Peek"),
    (b"\xaa\xaa\xaa\xaa", "Accellent 5Views"),
    (b"\x00\x00\x02\x00\x12\x05\x00\x10", "Tektronix K12"),
    (b"+---------+---------------+----------+", "Tektronix K12 as text"),
    (b"\x01\x10\x4c\x00\x01\x05", "LANalyzer"),
    (b"EyeSDN", "EyeSDN"),
];

/// Compressed formats, each with the program that unpacks it.
const PACKED: [(&[u8], &str, &str); 6] = [
    // Compressed twice, or by another method.
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"\xfd7zXZ\0", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\x04\x22\x4d\x18", "lz4", "unlz4"),
    (b"PK\x03\x04", "zip", "unzip"),
];

const ERF_RECORDS: usize = 3;

/// The error for an input that starts like no supported capture.
pub(crate) fn refused(input: &mut Input<'_>) -> CaptureError {
    let have = match input.fill(ERF_RECORDS * (1 << 16)) {
        Ok(have) => have,
        Err(e) => return e,
    };
    let head = input.peek(have);
    let expected = "pcap or pcapng";
    let name = shown(&input.name);
    if let Some((_, format, tool)) = PACKED.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return input.error(
            CaptureErrorKind::Compressed,
            format!("a file compressed with {format}"),
            "pcap or pcapng, as it is or compressed with gzip or zstd",
            &format!("unpack it first: {tool} {name}"),
        );
    }
    let convert = |words: &str| format!("convert it: editcap -F pcapng{words} {name} converted.pcapng");
    let known = CONVERTED.iter().find(|(magic, _)| head.starts_with(magic));
    // Without a link type, editcap keeps the ERF headers around each packet.
    let erf = is_erf(head).then_some(("Endace ERF", " -T ether"));
    match known.map(|(_, format)| (*format, "")).or(erf) {
        Some((format, words)) => input.error(
            CaptureErrorKind::OtherFormat,
            format!("a capture in the format of {format}"),
            expected,
            &convert(words),
        ),
        None => input.error(
            CaptureErrorKind::NotACapture,
            format!("a file that starts with {:02x?}", &head[..4]),
            expected,
            &format!("capture with tcpdump -w, or, if it is a capture, {}", convert("")),
        ),
    }
}

/// ERF has no magic number: its first records must follow one another, within a week of each other,
/// up to the end of a file that has fewer.
fn is_erf(head: &[u8]) -> bool {
    let (mut at, mut earlier_s) = (0, None);
    for _ in 0..ERF_RECORDS {
        let Some(record) = head.get(at..).and_then(<[u8]>::first_chunk::<16>) else {
            return earlier_s.is_some() && at == head.len();
        };
        let two = |at: usize| u16::from_be_bytes([record[at], record[at + 1]]);
        let time_s = u32::from_le_bytes([record[4], record[5], record[6], record[7]]);
        let (kind, record_len, wire_len) = (record[8] & 0x7f, two(10), two(14));
        let is_near = earlier_s.map_or(true, |earlier_s: u32| time_s.abs_diff(earlier_s) < 7 * 86_400);
        let since_2000 = time_s > 946_684_800;
        if !((1..=48).contains(&kind) && record_len >= 16 && wire_len > 0 && since_2000 && is_near) {
            return false;
        }
        earlier_s = Some(time_s);
        at += usize::from(record_len);
    }
    true
}
