//! The way in which the states of Terraform are stored.

/// The method by which a backend gets a state that its client sends with POST (`store_method`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreMethod {
    /// The method of the client.
    #[default]
    AsSent,
    /// PUT, as file servers want it.
    Put,
}
