//! The validators and bare tags of a resource, as text within its record.

use serde::{Deserialize, Serialize};

use super::{DamagedRecord, bytes, damaged, hex, latin, name};
use crate::core::{
    records::record::{Known, VariantName},
    tags::{
        bare_tags::{BareTags, Listed, ShortName},
        entity_tag::EntityTag,
        http_date::HttpDate,
        recent_tags::RecentTags,
        told_dates::FirstDate,
        validators::{Modified, Representation, Validators},
    },
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenKnown {
    variant: String,
    representation: WrittenRepresentation,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WrittenRepresentation {
    Unknown,
    Absent,
    Present {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        etag: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modified_unix_seconds: Option<u64>,
        #[serde(default, skip_serializing_if = "is_false")]
        modified_is_strong: bool,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenTags {
    All,
    One(WrittenStates),
}

/// The tags of the states of one target.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenStates {
    target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<String>,
}

impl WrittenStates {
    fn of(target: ShortName, current: Option<ShortName>, earlier: &[ShortName]) -> Self {
        let earlier = earlier.iter().copied().map(spelled).collect();
        Self { target: spelled(target), current: current.map(spelled), earlier }
    }

    pub(super) fn of_recent(RecentTags { target, current, earlier }: &RecentTags) -> Self {
        Self::of(*target, *current, earlier)
    }

    pub(super) fn read_recent(self) -> Result<RecentTags, DamagedRecord> {
        self.read().map(|(target, current, earlier)| RecentTags { target, current, earlier })
    }

    fn read(self) -> Result<(ShortName, Option<ShortName>, Vec<ShortName>), DamagedRecord> {
        let earlier = self.earlier.iter().map(|text| short_name(text)).collect::<Result<_, _>>()?;
        Ok((short_name(&self.target)?, self.current.as_deref().map(short_name).transpose()?, earlier))
    }
}

fn spelled(name: ShortName) -> String {
    format!("{:016x}", name.0)
}

fn short_name(text: &str) -> Result<ShortName, DamagedRecord> {
    u64::from_str_radix(text, 16).map(ShortName).map_err(|_error| damaged("its tags"))
}

impl WrittenKnown {
    pub(super) fn of(known: &Known) -> Self {
        let representation = match &known.representation {
            Representation::Unknown => WrittenRepresentation::Unknown,
            Representation::Absent => WrittenRepresentation::Absent,
            Representation::Present(Validators { tag, modified }) => WrittenRepresentation::Present {
                etag: tag.as_ref().map(|tag| latin(tag.to_header_value().as_bytes())),
                modified_unix_seconds: modified.map(|modified| modified.date.unix_seconds()),
                modified_is_strong: modified.is_some_and(|modified| modified.strong),
            },
        };
        Self { variant: hex(known.variant.0), representation }
    }

    pub(super) fn read(self) -> Result<Known, DamagedRecord> {
        let representation = match self.representation {
            WrittenRepresentation::Unknown => Representation::Unknown,
            WrittenRepresentation::Absent => Representation::Absent,
            WrittenRepresentation::Present { etag, modified_unix_seconds, modified_is_strong } => {
                let tag = etag.map(|etag| EntityTag::parse(&bytes(&etag)).map_err(|_malformed| damaged("its etag")));
                let modified = modified_unix_seconds.map(|seconds| Modified {
                    date: HttpDate::from_unix_seconds(seconds),
                    strong: modified_is_strong,
                    first: FirstDate::NONE,
                });
                Representation::Present(Validators { tag: tag.transpose()?, modified })
            }
        };
        Ok(Known { variant: VariantName(name(&self.variant)?), representation })
    }
}

impl WrittenTags {
    pub(super) fn of(tags: &BareTags) -> Option<Self> {
        match tags {
            BareTags::All => Some(Self::All),
            BareTags::One(Listed { target, current, earlier }) => {
                Some(Self::One(WrittenStates::of(*target, *current, earlier)))
            }
            BareTags::None => None,
        }
    }

    pub(super) fn read(self) -> Result<BareTags, DamagedRecord> {
        match self {
            Self::All => Ok(BareTags::All),
            Self::One(states) => {
                states.read().map(|(target, current, earlier)| BareTags::One(Listed { target, current, earlier }))
            }
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_false(value: &bool) -> bool {
    !value
}
