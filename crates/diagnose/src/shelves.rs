// SPDX-License-Identifier: MIT
//! Connections grouped into shelves by the hash of their endpoints, and followed one shelf at a
//! time.
//!
//! A connection with its observers takes some kilobytes. With thousands of open connections, they
//! have left the processor's caches by the time the next packet arrives. Packets are therefore
//! collected by shelf until there are many, and then followed connection by connection. A shelf is
//! also the unit of work of a thread: an idle thread takes the next one. Only one thread at a time
//! works on a shelf, and the result does not depend on which.

use crate::batch::{Arrival, Batch, Headers, Segment};
use crate::effort::Effort;
use crate::flow::Flow;
use crate::kept::{Kept, Worth};
use crate::key::Seeds;
use crate::lately::Lately;
use crate::observer::Observer;
use crate::observers::All;
use crate::report::{Connection, Ending};
use crate::step::Step;
use crate::table::{Arrive, Follow, Idle, Name, Table};
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Enough shelves that the packets waiting for one fit into a second-level cache, and few enough
/// that the batches being written fit as well.
const SHELVES: usize = 256;
/// Number of packets of each open connection that wait together, on average: at least this, and less
/// than twice as many.
const TOGETHER: usize = 42;
/// Minimum number of packets that wait together: few enough that they are still in a cache when
/// they are followed, and that they take little memory.
const TOGETHER_LEAST: usize = 1 << 12;
const TOGETHER_MOST: usize = 1 << 19;
/// Maximum number of new connections in the packets that wait together, which bounds memory where
/// each packet begins one.
const NEW_MOST: usize = 1 << 11;

