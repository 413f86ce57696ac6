// SPDX-License-Identifier: MIT
//! Standard input, read ahead by a separate thread, so that a silent pipe does not keep the caller
//! from stopping.

use std::io::{self, Cursor, Read};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

const CHUNK_BYTES: usize = 64 << 10;
const CHUNKS_AHEAD: usize = 4;
/// After this long without a byte, the reader returns "interrupted" and can be called again.
const SILENCE: Duration = Duration::from_millis(100);

/// Reader end of the thread's data.
pub(crate) struct Ahead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
}

impl Ahead {
    /// Starts the thread, which ends with the input, or when nobody takes its next chunk.
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
