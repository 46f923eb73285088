//! Dialects: clients of Azure, S3, Terraform and `WebDAV`, unchanged, in front of backends that know nothing of either.

mod azure_block_owners;
pub mod azure_blocks;
mod azure_conditions;
mod azure_copies;
mod azure_files;
mod azure_leases;
mod azure_lists;
mod azure_metadata;
mod azure_missing;
mod azure_operations;
mod azure_properties;
pub mod azure_queues;
mod azure_ranges;
mod azure_removals;
mod azure_sdk;
mod example_documents;
mod example_tables;
mod git_lfs;
mod queue_rules;
mod s3;
mod s3_empty_objects;
mod s3_lists;
mod s3_programs;
mod s3_queue;
mod signed_requests;
mod terraform;
mod webdav;
