// SPDX-License-Identifier: MIT
//! Connections on shelves, by the hash of their endpoints, followed a shelf at a time.
//!
//! A connection with its observers takes some kilobytes. Where thousands are open, they are out of the
//! processor's caches whenever a packet comes. So packets wait until there are many, sorted by shelf, and
//! are then followed connection by connection. It also is what threads share: whoever has time takes the
//! next shelf. A shelf is with one thread at a time, and nothing in it depends on which.

use crate::batch::{Batch, Headers, Segment};
use crate::flow::Flow;
use crate::key::Seeds;
use crate::observers::Observer;
use crate::report::{Connection, Ending};
use crate::table::{Arrival, Arrive, Follow, Name, Table};
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// So many that what waits for one of them fits into a second-level cache, and so few that what is written
/// for all of them does.
const SHELVES: usize = 256;
/// Packets of each open connection that wait together, on average.
const TOGETHER: usize = 64;
/// Of all: so few that they are still in a cache when they are followed, and so many that they take little
/// memory.
const TOGETHER_LEAST: usize = 1 << 12;
const TOGETHER_MOST: usize = 1 << 19;

// A connection takes kilobytes: boxes move in its place.
type Connections<O> = Vec<Box<Connection<<O as Observer>::Report>>>;

/// Reads by `read`, in this thread, and follows in as many as given; returns the connections in any order.
pub(crate) fn follow<O: Observer + Send, T, E>(
    threads: NonZeroUsize,
    read: impl FnOnce(&mut Shelves<'_, O>) -> Result<T, E>,
) -> Result<(T, Connections<O>), E>
where
    O::Report: Send,
{
    let hall = &Hall::default();
    let read = thread::scope(|scope| {
        for _ in 1..threads.get() {
            scope.spawn(|| hall.work());
        }
        let mut shelves = Shelves::new(hall, threads == NonZeroUsize::MIN);
        let read = read(&mut shelves)?;
        shelves.hand_over(true);
        hall.help(Range::next);
        Ok(read)
    })?;
    Ok((read, hall.connections()))
}

/// A thread that panicked leaves nothing that another one would use: the panic goes on in the thread that
/// reads.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Shelf<O: Observer> {
    waiting: Batch,
    /// None once it is over.
    table: Option<Table<Flows<O>>>,
    /// No packets come behind those that wait.
    is_last: bool,
    over: Connections<O>,
}

impl<O: Observer> Default for Shelf<O> {
    fn default() -> Self {
        let flows = Flows { over: Vec::new() };
        Shelf { waiting: Batch::default(), table: Some(Table::new(flows)), is_last: false, over: Vec::new() }
    }
}

impl<O: Observer> Shelf<O> {
    fn follow(&mut self) {
        if let Some(table) = &mut self.table {
            if let Some(first_ns) = self.waiting.first_ns() {
                table.hand_out(first_ns);
            }
            self.waiting.drain(|key, burst| table.add(key, burst));
        }
        if self.is_last {
            self.over.extend(self.table.take().into_iter().flat_map(|table| table.finish().over));
        }
    }
}

struct Flows<O: Observer> {
    over: Connections<O>,
}

impl<O: Observer> Follow for Flows<O> {
    /// Always there but while it is followed.
    type Case = Box<Option<Flow<O>>>;

    fn begin(&mut self, name: &Name, first: &Headers) -> Self::Case {
        Box::new(Some(Flow::new(name, first)))
    }

    /// Most connections are in no cache, and copying one brings it there at once; following it in its place
    /// would wait for each part of it.
    fn packets<'p>(&mut self, case: &mut Self::Case, segments: impl Iterator<Item = Segment<'p>>) {
        let mut held = case.take();
        if let Some(flow) = &mut held {
            segments.for_each(|segment| flow.add(&segment, |_| {}));
        }
        **case = held;
    }

    fn over(&mut self, case: Self::Case, ending: Ending) {
        self.over.extend(case.map(|flow| Box::new(flow.finish(ending))));
    }
}

