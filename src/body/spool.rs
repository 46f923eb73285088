//! Spool files: request bodies that are too large for memory.
//!
//! A spool file has no name and only this process can read it, so a crash leaves nothing behind. All file operations
//! run on the blocking pool, so that the async thread can serve other connections meanwhile.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path, sync::Arc};

use bytes::Bytes;
use tokio::{io::AsyncWriteExt, task::spawn_blocking};

use crate::core::objects::blocks::Extent;

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
        Ok(Self { file: tokio::fs::File::from_std(create_file(dir).await?) })
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

/// Creates an unlinked file in a directory.
pub(super) async fn create_file(dir: &Path) -> io::Result<File> {
    let dir = dir.to_owned();
    spawn_blocking(move || tempfile::tempfile_in(dir)).await?
}

/// A position in parts of a spool file, which are read one after the other. Positioned reads do not change the file, so
/// several readers can share it.
#[derive(Debug)]
pub(super) struct SpoolCursor {
    file: Arc<File>,
    parts: Arc<[Extent]>,
    /// The place of the next part in `parts`.
    next: usize,
    /// The rest of the part that is being read.
    rest: Extent,
}

impl SpoolCursor {
    pub(super) fn start_of(file: &Arc<File>, parts: &Arc<[Extent]>) -> Self {
        let nothing = Extent { offset: 0, len: 0 };
        Self { file: Arc::clone(file), parts: Arc::clone(parts), next: 0, rest: nothing }
    }

    /// The next bytes; empty at the end.
    pub(super) async fn next_block(&mut self) -> io::Result<Bytes> {
        let Extent { offset, len } = self.rest_of_part();
        let size = READ_BLOCK_BYTES.min(len);
        if size == 0 {
            return Ok(Bytes::new());
        }
        let (file, capacity) = (Arc::clone(&self.file), usize::try_from(size).unwrap_or(0));
        let block = spawn_blocking(move || {
            let mut block = vec![0; capacity];
            file.read_exact_at(&mut block, offset).map(|()| block)
        })
        .await??;
        self.pass(size);
        Ok(Bytes::from(block))
    }

    /// Returns the rest of the part that is being read, or the next part; empty at the end.
    fn rest_of_part(&mut self) -> Extent {
        while let (0, Some(part)) = (self.rest.len, self.parts.get(self.next)) {
            self.rest = *part;
            self.next += 1;
        }
        self.rest
    }

    fn pass(&mut self, size: u64) {
        self.rest = Extent { offset: self.rest.offset + size, len: self.rest.len - size };
    }
}

/// Reads on the calling thread, which must be one of the blocking pool.
impl io::Read for SpoolCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Extent { offset, len } = self.rest_of_part();
        let size = usize::try_from(len).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(buffer.get_mut(..size).unwrap_or_default(), offset)?;
        self.pass(count as u64);
        Ok(count)
    }
}
