//! Reads: the tags that they give, answers from memory, parts, and representations of every kind.

mod coarse_tags;
mod cors;
mod dates;
mod flapping_tags;
mod http_behaviour;
mod large_bodies;
mod last;
mod local_verdicts;
mod partial;
mod ranges;
mod settled;
mod stream_ends;
mod tag_sources;
mod tags_on_the_way;
mod variants;
