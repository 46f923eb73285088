//! Clients as operators see them.

use serde_json::{Value, json};

use crate::{core::lease::PrincipalName, store::Incarnation, telemetry::stream_info::RequestClient};

/// Returns the members of a document that name a client.
pub(super) fn view(client: RequestClient, incarnation: Incarnation) -> Value {
    json!({
        "client": client.address.map(|address| address.to_string()),
        "principal": client.principal.map(|principal| pseudonym(principal, incarnation)),
    })
}

/// Returns a short name for a client, the same in all processes of a store and different in every other store. It is
/// too short for testing guessed credentials against it.
pub(super) fn pseudonym(principal: PrincipalName, incarnation: Incarnation) -> String {
    if principal == PrincipalName::default() {
        return "anonymous".to_owned();
    }
    let hash = blake3::hash(&[&principal[..], &incarnation.0.to_be_bytes()].concat());
    hash.to_hex().chars().take(6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pseudonym_is_the_same_in_one_store_alone() {
        let (one, other) = (Incarnation(1), Incarnation(2));
        assert_eq!(pseudonym([7; 16], one), pseudonym([7; 16], one));
        assert_ne!(pseudonym([7; 16], one), pseudonym([7; 16], other));
        assert_ne!(pseudonym([7; 16], one), pseudonym([8; 16], one));
        assert_eq!(pseudonym([0; 16], one), "anonymous");
    }
}
