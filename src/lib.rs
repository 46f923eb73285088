//! `ifmatch`: a reverse proxy that stops lost updates.
