-- The order in which clients that follow all sessions of a tenant receive events.

-- +goose Up

-- The id of the transaction that wrote an event; null for events from before this migration. Rows become visible in another order than their
-- transactions began. A reader loses none if it reads only below the oldest transaction that still runs, in the order of this column.
alter table events add column written bigint;
alter table events alter column written set default pg_current_xact_id()::text::bigint;

-- The events that such clients receive: what changes the state of a session, and what concerns people.
create function jig_notable(type text) returns boolean language sql immutable parallel safe
return type in ('session.started', 'session.completed', 'session.failed', 'session.canceled', 'session.held', 'session.paused',
    'session.resumed', 'message.added', 'tool.needs_approval', 'tool.approved', 'tool.denied', 'tool.expired', 'tool.edited', 'tool.asked',
    'tool.answered', 'tool.outcome_unknown', 'tool.in_doubt', 'tool.reconciled', 'approval.voted', 'approval.delegated', 'approval.reminded',
    'approval.escalated', 'grant.created', 'budget.exhausted');
create index events_in_order on events (tenant_id, written, session_id, seq) where written is not null and jig_notable(type);

-- +goose Down
drop index events_in_order;
drop function jig_notable(text);
alter table events drop column written;
