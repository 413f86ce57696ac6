// SPDX-License-Identifier: MIT
//! Connections over several threads: one reads, decodes and diagnoses a part of them, the others
//! diagnose the rest. A connection stays where its first packet was put, and nothing in it depends
//! on where that is.

use crate::key::Key;
use crate::report::Connection;
use crate::table::{Arrival, Table};
use ackwise_capture::Packet;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;

/// Packets handed over together: within a second-level cache.
const BATCH: usize = 512;
/// Batches that a thread may lag behind.
const BATCHES: usize = 8;
/// Connections are placed by this many of their hash's values.
const SLOTS: usize = 4096;
/// Cost of reading a packet, in hundredths of that of diagnosing it.
const READING: u64 = 60;
const DIAGNOSING: u64 = 100;

/// As [`Arrival`], with its own packet.
struct Handed {
    packet: Packet,
    key: Key,
    now_ns: u64,
    ordinal: u64,
}

struct Worker {
    batch: Vec<Handed>,
    batches: SyncSender<Vec<Handed>>,
    /// Batches that are done with: their memory is used again.
    used: Receiver<Vec<Handed>>,
    /// Packets so far.
    packets: u64,
}

/// The reading thread's side.
pub(crate) struct Shards {
    own: Table,
    over: Vec<Connection>,
    own_packets: u64,
    packets: u64,
    workers: Vec<Worker>,
    /// Worker of each slot, once it has one; beyond the workers: the reading thread itself.
    places: Vec<Option<usize>>,
    hash: RandomState,
}

impl Shards {
    /// Reads by `read`, with this many threads beside its own; returns the connections in any order.
    pub fn run<T, E>(
        threads: usize,
        read: impl FnOnce(&mut Shards) -> Result<T, E>,
    ) -> Result<(T, Vec<Connection>), E> {
        thread::scope(|scope| {
            let mut joins = Vec::with_capacity(threads);
            let mut workers = Vec::with_capacity(threads);
            for _ in 0..threads {
                let (batches, todo) = sync_channel(BATCHES);
                let (done, used) = sync_channel(BATCHES + 2);
                joins.push(scope.spawn(move || work(&todo, &done)));
                workers.push(Worker { batch: Vec::with_capacity(BATCH), batches, used, packets: 0 });
            }
            let mut shards = Shards {
                own: Table::default(),
                over: Vec::new(),
                own_packets: 0,
                packets: 0,
                workers,
                places: vec![None; SLOTS],
                hash: RandomState::new(),
            };
            let read = read(&mut shards)?;
            let mut connections = shards.finish();
            for join in joins {
                match join.join() {
                    Ok(over) => connections.extend(over),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok((read, connections))
        })
    }

    pub fn add(&mut self, arrival: Arrival<'_>) {
        self.packets += 1;
        let slot = self.hash.hash_one(arrival.key) as usize % SLOTS;
        let place = match self.places[slot] {
            Some(place) => place,
            None => {
                let place = self.idlest();
                self.places[slot] = Some(place);
                place
            }
        };
        match self.workers.get_mut(place) {
            Some(worker) => worker.hand(arrival),
            None => {
                self.own_packets += 1;
                self.own.add(&arrival, &mut |connection| self.over.push(connection), |_, _| {});
            }
        }
    }

    /// The thread with the least work so far.
    fn idlest(&self) -> usize {
        let own = self.packets * READING + self.own_packets * DIAGNOSING;
        let loads = self.workers.iter().map(|w| w.packets * DIAGNOSING).chain([own]);
        loads.enumerate().min_by_key(|&(_, load)| load).map_or(0, |(place, _)| place)
    }

    fn finish(self) -> Vec<Connection> {
        for worker in self.workers {
            // It is gone only if it panicked, which joining it will say.
            let _ = worker.batches.send(worker.batch);
        }
        let mut over = self.over;
        self.own.finish(&mut |connection| over.push(connection));
        over
    }
}

impl Worker {
    fn hand(&mut self, arrival: Arrival<'_>) {
        let Arrival { packet, key, now_ns, ordinal } = arrival;
        self.packets += 1;
        self.batch.push(Handed { packet: packet.clone(), key, now_ns, ordinal });
        if self.batch.len() == BATCH {
            let next = self.used.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
            let _ = self.batches.send(std::mem::replace(&mut self.batch, next));
        }
    }
}

fn work(todo: &Receiver<Vec<Handed>>, done: &SyncSender<Vec<Handed>>) -> Vec<Connection> {
    let mut table = Table::default();
    let mut over = Vec::new();
    while let Ok(mut batch) = todo.recv() {
        for handed in &batch {
            let Handed { packet, key, now_ns, ordinal } = handed;
            let arrival = Arrival { packet, key: *key, now_ns: *now_ns, ordinal: *ordinal };
            table.add(&arrival, &mut |connection| over.push(connection), |_, _| {});
        }
        batch.clear();
        let _ = done.try_send(batch);
    }
    table.finish(&mut |connection| over.push(connection));
    over
}
