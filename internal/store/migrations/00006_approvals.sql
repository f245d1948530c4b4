-- What approvals take and who said what, standing approvals, and pauses.

-- +goose Up
alter table approvals
    add column agent text not null default '',
    add column policy_version text not null default '',
    add column terms json, -- null: anybody, once
    add column votes json,
    add column delegations json,
    add column noticed_at timestamptz, -- up to when reminders and escalations were seen to; null: none was
    add column question json,
    add column grant_id text not null default '',
    add column patch json;
alter table calls
    add column patch json, -- what a person changed of the input, from what was asked for
    add column edited_by text not null default '';

create table grants (
    tenant_id  text not null references tenants on delete cascade,
    grant_id   text not null check (grant_id <> ''),
    tool       text not null check (tool <> ''),
    agent      text not null default '',
    condition  text not null,
    max_uses   integer not null check (max_uses > 0),
    used       integer not null default 0,
    expires_at timestamptz not null,
    given_by   text[] not null check (cardinality(given_by) > 0),
    claimed    boolean not null default false,
    note       text not null default '',
    session_id text not null default '',
    call_id    text not null default '',
    created_at timestamptz not null default now(),
    revoked_at timestamptz,
    revoked_by text not null default '',
    primary key (tenant_id, grant_id),
    constraint grants_never_overdrawn check (used between 0 and max_uses)
);
create index grants_live on grants (tenant_id, tool) where revoked_at is null;

create table pauses (
    tenant_id text not null references tenants on delete cascade,
    scope     text not null check (scope in ('tenant', 'tool', 'session')),
    target    text not null default '',
    by        text not null,
    claimed   boolean not null default false,
    reason    text not null default '',
    at        timestamptz not null default now(),
    lifted_at timestamptz,
    lifted_by text not null default '',
    primary key (tenant_id, scope, target),
    constraint pauses_target check ((scope = 'tenant') = (target = ''))
);

-- +goose StatementBegin
do $$
declare name text;
begin
    foreach name in array array['grants', 'pauses'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy tenant on %I
            using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
            with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global')$p$, name);
    end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
drop table pauses, grants;
alter table calls drop column edited_by, drop column patch;
alter table approvals
    drop column patch, drop column grant_id, drop column question, drop column noticed_at, drop column delegations,
    drop column votes, drop column terms, drop column policy_version, drop column agent;
