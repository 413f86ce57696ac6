// SPDX-License-Identifier: MIT
//! The C core, for linked artifacts: the extension module, tests and examples. They reference this
//! crate with `use ackwise_link as _;`, and no library does. After a change of a policy, cargo
//! therefore compiles that C file and links again, and compiles no library that is written in Rust.
#![no_std]
