// SPDX-License-Identifier: MIT
//! Connections followed in the thread that reads, or in several: whichever is free takes the connection
//! whose packets wait the longest. A connection is in one thread at a time, and nothing in it depends
//! on which.

use crate::batch::Batch;
use crate::flow::Flow;
use crate::observers::Observer;
use crate::report::{Connection, Ending};
use crate::table::{Follow, Name};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Follows connections at once; each goes to `over` when it is over.
pub(crate) struct Here<O, F> {
    over: F,
    observers: PhantomData<O>,
}

impl<O, F> Here<O, F> {
    pub fn new(over: F) -> Self {
        Here { over, observers: PhantomData }
    }
}

impl<O: Observer, F: FnMut(Connection<O::Report>)> Follow for Here<O, F> {
    type Case = Box<Flow<O>>;

    fn packets(&mut self, name: &Name, flow: &mut Option<Self::Case>, batch: &mut Batch) {
        flow.get_or_insert_with(|| Box::new(Flow::new(name, batch))).take(batch, |_, _| {});
    }

    fn over(&mut self, name: &Name, flow: Option<Self::Case>, mut batch: Batch, ending: Ending) {
        let mut flow = flow.unwrap_or_else(|| Box::new(Flow::new(name, &batch)));
        flow.take(&mut batch, |_, _| {});
        (self.over)(flow.finish(ending));
    }
}

/// Batches that wait at one time, beyond which the reading thread helps: they fit into a second-level
/// cache.
const WAITING_MOST: isize = 64;
/// Batches handed over together, as waking a thread takes longer than following one.
const TOGETHER: isize = 8;

/// A connection, for whoever has time.
pub(crate) struct Desk<O> {
    name: Name,
    inbox: Mutex<Inbox<O>>,
}

struct Inbox<O> {
    /// None before the first packet, and while a thread follows it.
    flow: Option<Box<Flow<O>>>,
    is_taken: bool,
    batches: Vec<Batch>,
    ending: Option<Ending>,
}

/// Desks with packets, first come first served.
struct Queue<O> {
    waiting: Mutex<Waiting<O>>,
    came: Condvar,
    /// Few batches wait.
    room: Condvar,
}

struct Waiting<O> {
    desks: VecDeque<Arc<Desk<O>>>,
    /// Of all desks, also of those where a thread sits. Below 0 where one was faster than the count.
    batches: isize,
    is_closed: bool,
}

/// A thread that panicked leaves nothing half done that another one would look at.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<O: Observer> Desk<O> {
    /// Whether it has to be queued: it is not yet, and nobody sits there.
    fn put(&self, batch: Batch, ending: Option<Ending>) -> bool {
        let mut inbox = lock(&self.inbox);
        inbox.batches.push(batch);
        inbox.ending = ending;
        inbox.batches.len() == 1 && !inbox.is_taken
    }

    /// Follows until nothing waits; the connection, if that was its end.
    fn follow(&self, queue: &Queue<O>) -> Option<Connection<O::Report>> {
        let mut inbox = lock(&self.inbox);
        inbox.is_taken = true;
        let mut flow = inbox.flow.take();
        loop {
            let batches = std::mem::take(&mut inbox.batches);
            let ending = inbox.ending;
            drop(inbox);
            let done = batches.len() as isize;
            for mut batch in batches {
                flow.get_or_insert_with(|| Box::new(Flow::new(&self.name, &batch)))
                    .take(&mut batch, |_, _| {});
            }
            queue.done(done);
            if let Some(ending) = ending {
                return flow.map(|flow| flow.finish(ending));
            }
            inbox = lock(&self.inbox);
            if inbox.batches.is_empty() {
                inbox.flow = flow;
                inbox.is_taken = false;
                return None;
            }
        }
    }
}

