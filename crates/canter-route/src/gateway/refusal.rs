//! Conditions of requests that some gateways refuse.

use super::{backlog::WhenFull, kind::Request};

pub fn several_directions(request: &Request<'_>) -> bool {
    request.directions.len() != 1
}

pub fn several_filters_or_error_frames(request: &Request<'_>) -> bool {
    request.filters().list.len() > 1 || error_frames(request)
}

pub fn error_frames(request: &Request<'_>) -> bool {
    request.filters().error_mask != 0
}

pub fn filter_beside_rules(request: &Request<'_>) -> bool {
    request.ends.rules.is_some() && !request.filters().list.is_empty()
}

pub fn rules_or_filters(request: &Request<'_>) -> bool {
    request.ends.rules.is_some() || !request.filters().list.is_empty() || error_frames(request)
}

pub fn backlog(request: &Request<'_>) -> bool {
    request.settings.when_full != WhenFull::Wait || request.settings.priority
}

pub fn stats_or_waiting(request: &Request<'_>) -> bool {
    request.settings.stats.is_some() || request.settings.wait_for_interface
}