/// All shelves, with the threads at work.
struct Hall<O: Observer> {
    shelves: Vec<Mutex<Shelf<O>>>,
    turn: Mutex<Turn>,
    came: Condvar,
}

/// Of the packets that were handed over last.
struct Turn {
    /// Shelves that nobody has taken. The thread that reads takes the first, others take the last, so that
    /// most connections stay in the caches of one processor.
    left: Range<usize>,
    /// Nobody reads any more.
    is_over: bool,
}

impl<O: Observer> Default for Hall<O> {
    fn default() -> Self {
        let turn = Mutex::new(Turn { left: 0..0, is_over: false });
        Hall { shelves: (0..SHELVES).map(|_| Mutex::default()).collect(), turn, came: Condvar::new() }
    }
}

impl<O: Observer> Hall<O> {
    /// Follows shelf after shelf, and waits for more, until there will be none.
    fn work(&self) {
        loop {
            self.help(Range::next_back);
            let mut turn = lock(&self.turn);
            while turn.left.is_empty() {
                if turn.is_over {
                    return;
                }
                turn = self.came.wait(turn).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Follows shelf after shelf, until each is taken.
    fn help(&self, take: fn(&mut Range<usize>) -> Option<usize>) {
        loop {
            let Some(shelf) = take(&mut lock(&self.turn).left) else { return };
            lock(&self.shelves[shelf]).follow();
        }
    }

    fn connections(&self) -> Connections<O> {
        self.shelves.iter().flat_map(|shelf| std::mem::take(&mut lock(shelf).over)).collect()
    }
}

/// The side of the thread that reads.
pub(crate) struct Shelves<'h, O: Observer> {
    hall: &'h Hall<O>,
    seeds: Seeds,
    /// Packets for each shelf.
    batches: Vec<Batch>,
    packets: usize,
    /// Handed over together.
    most: usize,
    /// No other thread follows.
    is_alone: bool,
}

impl<'h, O: Observer> Shelves<'h, O> {
    fn new(hall: &'h Hall<O>, is_alone: bool) -> Self {
        let batches = (0..SHELVES).map(|_| Batch::default()).collect();
        Shelves { hall, seeds: Seeds::default(), batches, packets: 0, most: TOGETHER_LEAST, is_alone }
    }

    /// What was handed over before is followed first, with help.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self, is_last: bool) {
        self.hall.help(Range::next);
        let mut connections = 0;
        for (shelf, batch) in self.hall.shelves.iter().zip(&mut self.batches) {
            let mut shelf = lock(shelf);
            // Taken by a thread that has not begun.
            shelf.follow();
            std::mem::swap(&mut shelf.waiting, batch);
            shelf.is_last = is_last;
            if self.is_alone {
                shelf.follow();
                std::mem::swap(&mut shelf.waiting, batch);
            }
            connections += shelf.table.as_ref().map_or(0, Table::open);
        }
        self.most = (TOGETHER * connections).clamp(TOGETHER_LEAST, TOGETHER_MOST);
        // Some shelves get more than others.
        self.batches.iter_mut().for_each(|batch| batch.reserve(self.most / SHELVES * 5 / 4));
        self.packets = 0;
        lock(&self.hall.turn).left = 0..SHELVES;
        self.hall.came.notify_all();
    }
}

impl<O: Observer> Arrive for Shelves<'_, O> {
    #[inline(always)]
    fn arrive(&mut self, arrival: Arrival<'_>) {
        let hash = self.seeds.hash_one(arrival.key);
        self.batches[hash as usize % SHELVES].push(arrival, hash);
        self.packets += 1;
        if self.packets == self.most {
            self.hand_over(false);
        }
    }
}

/// Also where reading failed, or a panic ended it: no thread may wait for more.
impl<O: Observer> Drop for Shelves<'_, O> {
    fn drop(&mut self) {
        *lock(&self.hall.turn) = Turn { left: 0..0, is_over: true };
        self.hall.came.notify_all();
    }
}
