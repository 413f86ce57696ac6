// SPDX-License-Identifier: MIT
//! Limits of this host's TCP sockets, from the kernel's own accounting.
//!
//! ```text
//! datagram of the kernel      message.rs   netlink messages, inet_diag, attributes
//!        |                    tcp_info.rs  the kernel's counters by name; older kernels have fewer
//!        v                    filter.rs    addresses and ports that were asked for
//! table of sockets            table.rs     by cookie, each with its last look
//!        |
//!        v
//! interval between two looks  limit.rs     which limit each part of it belongs to
//! ```
//!
//! The caller communicates with the kernel: this crate only parses bytes.
#![forbid(unsafe_code)]

mod filter;
mod limit;
mod message;
mod table;
mod tcp_info;

pub use filter::Filter;
pub use limit::{Limit, Shares};
pub use message::Damaged;
pub use table::{Answer, Chosen, Row, Table, Totals};
pub use tcp_info::TcpInfo;
