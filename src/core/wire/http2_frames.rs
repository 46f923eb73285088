//! Counts HTTP/2 frames that cost the server more than their sender (RFC 9113 section 10.5), as they arrive.
//!
//! This module reads only the nine bytes of each frame header and skips the payload. The HTTP/2 library interprets the
//! frames.

use std::time::Duration;

/// The length of the client's connection preface (section 3.4).
const PREFACE_BYTES: u32 = 24;
/// The length of a frame header (section 4.1).
const HEADER_BYTES: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const PUSH_PROMISE: u8 = 0x5;
const GOAWAY: u8 = 0x7;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The length of the payload in bytes.
    pub length: u32,
    /// The type of the frame.
    pub kind: u8,
    /// The flags of the frame.
    pub flags: u8,
}

/// The progress of the scan of a client's frames.
#[derive(Clone, Debug)]
pub struct FrameScan {
    /// The number of bytes to skip before the next frame header.
    skip: u32,
    begun: [u8; HEADER_BYTES],
    have: usize,
    /// True if a list of fields has begun, but not its last frame.
    block_goes_on: bool,
    /// True if the bytes to skip belong to a list of fields.
    in_block: bool,
    /// The number of frames that have begun. All frames of one list of fields count as one.
    units: u64,
}

impl Default for FrameScan {
    fn default() -> Self {
        Self { skip: PREFACE_BYTES, begun: [0; HEADER_BYTES], have: 0, block_goes_on: false, in_block: false, units: 0 }
    }
}

impl FrameScan {
    /// Returns the next frame whose header ends in these bytes, and removes the bytes that it has read.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<Frame> {
        loop {
            let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
            *bytes = bytes.get(skipped..).unwrap_or_default();
            self.skip -= u32::try_from(skipped).unwrap_or(self.skip);
            let (&first, rest) = bytes.split_first()?;
            *bytes = rest;
            if self.have == 0 && !self.block_goes_on {
                self.units += 1;
            }
            if let Some(place) = self.begun.get_mut(self.have) {
                *place = first;
            }
            self.have += 1;
            if self.have == HEADER_BYTES {
                return Some(self.frame());
            }
        }
    }

    fn frame(&mut self) -> Frame {
        let [high, middle, low, kind, flags, ..] = self.begun;
        let frame = Frame { length: u32::from_be_bytes([0, high, middle, low]), kind, flags };
        self.have = 0;
        self.skip = frame.length;
        self.in_block = matches!(kind, HEADERS | CONTINUATION);
        if self.in_block {
            self.block_goes_on = flags & END_HEADERS == 0;
        }
        frame
    }

    /// Returns the number of the incomplete list of fields, or of the frame whose header is incomplete.
    pub fn within(&self) -> Option<u64> {
        let is_within = self.block_goes_on || self.have > 0 || (self.in_block && self.skip > 0);
        is_within.then_some(self.units)
    }
}

/// The kind of frames that a client has sent too many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Resets of requests that the client gave up (rapid reset, CVE-2023-44487).
    Resets,
    /// Frames that carry no data: settings, pings, priorities, windows, empty data, and frames of unknown type.
    Control,
}

/// The number of such frames that a client may still send, in thousandths of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameBudget {
    resets: u64,
    control: u64,
}

/// One whole frame.
const ONE: u64 = 1_000;
/// The number of requests that a client may give up at once. Browsers give up a page full of images, but only briefly.
const RESETS: u64 = 200 * ONE;
/// The refill with time: seven requests per second.
const RESETS_A_MILLISECOND: u64 = 7;
/// The refill with each request: a client that gives up less than half of its requests is never cut off.
const RESETS_A_REQUEST: u64 = ONE / 2;
/// The number of control frames that a client may send at once.
const CONTROL: u64 = 1_000 * ONE;
/// The refill with time: 100 frames per second, as a client that measures its line sends one ping per round trip.
const CONTROL_A_MILLISECOND: u64 = 100;
/// The refill with each byte: clients open windows as responses arrive, the most eager ones twice every 4 KiB.
const CONTROL_A_BYTE_SENT: u64 = 1;
/// The refill with each request, which may come with its priority and open its windows.
const CONTROL_A_REQUEST: u64 = 4 * ONE;

impl Default for FrameBudget {
    fn default() -> Self {
        Self { resets: RESETS, control: CONTROL }
    }
}

impl FrameBudget {
    /// Refills the budget for the time that has passed and for the bytes that were sent to the client.
    pub fn refill(&mut self, elapsed: Duration, sent_bytes: u64) {
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.add_resets(elapsed_ms.saturating_mul(RESETS_A_MILLISECOND));
        self.add_control(elapsed_ms.saturating_mul(CONTROL_A_MILLISECOND));
        self.add_control(sent_bytes.saturating_mul(CONTROL_A_BYTE_SENT));
    }

    /// Counts a frame, or returns the kind that the client has sent too many of.
    pub fn count(&mut self, frame: Frame) -> Result<(), Excess> {
        match frame.kind {
            HEADERS => {
                self.add_resets(RESETS_A_REQUEST);
                self.add_control(CONTROL_A_REQUEST);
            }
            RST_STREAM => self.resets = self.resets.checked_sub(ONE).ok_or(Excess::Resets)?,
            DATA if frame.length > 0 || frame.flags & END_STREAM != 0 => {}
            // The HTTP/2 library decides whether these are allowed.
            CONTINUATION | PUSH_PROMISE | GOAWAY => {}
            _ => self.control = self.control.checked_sub(ONE).ok_or(Excess::Control)?,
        }
        Ok(())
    }

    fn add_resets(&mut self, more: u64) {
        self.resets = self.resets.saturating_add(more).min(RESETS);
    }

    fn add_control(&mut self, more: u64) {
        self.control = self.control.saturating_add(more).min(CONTROL);
    }
}

#[cfg(test)]
#[path = "http2_frames_tests.rs"]
mod tests;
