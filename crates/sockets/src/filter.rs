// SPDX-License-Identifier: MIT
//! Evaluates `inet_diag`'s filter bytecode, for socket lists that come from another source.

use crate::message::{u16_at, Endpoint, AF_INET, AF_INET6};
use std::net::{IpAddr, SocketAddr};

// linux/inet_diag.h
const JMP: u8 = 1;
const S_GE: u8 = 2;
const S_LE: u8 = 3;
const D_GE: u8 = 4;
const D_LE: u8 = 5;
const S_COND: u8 = 7;
const D_COND: u8 = 8;
const OP: usize = 4;
const HOST: usize = 8; // family, prefix length, port; the address follows

/// Operations, each with the offsets of the next one if it holds and if it does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter(Vec<u8>);

impl Filter {
    pub fn new(bytecode: Vec<u8>) -> Self {
        Filter(bytecode)
    }

    /// Whether the filter selects a socket, as in the kernel's inet_diag_bc_run(): execution must
    /// reach exactly the end. Bytecode that the kernel would refuse selects nothing.
    pub fn has(&self, ends: &Endpoint) -> bool {
        let mut rest = &self.0[..];
        while !rest.is_empty() {
            let distance = match self.step(rest, ends) {
                Some(distance) if distance >= OP => distance,
                _ => return false,
            };
            match rest.get(distance..) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        true
    }

    fn step(&self, code: &[u8], ends: &Endpoint) -> Option<usize> {
        let (&kind, &yes) = (code.first()?, code.get(1)?);
        let no = u16_at(code, 2)?;
        // the port of a comparison takes the place of its second operation's offset
        let port = || u16_at(code, OP + 2);
        let holds = match kind {
            JMP => false,
            S_GE => ends.local.port() >= port()?,
            S_LE => ends.local.port() <= port()?,
            D_GE => ends.peer.port() >= port()?,
            D_LE => ends.peer.port() <= port()?,
            S_COND => is_host(&ends.local, code.get(OP..)?)?,
            D_COND => is_host(&ends.peer, code.get(OP..)?)?,
            _ => return None,
        };
        Some(usize::from(if holds { u16::from(yes) } else { no }))
    }
}

fn is_host(end: &SocketAddr, host: &[u8]) -> Option<bool> {
    let (family, bits) = (*host.first()?, usize::from(*host.get(1)?));
    let port = i32::from_ne_bytes(host.get(4..HOST)?.try_into().ok()?);
    if port != -1 && port != i32::from(end.port()) {
        return Some(false);
    }
    let wanted = host.get(HOST..)?;
    match (family, end.ip()) {
        (0, _) => Some(true),
        (AF_INET, IpAddr::V4(ip)) => starts_with(&ip.octets(), wanted, bits),
        (AF_INET, IpAddr::V6(ip)) => match ip.to_ipv4_mapped() {
            Some(mapped) => starts_with(&mapped.octets(), wanted, bits),
            None => Some(false),
        },
        (AF_INET6, IpAddr::V6(ip)) => starts_with(&ip.octets(), wanted, bits),
        _ => Some(false),
    }
}

/// Whether the first `bits` bits are equal.
fn starts_with(address: &[u8], prefix: &[u8], bits: usize) -> Option<bool> {
    let (whole, left) = (bits / 8, bits % 8);
    if address.get(..whole)? != prefix.get(..whole)? {
        return Some(false);
    }
    if left == 0 {
        return Some(true);
    }
    Some((address.get(whole)? ^ prefix.get(whole)?) >> (8 - left) == 0)
}
