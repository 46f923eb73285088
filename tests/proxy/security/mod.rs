//! Security: hostile and malformed requests, limits, and the form of refusals.

mod aborted_heads;
mod bad_input;
mod connection_fields;
mod hosts;
mod limits;
mod logged_secrets;
mod mutated_input;
mod open_input;
mod own_fields;
mod readings;
mod refusal_form;
mod refusals;
mod refused_untouched;
mod sent_fields;
mod smuggling;
mod unread;
mod weighed;
