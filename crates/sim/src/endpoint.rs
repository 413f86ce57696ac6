// SPDX-License-Identifier: MIT
//! Names for the parties of a flow: which end plays which part, and which host it is on.

use crate::receiver::Receiver;
use crate::sender::Sender;
use std::ops::{Index, IndexMut};

/// The part an end plays in its flow. Both ends have a sender and a receiver half: the data
/// receiver sends requests, and whoever gets data acknowledges it.
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

/// One of each for both roles.
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
    /// The wake-up that is in the event heap; others are stale.
    pub scheduled_ns: u64,
    /// Its application asked the processor for a turn.
    pub awaits_turn: bool,
}
