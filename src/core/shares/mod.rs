//! The share of one client in what all clients have together (DESIGN, section 3, rule 16).

pub mod line_share;
pub mod places;
pub mod upload_room;
