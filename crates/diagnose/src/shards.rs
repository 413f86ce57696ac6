// SPDX-License-Identifier: MIT
//! Connections followed in the thread that reads, or in several. Each stays with the thread that had it
//! first, where its memory is, unless another has nothing to do. It is in one thread at a time, and
//! nothing in it depends on which.

use crate::batch::Batch;
use crate::flow::Flow;
use crate::observers::Observer;
use crate::report::{Connection, Ending};
use crate::table::{Follow, Name};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

type Connections<O> = Vec<Connection<<O as Observer>::Report>>;

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
/// Batches kept to be filled again.
const USED_MOST: usize = 256;

/// A connection, for whoever has time.
pub(crate) struct Desk<O> {
    name: Name,
    inbox: Mutex<Inbox<O>>,
}

struct Inbox<O> {
    /// None before the first packet, and while a thread follows it.
    flow: Option<Box<Flow<O>>>,
    is_taken: bool,
    /// The thread that had it first.
    home: Option<usize>,
    batches: Vec<Batch>,
    ending: Option<Ending>,
}

/// What waits for all threads; the one that reads is number 0.
struct Queue<O> {
    waiting: Mutex<Waiting<O>>,
    came: Condvar,
    /// Few batches wait.
    room: Condvar,
}

struct Waiting<O> {
    /// Desks with packets: of each thread, and behind them those that none had so far.
    desks: Vec<VecDeque<Arc<Desk<O>>>>,
    /// Of all desks, also of those where a thread sits. Below 0 where one was faster than the count.
    batches: isize,
    /// Followed, to be filled again: memory that another thread frees would be locked by both.
    used: Vec<Batch>,
    is_closed: bool,
}

impl<O> Waiting<O> {
    /// The thread's own come first, and another's last.
    fn next(&mut self, thread: usize) -> Option<Arc<Desk<O>>> {
        let queues = self.desks.len();
        let others = (0..queues).filter(|&queue| queue != thread && queue != queues - 1);
        let order = [thread, queues - 1].into_iter().chain(others);
        order.into_iter().find_map(|queue| self.desks[queue].pop_front())
    }
}

/// A thread that panicked leaves nothing half done that another one would look at.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<O: Observer> Desk<O> {
    /// Whose it is, if it has to be queued: it is not yet, and nobody sits there.
    fn put(&self, batch: Batch, ending: Option<Ending>) -> Option<Option<usize>> {
        let mut inbox = lock(&self.inbox);
        inbox.batches.push(batch);
        inbox.ending = ending;
        (inbox.batches.len() == 1 && !inbox.is_taken).then_some(inbox.home)
    }

    /// Follows until nothing waits; the connection, if that was its end.
    fn follow(&self, queue: &Queue<O>, thread: usize) -> Option<Connection<O::Report>> {
        let mut inbox = lock(&self.inbox);
        inbox.is_taken = true;
        inbox.home.get_or_insert(thread);
        let mut flow = inbox.flow.take();
        loop {
            let mut batches = std::mem::take(&mut inbox.batches);
            let ending = inbox.ending;
            drop(inbox);
            for batch in &mut batches {
                flow.get_or_insert_with(|| Box::new(Flow::new(&self.name, batch))).take(batch, |_, _| {});
            }
            queue.done(batches);
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
    fn work(&self, thread: usize) -> Connections<O> {
        let _guard = Guard(self);
        let mut over = Vec::new();
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(desk) = waiting.next(thread) {
                drop(waiting);
                over.extend(desk.follow(self, thread));
                waiting = lock(&self.waiting);
            } else if waiting.is_closed {
                return over;
            } else {
                waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn done(&self, mut batches: Vec<Batch>) {
        let mut waiting = lock(&self.waiting);
        waiting.batches -= batches.len() as isize;
        waiting.used.append(&mut batches);
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
    /// With their queues.
    next: Vec<(usize, Arc<Desk<O>>)>,
    /// Of none of the threads.
    nobodys: usize,
    used: Vec<Batch>,
    /// Batches that were not handed over.
    batches: isize,
    over: Connections<O>,
}

impl<O: Observer + Send> Shards<'_, O>
where
    O::Report: Send,
{
    /// Reads by `read`, with this many threads beside its own; returns the connections in any order.
    pub fn run<T, E>(
        threads: usize,
        read: impl FnOnce(&mut Shards<'_, O>) -> Result<T, E>,
    ) -> Result<(T, Connections<O>), E> {
        let nobodys = threads + 1;
        let desks = (0..=nobodys).map(|_| VecDeque::new()).collect();
        let waiting = Mutex::new(Waiting { desks, batches: 0, used: Vec::new(), is_closed: false });
        let queue = &Queue { waiting, came: Condvar::new(), room: Condvar::new() };
        thread::scope(|scope| {
            let joins: Vec<_> = (1..=threads).map(|n| scope.spawn(move || queue.work(n))).collect();
            let (next, used, over) = (Vec::new(), Vec::new(), Vec::new());
            let mut shards = Shards { queue, next, nobodys, used, batches: 0, over };
            let read = read(&mut shards);
            shards.hand_over();
            queue.close();
            let mut over = shards.over;
            over.extend(queue.work(0));
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
            let inbox = Inbox { flow: None, is_taken: false, home: None, batches: Vec::new(), ending: None };
            Arc::new(Desk { name: *name, inbox: Mutex::new(inbox) })
        });
        if let Some(home) = desk.put(batch, ending) {
            self.next.push((home.unwrap_or(self.nobodys), desk.clone()));
        }
        self.batches += 1;
        if self.batches == TOGETHER {
            self.hand_over();
        }
    }

    /// Helps where too much waits; where all of it is with other threads, waits for them.
    fn hand_over(&mut self) {
        let mut waiting = lock(&self.queue.waiting);
        for (queue, desk) in self.next.drain(..) {
            waiting.desks[queue].push_back(desk);
        }
        self.used.append(&mut waiting.used);
        self.used.truncate(USED_MOST);
        waiting.batches += std::mem::take(&mut self.batches);
        self.queue.came.notify_one();
        while waiting.batches > WAITING_MOST {
            if let Some(desk) = waiting.next(0) {
                drop(waiting);
                self.over.extend(desk.follow(self.queue, 0));
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
        let full = std::mem::replace(batch, self.used.pop().unwrap_or_default());
        self.put(name, desk, full, None);
    }

    fn over(&mut self, name: &Name, mut desk: Option<Self::Case>, batch: Batch, ending: Ending) {
        self.put(name, &mut desk, batch, Some(ending));
    }
}
