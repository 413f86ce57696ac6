// SPDX-License-Identifier: MIT
//! The standard input, read ahead by a thread of its own: so a pipe that stays silent does not keep
//! the caller from asking to stop.

use std::io::{self, Cursor, Read};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

const CHUNK_BYTES: usize = 64 << 10;
const CHUNKS_AHEAD: usize = 4;
/// After so long without a byte, the reader says "interrupted" and can be called again.
const SILENCE: Duration = Duration::from_millis(100);

/// What a thread reads.
pub(crate) struct Ahead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
}

impl Ahead {
    /// The thread ends with the input, or when it has a chunk that nobody takes.
    pub fn new(mut input: impl Read + Send + 'static) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        thread::spawn(move || loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = match input.read(&mut chunk) {
                Ok(0) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                read => read,
            };
            let over = read.is_err();
            let read = read.map(|n| {
                chunk.truncate(n);
                chunk
            });
            if sender.send(read).is_err() || over {
                break;
            }
        });
        Ahead { chunks, chunk: Cursor::default() }
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.chunk.read(buffer)?;
        if n > 0 || buffer.is_empty() {
            return Ok(n);
        }
        match self.chunks.recv_timeout(SILENCE) {
            Ok(chunk) => self.chunk = Cursor::new(chunk?),
            Err(RecvTimeoutError::Disconnected) => return Ok(0),
            Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::Interrupted.into()),
        }
        self.chunk.read(buffer)
    }
}
