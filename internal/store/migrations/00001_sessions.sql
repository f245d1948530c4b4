-- Sessions, what people and models said in them, and the log of what happened.
-- Every table carries tenant_id under forced row-level security. A transaction sees the tenant that it named in jig.tenant,
-- and nothing when it named none.

-- +goose Up
create table tenants (
    tenant_id  text primary key check (tenant_id = '_global' or tenant_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    created_at timestamptz not null default now()
);

create table sessions (
    tenant_id       text not null references tenants,
    session_id      text not null check (session_id <> ''),
    agent           json not null,
    agent_name      text not null,
    principal       json not null,
    input           bytea,
    task            text not null default '',
    catalogue       json,
    status          text not null check (status in ('working', 'input_required', 'completed', 'failed', 'canceled')),
    pass            integer not null default 0 check (pass >= 0),
    writes          integer not null default 0 check (writes >= 0),
    tokens          bigint not null default 0 check (tokens >= 0),
    todo            json,
    answer          text not null default '',
    answer_artifact text not null default '',
    reason          text not null default '',
    error           json,
    parent_id       text not null default '',
    depth           integer not null default 0 check (depth >= 0),
    summary_through integer not null default 0,
    summary         text not null default '',
    last_seq        bigint not null default 0 check (last_seq >= 0),
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    swept_at        timestamptz,
    primary key (tenant_id, session_id)
) with (fillfactor = 60); -- the counter changes with every event: room for HOT updates
create index sessions_live on sessions (tenant_id, session_id) where status in ('working', 'input_required');

create table messages (
    tenant_id  text not null,
    session_id text not null,
    n          bigint generated always as identity,
    key        text not null,
    role       text not null check (role in ('user', 'assistant')),
    body       text not null,
    by         text not null default '',
    pass       integer not null check (pass >= 0),
    at         timestamptz not null,
    primary key (tenant_id, session_id, key),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
create index messages_order on messages (tenant_id, session_id, n);

-- The model's answer of a pass: in body, or in an artifact when it is large.
create table turns (
    tenant_id  text not null,
    session_id text not null,
    pass       integer not null check (pass > 0),
    body       bytea,
    artifact   text,
    tokens     bigint not null check (tokens >= 0),
    created_at timestamptz not null default now(),
    primary key (tenant_id, session_id, pass),
    foreign key (tenant_id, session_id) references sessions on delete cascade,
    check ((body is null) <> (artifact is null))
);
alter table turns alter column body set storage external;

-- How a pass ended; the first word counts.
create table pass_ends (
    tenant_id  text not null,
    session_id text not null,
    pass       integer not null check (pass >= 0),
    body       bytea not null,
    answer     text not null default '', -- an artifact's id
    ended_at   timestamptz not null default now(),
    primary key (tenant_id, session_id, pass),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);

-- No foreign key: an event is inserted by the statement that raises its session's counter.
create table events (
    tenant_id  text not null,
    session_id text not null,
    seq        bigint not null check (seq > 0),
    at         timestamptz not null,
    type       text not null check (type <> ''),
    pass       integer not null default 0,
    call_id    text not null default '',
    tool       text not null default '',
    data       json,
    primary key (tenant_id, session_id, seq)
);

-- +goose StatementBegin
do $$
declare name text;
begin
    foreach name in array array['tenants', 'sessions', 'messages', 'turns', 'pass_ends', 'events'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy tenant on %I
            using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
            with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global')$p$, name);
    end loop;
end $$;
-- +goose StatementEnd
create policy operator on tenants to current_role using (tenant_id = '_global') with check (tenant_id = '_global');
insert into tenants (tenant_id) values ('_global');

-- +goose Down
drop table events, pass_ends, turns, messages, sessions, tenants;
