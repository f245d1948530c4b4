-- Lineage: which session and call started a session, who is at the root of its tree, and how the root was started.

-- +goose Up
alter table sessions
    add column parent_call text not null default '', -- the call of the parent session that started this one
    add column parent_agent text not null default '',
    add column root_agent text not null default '', -- the agent of the first session of the tree; the session's own without a parent
    add column source text not null default 'api' check (source in ('web', 'api', 'mcp', 'cli', 'schedule', 'agent')),
    add constraint sessions_parent_is_named check ((parent_id = '') = (parent_call = ''));
alter table calls
    add column child text not null default ''; -- the session that the call started
alter table approvals
    add column parent_id text not null default '', -- of the session that asks
    add column parent_call text not null default '';
-- What waits below a session is found from its calls that wait for a session of their own. These are few, and become no more
-- than a few while the session runs.
create index calls_delegated on calls (tenant_id, session_id) where child <> '';

-- +goose Down
drop index calls_delegated;
alter table approvals drop column parent_call, drop column parent_id;
alter table calls drop column child;
alter table sessions drop constraint sessions_parent_is_named, drop column source, drop column root_agent, drop column parent_agent, drop column parent_call;
