//! Frames of HTTP/2 that cost the server more than their sender (RFC 9113 section 10.5), counted as they arrive.
//!
//! Only the nine bytes before each frame are read, and whatever follows is skipped: to understand frames is the
//! business of others.

use std::time::Duration;

/// The client's connection preface (section 3.4).
const PREFACE_BYTES: u32 = 24;
/// What is before the payload of a frame (section 4.1).
const HEADER_BYTES: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const PUSH_PROMISE: u8 = 0x5;
const GOAWAY: u8 = 0x7;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// The beginning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How long the payload is.
    pub length: u32,
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
}

/// How far a client's frames have come.
#[derive(Clone, Debug)]
pub struct FrameScan {
    /// Bytes that are no frame's beginning.
    skip: u32,
    begun: [u8; HEADER_BYTES],
    have: usize,
    /// Whether a list of fields has begun whose last frame has not.
    block_goes_on: bool,
    /// Whether the bytes to skip are those of a list of fields.
    in_block: bool,
    /// How many frames have begun, where those of one list of fields are one.
    units: u64,
}

impl Default for FrameScan {
    fn default() -> Self {
        Self { skip: PREFACE_BYTES, begun: [0; HEADER_BYTES], have: 0, block_goes_on: false, in_block: false, units: 0 }
    }
}

impl FrameScan {
    /// The next frame that begins in these bytes, which are shortened by what was looked at.
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

    /// The number of the list of fields that has begun and is not complete, or of the frame whose first bytes are not.
    pub fn within(&self) -> Option<u64> {
        let is_within = self.block_goes_on || self.have > 0 || (self.in_block && self.skip > 0);
        is_within.then_some(self.units)
    }
}

/// What a client has sent too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Requests that it gave up (rapid reset, CVE-2023-44487).
    Resets,
    /// Frames that carry nothing: settings, pings, priorities, windows, empty data, and whatever nobody knows.
    Control,
}

/// What a client may send of such frames, in thousandths of a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameBudget {
    resets: u64,
    control: u64,
}

/// A whole frame.
const ONE: u64 = 1_000;
/// Requests that may be given up at once, and in each second: browsers give up a page full of images, and not for long.
const RESETS: u64 = 200 * ONE;
const RESETS_A_MILLISECOND: u64 = 7;
/// Who gives up less than half of its requests is never cut off.
const RESETS_A_REQUEST: u64 = ONE / 2;
/// Control frames at once, and in each second: a client that measures its line sends a ping a round trip.
const CONTROL: u64 = 1_000 * ONE;
const CONTROL_A_MILLISECOND: u64 = 100;
/// Windows are opened as responses come, by the most eager of clients twice every 4 KiB.
const CONTROL_A_BYTE_SENT: u64 = 1;
/// A request may come with its priority, and open its windows.
const CONTROL_A_REQUEST: u64 = 4 * ONE;

impl Default for FrameBudget {
    fn default() -> Self {
        Self { resets: RESETS, control: CONTROL }
    }
}

impl FrameBudget {
    /// Time has passed, and so many bytes were sent to the client.
    pub fn refill(&mut self, elapsed: Duration, sent_bytes: u64) {
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.add_resets(elapsed_ms.saturating_mul(RESETS_A_MILLISECOND));
        self.add_control(elapsed_ms.saturating_mul(CONTROL_A_MILLISECOND));
        self.add_control(sent_bytes.saturating_mul(CONTROL_A_BYTE_SENT));
    }

    /// Counts a frame, or says what there is too much of.
    pub fn count(&mut self, frame: Frame) -> Result<(), Excess> {
        match frame.kind {
            HEADERS => {
                self.add_resets(RESETS_A_REQUEST);
                self.add_control(CONTROL_A_REQUEST);
            }
            RST_STREAM => self.resets = self.resets.checked_sub(ONE).ok_or(Excess::Resets)?,
            DATA if frame.length > 0 || frame.flags & END_STREAM != 0 => {}
            // What these are allowed to be is judged by whoever understands them.
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
