// SPDX-License-Identifier: MIT
//! Checks that the Rust mirror of the C structs agrees with the C compiler's layout of the headers.
//!
//! At test time, a C program that includes the headers prints sizes, offsets and constants. The
//! library itself contains nothing for this.

use super::*;
use crate::entry::{RawParam, RawValue, PARAMS_MAX};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::{align_of, offset_of, size_of};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

const PROGRAM: &str = r#"
#include <ackwise/ackwise.h>
#include <stdio.h>
#define NUMBER(x) printf("%s %llu\n", #x, (unsigned long long)(x))
#define SIZE(type) printf("%s %zu\n%s align %zu\n", #type, sizeof(struct type), #type, _Alignof(struct type))
#define FIELD(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(struct type, field))
int main(void)
{
"#;

/// Output of a C program that runs these statements, as "name number" lines.
fn ask_c(statements: &str) -> BTreeMap<String, u64> {
    // Tests run in parallel: each program has its own folder.
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let place = format!("ackwise-layout-{}-{}", std::process::id(), ASKED.fetch_add(1, Ordering::Relaxed));
    let dir = std::env::temp_dir().join(place);
    std::fs::create_dir_all(&dir).expect("a folder for the program");
    let source = dir.join("layout.c");
    let program = dir.join("layout");
    std::fs::write(&source, format!("{PROGRAM}{statements}\treturn 0;\n}}\n")).expect("written");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/include");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let made = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .args([include.as_os_str(), source.as_os_str(), "-o".as_ref(), program.as_os_str()])
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let said = Command::new(&program).output().expect("the program runs");
    std::fs::remove_dir_all(&dir).expect("removed");
    String::from_utf8(said.stdout)
        .expect("text")
        .lines()
        .map(|line| {
            let (name, number) = line.rsplit_once(' ').expect("name and number");
            (name.to_string(), number.parse().expect("a number"))
        })
        .collect()
}

/// Compares (C name, Rust's number) pairs with C's output; each side must have all names of the
/// other.
fn compare(statements: &str, rust: &[(String, usize)]) {
    let c = ask_c(statements);
    let rust: BTreeMap<String, u64> = rust.iter().map(|(n, v)| (n.clone(), *v as u64)).collect();
    assert_eq!(c, rust);
}

macro_rules! mirror {
    ($c:literal = $rust:ty { $($c_field:literal = $field:ident),* $(,)? }) => {{
        let statements = [
            format!("\tSIZE({});\n", $c),
            $(format!("\tFIELD({}, {});\n", $c, $c_field)),*
        ];
        let rust = [
            ($c.to_string(), size_of::<$rust>()),
            (format!("{} align", $c), align_of::<$rust>()),
            $((format!("{}.{}", $c, $c_field), offset_of!($rust, $field))),*
        ];
        compare(&statements.concat(), &rust);
    }};
}

#[test]
fn an_event_looks_the_same_from_both_sides() {
    mirror!("aw_event" = Event {
        "now_ns" = now_ns, "random" = random, "bytes" = bytes, "unacked_bytes" = unacked_bytes,
        "unread_bytes" = unread_bytes, "wnd_bytes" = wnd_bytes, "wnd_next_bytes" = wnd_next_bytes,
        "wnd_max_bytes" = wnd_max_bytes, "rcv_mss_bytes" = rcv_mss_bytes,
        "mss_max_bytes" = mss_max_bytes, "rtt_us" = rtt_us, "rto_us" = rto_us,
        "delay_max_us" = delay_max_us, "segments" = segments, "flags" = flags, "kind" = kind,
        "seq" = seq, "sack_delay_us" = sack_delay_us,
    });
}

#[test]
fn a_verdict_and_a_connection_look_the_same_from_both_sides() {
    mirror!("aw_verdict" = RawVerdict {
        "deadline_ns" = deadline_ns, "action" = action, "reason" = reason, "by_duty" = by_duty,
        "reserved" = reserved, "reserved_word" = reserved_word,
    });
    mirror!("aw_conn" = RawConn {
        "host" = host, "policy" = policy, "host_params" = host_params, "params" = params,
        "owed_since_ns" = owed_since_ns, "due_ns" = due_ns, "pending" = pending, "order" = order,
        "account" = account, "flight" = flight, "compress" = compress,
        "unacked_bytes" = unacked_bytes, "news" = news, "unbounded" = unbounded,
        "questions" = questions, "host_state" = host_state, "state" = state,
    });
    mirror!("aw_order" = RawOrder { "bytes" = bytes, "delay_ns" = delay_ns });
    mirror!("aw_account" = RawAccount {
        "last_ns" = last_ns, "bytes" = bytes, "asked_bytes" = asked_bytes, "segments" = others,
    });
    mirror!("aw_compress" = RawCompress {
        "duplicate_acks" = duplicate_acks, "waiting" = waiting,
    });
}

#[test]
fn hosts_policies_and_their_parameters_look_the_same_from_both_sides() {
    mirror!("aw_param" = RawParam {
        "name" = name, "unit" = unit, "text" = text, "min" = min, "max" = max, "initial" = initial,
    });
    mirror!("aw_value" = RawValue { "name" = name, "unit" = unit, "text" = text });
    mirror!("aw_params" = RawParams { "value" = value });
    mirror!("aw_policy" = RawPolicy {
        "name" = name, "summary" = summary, "source" = source, "params" = params,
        "values" = values, "params_count" = params_count, "values_count" = values_count,
        "state_bytes" = state_bytes, "uses_random" = uses_random, "asked_on_read" = asked_on_read,
        "reads_arrivals" = reads_arrivals, "init" = init, "order" = order, "observe" = observe,
    });
    assert_eq!(offset_of!(RawPolicy, observe) + size_of::<*const c_void>(), size_of::<RawPolicy>());
    mirror!("aw_host" = RawHost {
        "name" = name, "summary" = summary, "source" = source, "params" = params,
        "params_count" = params_count, "wnd_use" = wnd_use, "uses_random" = uses_random,
        "unbounded" = unbounded, "no_duties" = no_duties, "init" = init, "delay" = delay, "on_data" = on_data,
        "on_deadline" = on_deadline, "on_app_read" = on_app_read, "on_ack_sent" = on_ack_sent,
    });
    assert_eq!(offset_of!(RawHost, on_ack_sent) + size_of::<*const c_void>(), size_of::<RawHost>());
}

/// Statements that print `NAME NUMBER` for each pair.
fn numbers(pairs: &[(&str, usize)]) {
    let statements: String = pairs.iter().map(|(n, _)| format!("\tNUMBER({n});\n")).collect();
    let rust: Vec<_> = pairs.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    compare(&statements, &rust);
}

#[test]
fn constants_have_the_same_values_on_both_sides() {
    numbers(&[
        ("AW_EVENT_DATA", EventKind::Data as usize),
        ("AW_EVENT_ACK_SENT", EventKind::AckSent as usize),
        ("AW_EVENT_DEADLINE", EventKind::Deadline as usize),
        ("AW_EVENT_APP_READ", EventKind::AppRead as usize),
        ("AW_EVENT_KINDS", 4),
        ("AW_SEQ_IN", Seq::In as usize),
        ("AW_SEQ_HOLE", Seq::Hole as usize),
        ("AW_SEQ_FILLS", Seq::Fills as usize),
        ("AW_SEQ_DUPLICATE", Seq::Duplicate as usize),
        ("AW_SEQS", 4),
        ("AW_FLAG_PSH", flag::PSH.into()),
        ("AW_FLAG_FIN", flag::FIN.into()),
        ("AW_FLAG_CE_CHANGE", flag::CE_CHANGE.into()),
        ("AW_FLAG_QUICKACK", flag::QUICKACK.into()),
        ("AW_FLAG_WND_GREW", flag::WND_GREW.into()),
        ("AW_FLAG_PIGGYBACK", flag::PIGGYBACK.into()),
        ("AW_FLAG_HOLE_OPEN", flag::HOLE_OPEN.into()),
        ("AW_FLAG_READER_WAITS", flag::READER_WAITS.into()),
        ("AW_FLAG_DELACK", flag::DELACK.into()),
        ("AW_STATE_MAX_BYTES", STATE_MAX_BYTES),
        ("AW_HOST_STATE_MAX_BYTES", HOST_STATE_MAX_BYTES),
        ("AW_PARAMS_MAX", PARAMS_MAX),
        ("AW_VALUES_MAX", VALUES_MAX),
        ("AW_NEVER_NS", NEVER_NS as usize),
        ("AW_DELAY_MIN_NS", DELAY_MIN_NS as usize),
        ("AW_DELAY_MAX_NS", DELAY_MAX_NS as usize),
        ("AW_WND_USE_NEVER", WND_USE_NEVER.into()),
        ("AW_WND_USE_ALWAYS", WND_USE_ALWAYS.into()),
        ("AW_WAIT", WAIT.into()),
        ("AW_ACTIONS", 3),
        ("AW_REASONS", Reason::all().count()),
    ]);
}

#[test]
fn no_constant_of_the_binding_is_left_out() {
    let lines = include_str!("lib.rs").lines().map(str::trim_start);
    let declared = lines.filter_map(|line| line.strip_prefix("pub ").unwrap_or(line).strip_prefix("const "));
    let names: Vec<&str> = declared.filter_map(|rest| rest.split_once(": ").map(|(name, _)| name)).collect();
    assert!(names.len() > 15);
    for name in names {
        let compared = |prefix: &str| include_str!("layout.rs").contains(&format!("(\"{prefix}{name}\", "));
        assert!(compared("AW_") || compared("AW_FLAG_"), "{name} is not compared with the header");
    }
}

#[test]
fn each_number_of_an_action_means_the_same_on_both_sides() {
    let c = ask_c("\tNUMBER(AW_NOTHING);\n\tNUMBER(AW_WAIT);\n\tNUMBER(AW_SEND_NOW);\n");
    for (name, expected) in
        [("AW_NOTHING", Action::Nothing), ("AW_WAIT", Action::WaitUntil(7)), ("AW_SEND_NOW", Action::SendNow)]
    {
        let raw = RawVerdict {
            deadline_ns: 7,
            action: c[name] as u8,
            reason: 0,
            by_duty: 0,
            reserved: 0,
            reserved_word: 0,
        };
        assert_eq!(Verdict::from(raw).action, expected, "{name}");
    }
}
