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

/// One end of one flow, in one word: events carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointId(u32);

impl EndpointId {
    #[inline]
    pub fn new(flow: u32, role: Role) -> Self {
        EndpointId(flow << 1 | role as u32)
    }

    #[inline]
    pub fn flow(self) -> usize {
        (self.0 >> 1) as usize
    }

    #[inline]
    pub fn role(self) -> Role {
        if self.0 & 1 == Role::DataReceiver as u32 {
            Role::DataReceiver
        } else {
            Role::DataSender
        }
    }

    pub fn to_bits(self) -> u32 {
        self.0
    }

    pub fn from_bits(bits: u32) -> Self {
        EndpointId(bits)
    }
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
