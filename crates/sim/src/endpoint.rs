// SPDX-License-Identifier: MIT
//! Identifiers of the parties of a flow: an end's role, and the host it is on.

use crate::receiver::Receiver;
use crate::sender::Sender;
use std::ops::{Index, IndexMut};

/// The role of an end in its flow. Both ends have a sender and a receiver half: the data receiver
/// sends requests, and whoever receives data acknowledges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    DataSender,
    DataReceiver,
}

impl Role {
    pub fn other(self) -> Role {
        match self {
            Role::DataSender => Role::DataReceiver,
            Role::DataReceiver => Role::DataSender,
        }
    }
}

/// One end of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointId {
    pub flow: u32,
    pub role: Role,
}

/// A value for each of the two roles.
pub struct PerRole<T> {
    pub data_sender: T,
    pub data_receiver: T,
}

impl<T> Index<Role> for PerRole<T> {
    type Output = T;

    #[inline]
    fn index(&self, role: Role) -> &T {
        match role {
            Role::DataSender => &self.data_sender,
            Role::DataReceiver => &self.data_receiver,
        }
    }
}

impl<T> IndexMut<Role> for PerRole<T> {
    #[inline]
    fn index_mut(&mut self, role: Role) -> &mut T {
        match role {
            Role::DataSender => &mut self.data_sender,
            Role::DataReceiver => &mut self.data_receiver,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

pub struct Endpoint {
    pub tx: Sender,
    pub rx: Receiver,
    pub side: Side,
    /// The wake-up in the event heap; any others are stale.
    pub scheduled_ns: u64,
    /// Whether its application requested a turn on the processor.
    pub awaits_turn: bool,
}
