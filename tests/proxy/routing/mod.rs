//! Routing: targets on their way to a backend, the fields that name clients, and routes without a guard.

mod balanced_clients;
mod forwarded_clients;
mod loops;
mod named_by_query;
mod odd_messages;
mod path_aliases;
mod path_prefixes;
mod unguarded;
mod unguarded_streams;
mod websockets;