/// Runs `read` in this thread and follows in the given number of threads; returns the connections
/// that are worth most.
pub(crate) fn follow<O: Observer + Send, T, E>(
    effort: &Effort,
    worth: fn(&O::Report) -> Worth,
    read: impl FnOnce(&mut Shelves<'_, O>) -> Result<T, E>,
) -> Result<(T, Kept<O::Report>), E>
where
    O::Report: Send,
{
    let hall = Hall::new(Kept::new(effort.kept_most, worth));
    let read = thread::scope(|scope| {
        let hall = &hall;
        for _ in 1..effort.threads.get() {
            scope.spawn(|| hall.work());
        }
        let mut shelves = Shelves::new(hall, effort);
        let read = read(&mut shelves)?;
        shelves.hand_over(true);
        hall.help(Range::next);
        Ok(read)
    })?;
    Ok((read, hall.kept.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// A thread that panicked leaves nothing that another one would use; the panic continues in the
/// reading thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Shelf<O: Observer> {
    waiting: Batch,
    /// The table; None once it is finished.
    table: Option<Table<Flows<O>>>,
    /// Whether no packets follow those that wait.
    is_last: bool,
    /// Before these packets are followed, connections idle for longer than this one end.
    lets_go: Option<Idle>,
}

impl<O: Observer> Default for Shelf<O> {
    fn default() -> Self {
        let table = Some(Table::new(Flows::default()));
        Shelf { waiting: Batch::default(), table, is_last: false, lets_go: None }
    }
}

impl<O: Observer> Shelf<O> {
    /// Number of open connections.
    fn open(&self) -> usize {
        self.table.as_ref().map_or(0, Table::open)
    }

    fn follow(&mut self, kept: &Mutex<Kept<O::Report>>) {
        let Some(table) = &mut self.table else { return };
        if let Some(first_ns) = self.waiting.first_ns() {
            table.hand_out(first_ns);
        }
        let cut = self.lets_go.take().map_or(0, |idle| table.let_go(idle));
        self.waiting.drain(|key, burst| table.add(key, burst));
        let Flows { mut over, .. } = std::mem::take(table.follow());
        if self.is_last {
            over.extend(self.table.take().into_iter().flat_map(|table| table.finish().over));
        }
        if cut > 0 || !over.is_empty() {
            lock(kept).add(over, cut);
        }
    }
}

// The allocator's next size is 12 kB.
const _: () = assert!(std::mem::size_of::<Flow<All>>() <= 10_240);

struct Flows<O: Observer> {
    // A connection takes kilobytes: move a box instead.
    over: Vec<Box<Connection<O::Report>>>,
    /// Steps on their way to the observers, in the same place for all connections of a batch.
    steps: Vec<Step>,
}

impl<O: Observer> Default for Flows<O> {
    fn default() -> Self {
        Flows { over: Vec::new(), steps: Vec::new() }
    }
}

impl<O: Observer> Follow for Flows<O> {
    type Case = Box<Flow<O>>;

    fn begin(&mut self, name: &Name, first: &Headers) -> Self::Case {
        Box::new(Flow::new(name, first))
    }

    fn packets<'p>(&mut self, case: &mut Self::Case, segments: impl Iterator<Item = Segment<'p>>) {
        case.follow(segments, &mut self.steps);
    }

    fn over(&mut self, case: Self::Case, ending: Ending) {
        self.over.push(Box::new(case.finish(ending)));
    }
}

/// All shelves, and the threads that work on them.
struct Hall<O: Observer> {
    shelves: Vec<Mutex<Shelf<O>>>,
    turn: Mutex<Turn>,
    came: Condvar,
    kept: Mutex<Kept<O::Report>>,
}

/// Progress with the packets that were handed over last.
struct Turn {
    /// Shelves that nobody has taken. The reading thread takes the first, others take the last, so
    /// that most connections stay in the caches of one processor.
    left: Range<usize>,
    /// Whether reading has ended.
    is_over: bool,
}

impl<O: Observer> Hall<O> {
    fn new(kept: Kept<O::Report>) -> Self {
        let shelves = (0..SHELVES).map(|_| Mutex::default()).collect();
        let turn = Mutex::new(Turn { left: 0..0, is_over: false });
        Hall { shelves, turn, came: Condvar::new(), kept: Mutex::new(kept) }
    }

    /// Follows shelf after shelf, waiting for more until reading has ended.
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

    /// Follows shelf after shelf until all are taken.
    fn help(&self, take: fn(&mut Range<usize>) -> Option<usize>) {
        loop {
            let Some(shelf) = take(&mut lock(&self.turn).left) else { return };
            lock(&self.shelves[shelf]).follow(&self.kept);
        }
    }
}

/// The reading thread's side.
pub(crate) struct Shelves<'h, O: Observer> {
    hall: &'h Hall<O>,
    seeds: Seeds,
    /// The batch of packets for each shelf.
    batches: Vec<Batch>,
    packets: usize,
    /// Number of packets handed over together.
    most: usize,
    /// Connections of the packets so far, and how many were new since the last hand-over.
    lately: Lately,
    new: usize,
    /// Maximum number of open connections.
    open_most: usize,
    /// Whether no other thread follows.
    is_alone: bool,
}

impl<'h, O: Observer> Shelves<'h, O> {
    fn new(hall: &'h Hall<O>, effort: &Effort) -> Self {
        Shelves {
            hall,
            seeds: Seeds::default(),
            batches: (0..SHELVES).map(|_| Batch::default()).collect(),
            packets: 0,
            most: TOGETHER_LEAST,
            lately: Lately::default(),
            new: 0,
            open_most: effort.open_most,
            is_alone: effort.threads == NonZeroUsize::MIN,
        }
    }

    /// Of too many open connections, the one idle longest that stays. Depends on the packets
    /// alone, not on the threads: all that was handed over is followed.
    fn last_to_stay(&self, open: usize) -> Idle {
        let mut idle = Vec::with_capacity(open);
        let shelves = self.hall.shelves.iter();
        shelves.for_each(|shelf| idle.extend(lock(shelf).table.iter().flat_map(Table::idle)));
        *idle.select_nth_unstable(open - self.open_most).1
    }

    /// Hands over the collected packets; those handed over before are finished first, with this
    /// thread's help.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self, is_last: bool) {
        self.hall.help(Range::next);
        let kept = &self.hall.kept;
        let mut open = 0;
        for shelf in &self.hall.shelves {
            let mut shelf = lock(shelf);
            // Taken by a thread that has not started on it.
            shelf.follow(kept);
            open += shelf.open();
        }
        let lets_go = (open > self.open_most).then(|| self.last_to_stay(open));
        if lets_go.is_some() {
            // What ends may come back.
            self.lately = Lately::default();
        }
        for (shelf, batch) in self.hall.shelves.iter().zip(&mut self.batches) {
            let mut shelf = lock(shelf);
            std::mem::swap(&mut shelf.waiting, batch);
            (shelf.is_last, shelf.lets_go) = (is_last, lets_go);
            if self.is_alone {
                shelf.follow(kept);
                std::mem::swap(&mut shelf.waiting, batch);
            }
        }
        // In powers of two: batches that grow in small steps leave holes in memory.
        self.most = (TOGETHER * open).next_power_of_two().clamp(TOGETHER_LEAST, TOGETHER_MOST);
        // Some shelves receive more packets than others.
        self.batches.iter_mut().for_each(|batch| batch.reserve(self.most / SHELVES * 5 / 4));
        (self.packets, self.new) = (0, 0);
        lock(&self.hall.turn).left = 0..SHELVES;
        self.hall.came.notify_all();
    }
}

impl<O: Observer> Arrive for Shelves<'_, O> {
    #[inline(always)]
    fn arrive(&mut self, arrival: Arrival<'_>) {
        let hash = self.seeds.hash_one(arrival.key);
        if self.batches[hash as usize % SHELVES].push(arrival, hash) {
            self.new += usize::from(self.lately.adds(hash));
        }
        self.packets += 1;
        if self.packets >= self.most || self.new == NEW_MOST {
            self.hand_over(false);
        }
    }
}

/// Also runs after a failed or panicked reading: no thread may keep waiting.
impl<O: Observer> Drop for Shelves<'_, O> {
    fn drop(&mut self) {
        *lock(&self.hall.turn) = Turn { left: 0..0, is_over: true };
        self.hall.came.notify_all();
    }
}
