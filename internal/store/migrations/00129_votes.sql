-- Approvals that are withdrawn, retries by time, and what people changed in a call.

-- +goose Up

create or replace function jig_notable(type text) returns boolean language sql immutable parallel safe
return type in ('session.started', 'session.completed', 'session.failed', 'session.canceled', 'session.held', 'session.paused',
    'session.resumed', 'message.added', 'tool.needs_approval', 'tool.approved', 'tool.denied', 'tool.expired', 'tool.edited', 'tool.asked',
    'tool.answered', 'tool.outcome_unknown', 'tool.in_doubt', 'tool.reconciled', 'approval.voted', 'approval.delegated', 'approval.reminded',
    'approval.escalated', 'approval.withdrawn', 'grant.created', 'budget.exhausted');
reindex index events_in_order;

-- +goose Down
create or replace function jig_notable(type text) returns boolean language sql immutable parallel safe
return type in ('session.started', 'session.completed', 'session.failed', 'session.canceled', 'session.held', 'session.paused',
    'session.resumed', 'message.added', 'tool.needs_approval', 'tool.approved', 'tool.denied', 'tool.expired', 'tool.edited', 'tool.asked',
    'tool.answered', 'tool.outcome_unknown', 'tool.in_doubt', 'tool.reconciled', 'approval.voted', 'approval.delegated', 'approval.reminded',
    'approval.escalated', 'grant.created', 'budget.exhausted');
reindex index events_in_order;