impl<O: Observer> Queue<O> {
    /// Waits for desks, until there will be none.
    fn work(&self) -> Vec<Connection<O::Report>> {
        let _guard = Guard(self);
        let mut over = Vec::new();
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(desk) = waiting.desks.pop_front() {
                drop(waiting);
                over.extend(desk.follow(self));
                waiting = lock(&self.waiting);
            } else if waiting.is_closed {
                return over;
            } else {
                waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn done(&self, batches: isize) {
        let mut waiting = lock(&self.waiting);
        waiting.batches -= batches;
        if waiting.batches <= WAITING_MOST / 2 {
            self.room.notify_one();
        }
    }

    fn close(&self) {
        lock(&self.waiting).is_closed = true;
        self.came.notify_all();
    }
}

/// A thread that panics never counts its batches as done: nobody may wait for them.
struct Guard<'q, O>(&'q Queue<O>);

impl<O> Drop for Guard<'_, O> {
    fn drop(&mut self) {
        if thread::panicking() {
            lock(&self.0.waiting).batches = isize::MIN / 2;
            self.0.room.notify_all();
        }
    }
}

/// The reading thread's side.
pub(crate) struct Shards<'q, O: Observer> {
    queue: &'q Queue<O>,
    next: Vec<Arc<Desk<O>>>,
    /// Batches that were not handed over.
    batches: isize,
    over: Vec<Connection<O::Report>>,
}

impl<O: Observer + Send> Shards<'_, O>
where
    O::Report: Send,
{
    /// Reads by `read`, with this many threads beside its own; returns the connections in any order.
    pub fn run<T, E>(
        threads: usize,
        read: impl FnOnce(&mut Shards<'_, O>) -> Result<T, E>,
    ) -> Result<(T, Vec<Connection<O::Report>>), E> {
        let waiting = Mutex::new(Waiting { desks: VecDeque::new(), batches: 0, is_closed: false });
        let queue = Queue { waiting, came: Condvar::new(), room: Condvar::new() };
        thread::scope(|scope| {
            let joins: Vec<_> = (0..threads).map(|_| scope.spawn(|| queue.work())).collect();
            let mut shards = Shards { queue: &queue, next: Vec::new(), batches: 0, over: Vec::new() };
            let read = read(&mut shards);
            shards.hand_over();
            queue.close();
            let mut over = shards.over;
            over.extend(queue.work());
            for join in joins {
                match join.join() {
                    Ok(more) => over.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok((read?, over))
        })
    }

    fn put(&mut self, name: &Name, desk: &mut Option<Arc<Desk<O>>>, batch: Batch, ending: Option<Ending>) {
        let desk = desk.get_or_insert_with(|| {
            let inbox = Inbox { flow: None, is_taken: false, batches: Vec::new(), ending: None };
            Arc::new(Desk { name: *name, inbox: Mutex::new(inbox) })
        });
        if desk.put(batch, ending) {
            self.next.push(desk.clone());
        }
        self.batches += 1;
        if self.batches == TOGETHER {
            self.hand_over();
        }
    }

    /// Helps where too much waits; where all of it is with other threads, waits for them.
    fn hand_over(&mut self) {
        let mut waiting = lock(&self.queue.waiting);
        waiting.desks.extend(self.next.drain(..));
        waiting.batches += std::mem::take(&mut self.batches);
        self.queue.came.notify_one();
        while waiting.batches > WAITING_MOST {
            if let Some(desk) = waiting.desks.pop_front() {
                drop(waiting);
                self.over.extend(desk.follow(self.queue));
                waiting = lock(&self.queue.waiting);
            } else {
                let many = |waiting: &mut Waiting<O>| waiting.batches > WAITING_MOST / 2;
                let room = self.queue.room.wait_while(waiting, many);
                waiting = room.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl<O: Observer + Send> Follow for &mut Shards<'_, O>
where
    O::Report: Send,
{
    type Case = Arc<Desk<O>>;

    fn packets(&mut self, name: &Name, desk: &mut Option<Self::Case>, batch: &mut Batch) {
        let full = std::mem::replace(batch, Batch::for_many());
        self.put(name, desk, full, None);
    }

    fn over(&mut self, name: &Name, mut desk: Option<Self::Case>, batch: Batch, ending: Ending) {
        self.put(name, &mut desk, batch, Some(ending));
    }
}
