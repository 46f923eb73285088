//! Spool files: request bodies that are too large for memory.
//!
//! A spool file has no name and only this process can read it, so a crash leaves nothing behind. All file operations
//! run on the blocking pool, so that the async thread can serve other connections meanwhile.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path, sync::Arc};

use bytes::Bytes;
use tokio::{io::AsyncWriteExt, task::spawn_blocking};

/// The number of bytes read from a spool file at a time. Each read is a visit to the blocking pool.
const READ_BLOCK_BYTES: u64 = 256 * 1024;

/// A spool file that is being written.
#[derive(Debug)]
pub(super) struct SpoolWriter {
    file: tokio::fs::File,
}

impl SpoolWriter {
    /// Creates an unlinked file in a directory.
    pub(super) async fn create(dir: &Path) -> io::Result<Self> {
        let dir = dir.to_owned();
        let file = spawn_blocking(move || tempfile::tempfile_in(dir)).await??;
        Ok(Self { file: tokio::fs::File::from_std(file) })
    }

    /// Appends bytes. A disk error may appear only at the next call.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await
    }

    /// Completes the file.
    pub(super) async fn finish(mut self) -> io::Result<Arc<File>> {
        self.file.flush().await?;
        Ok(Arc::new(self.file.into_std().await))
    }
}

/// A reader of a finished spool file, for the blocking pool. Other readers of the file do not move it.
#[derive(Debug)]
pub(super) struct SpoolRead {
    file: Arc<File>,
    offset: u64,
}

impl SpoolRead {
    pub(super) fn start_of(file: &Arc<File>) -> Self {
        Self { file: Arc::clone(file), offset: 0 }
    }
}

impl io::Read for SpoolRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// A position in a finished spool file. Positioned reads do not change the file, so several readers can share it.
#[derive(Debug)]
pub(super) struct SpoolCursor {
    file: Arc<File>,
    offset: u64,
    len: u64,
}

impl SpoolCursor {
    pub(super) fn start_of(file: &Arc<File>, len: u64) -> Self {
        Self { file: Arc::clone(file), offset: 0, len }
    }

    /// The next bytes; empty at the end.
    pub(super) async fn next_block(&mut self) -> io::Result<Bytes> {
        let size = usize::try_from(READ_BLOCK_BYTES.min(self.len - self.offset)).unwrap_or(0);
        if size == 0 {
            return Ok(Bytes::new());
        }
        let (file, offset) = (Arc::clone(&self.file), self.offset);
        let block = spawn_blocking(move || {
            let mut block = vec![0; size];
            file.read_exact_at(&mut block, offset).map(|()| block)
        })
        .await??;
        self.offset += size as u64;
        Ok(Bytes::from(block))
    }
}
