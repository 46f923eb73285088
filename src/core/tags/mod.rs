//! Tags and dates: where they come from, how they are spelled, compared and judged (DESIGN, section 6).

pub mod bare_tags;
pub mod checksum;
pub mod coarse_tag;
pub mod entity_tag;
pub mod followed_tags;
pub mod head_answer;
pub mod http_date;
pub mod issued_tag;
pub mod json;
pub mod json_object;
pub mod parts_hash;
pub mod precondition;
pub mod recent_tags;
pub mod tag_member;
pub mod told_dates;
pub mod validators;
pub mod verbatim_row;
pub mod version_source;
