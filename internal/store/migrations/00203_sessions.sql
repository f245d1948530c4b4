-- Sessions, their messages and passes, the log of events, and on whose word calls rest.

-- +goose Up
-- +goose StatementBegin

-- The row of a session changes with every event; the fill factor leaves room for HOT updates.
create table sessions (
    tenant_id       text not null references tenants,
    session_id      text not null check (session_id <> ''),
    status          text not null check (status in ('working', 'input_required', 'completed', 'failed', 'canceled')),
    -- How the session was started.
    agent           json not null,
    agent_name      text not null,
    principal       json not null,
    input           bytea,
    task            text not null default '',
    catalog       json,
    source          text not null default 'api' check (source in ('web', 'api', 'mcp', 'cli', 'schedule', 'agent', 'temporal')),
    request_digest  text not null default '', -- SHA-256 of the request that started the session
    -- The call that started the session, if another session did.
    parent_id       text not null default '',
    parent_call     text not null default '',
    parent_agent    text not null default '',
    root_agent      text not null default '', -- the agent of the topmost session of the tree, or of this one if it has no parent
    depth           integer not null default 0 check (depth >= 0),
    -- What the session has done so far.
    pass            integer not null default 0 check (pass >= 0),
    writes          integer not null default 0 check (writes >= 0),
    read_private    boolean not null default false, -- whether it has read private data, and data that outsiders may have written
    read_untrusted  boolean not null default false,
    tokens          bigint not null default 0 check (tokens >= 0),
    todo            json,
    summary_through integer not null default 0, -- the last pass that summary covers
    summary         text not null default '',
    -- See ledger.ModelWait; null if no request of the session has failed. It says something only about the pass that it names, and only until
    -- that pass has its turn.
    model_wait      json,
    refused_signals bigint not null default 0, -- signals that named no call of the session, including those that have no event
    last_seq        bigint not null default 0 check (last_seq >= 0), -- the number of the latest event
    held_by         text not null default '', -- the latest pause of the tenant that held a pass back, so that it has one event
    -- How the latest pass ended.
    answer          text not null default '',
    answer_artifact text not null default '',
    reason          text not null default '',
    error           json,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    swept_at        timestamptz, -- when jig_live_sessions last returned the session
    -- For the indexes of lists. A name is shortened, because an index entry has a maximum size and users choose these names.
    topmost          boolean generated always as (parent_id = '') stored,
    listed_requester text generated always as (left(coalesce(principal ->> 'id', ''), 200)) stored,
    primary key (tenant_id, session_id),
    constraint sessions_parent_is_named check ((parent_id = '') = (parent_call = ''))
) with (fillfactor = 60);
create index sessions_live on sessions (tenant_id, session_id) where status in ('working', 'input_required');
create index sessions_id on sessions (session_id); -- for jig_value_elsewhere
-- For lists, see the query SessionsListed: one for each filter and for the pair of agent and principal. A page reads each status by itself,
-- and sessions that others started apart from those that nobody did, so that it never reads sessions that it does not show.
create index sessions_listed on sessions (tenant_id, topmost, status, created_at, session_id);
create index sessions_agent on sessions (tenant_id, topmost, status, agent_name, created_at, session_id);
create index sessions_requester on sessions (tenant_id, topmost, status, listed_requester, created_at, session_id);
create index sessions_agent_requester on sessions (tenant_id, topmost, status, agent_name, listed_requester, created_at, session_id);
create index sessions_reason on sessions (tenant_id, topmost, status, reason, created_at, session_id) where reason <> '';
create index sessions_children on sessions (tenant_id, parent_id, created_at, session_id) where parent_id <> '';
select jig_isolate('sessions');
-- Only the owner sees the sessions of all tenants, and only in functions that set jig.sweep.
create policy sweep_read on sessions for select to current_role using (current_setting('jig.sweep', true) = 'on');
create policy sweep_mark on sessions for update to current_role using (current_setting('jig.sweep', true) = 'on');

-- What users and models said.
create table messages (
    tenant_id  text not null,
    session_id text not null,
    n          bigint generated always as identity,
    key        text not null, -- a message with the same key is stored once
    role       text not null check (role in ('user', 'assistant')),
    body       text not null,
    by         text not null default '',
    sender     text not null default '', -- the session whose call sent it; empty for people and programs
    pass       integer not null check (pass >= 0),
    at         timestamptz not null,
    primary key (tenant_id, session_id, key),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
create index messages_order on messages (tenant_id, session_id, n);
select jig_isolate('messages');

-- The model's answer in a pass: in body, or in an artifact if it is large.
create table turns (
    tenant_id  text not null,
    session_id text not null,
    pass       integer not null check (pass > 0),
    body       bytea,
    artifact   text,
    tokens     bigint not null check (tokens >= 0), -- input and output
    -- The model that was asked, and what it used; the cost is in billionths of the tenant's currency.
    model               text not null default '',
    output_tokens       bigint not null default 0,
    cache_read_tokens   bigint not null default 0,
    cache_create_tokens bigint not null default 0,
    cost                bigint not null default 0,
    created_at          timestamptz not null default now(),
    primary key (tenant_id, session_id, pass),
    foreign key (tenant_id, session_id) references sessions on delete cascade,
    check ((body is null) <> (artifact is null))
);
create index turns_at on turns (tenant_id, created_at); -- for reports of usage
alter table turns alter column body set storage external;
select jig_isolate('turns');

-- How a pass ended. The first end that is stored counts.
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
select jig_isolate('pass_ends');

-- The log of each session, numbered without gaps. It needs no foreign key: the statement that inserts an event also updates the
-- session's last_seq.
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
    -- The id of the transaction that wrote the event. Rows become visible in another order than their transactions began. A reader loses none if it
    -- reads only below the oldest transaction that still runs, in the order of this column.
    written    bigint default pg_current_xact_id()::text::bigint,
    primary key (tenant_id, session_id, seq)
);
select jig_isolate('events');

-- The events that clients receive which follow all sessions of a tenant: what changes the state of a session, and what concerns people.
create function jig_notable(type text) returns boolean language sql immutable parallel safe
return type in ('session.started', 'session.completed', 'session.failed', 'session.canceled', 'session.held', 'session.paused',
    'session.resumed', 'message.added', 'tool.needs_approval', 'tool.approved', 'tool.denied', 'tool.expired', 'tool.edited', 'tool.asked',
    'tool.answered', 'tool.outcome_unknown', 'tool.in_doubt', 'tool.reconciled', 'approval.voted', 'approval.delegated', 'approval.reminded',
    'approval.escalated', 'approval.withdrawn', 'grant.created', 'budget.exhausted');
create index events_in_order on events (tenant_id, written, session_id, seq) where written is not null and jig_notable(type);

-- Returns up to max_rows live sessions, of all tenants, that have not changed for a minute. Sessions that were returned longest ago
-- come first.
create function jig_live_sessions(max_rows integer)
returns table (tenant_id text, session_id text, status text, updated_at timestamptz)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    -- Materialized, because inside a join the limit would apply again for each row of the other side.
    return query with picked as materialized (
        select q.tenant_id, q.session_id from sessions q
        where q.status in ('working', 'input_required') and q.updated_at < now() - interval '1 minute'
        order by q.swept_at nulls first, q.updated_at
        limit max_rows
        for update skip locked
    )
    update sessions s set swept_at = clock_timestamp()
    from picked
    where s.tenant_id = picked.tenant_id and s.session_id = picked.session_id
    returning s.tenant_id, s.session_id, s.status, s.updated_at;
    perform set_config('jig.sweep', '', true);
end $$;

-- Returns up to max_rows live sessions, of all tenants, in the order of their keys, starting after the given key. The command that
-- marks calls after a restore uses it.
create function jig_sessions_after(tenant text, session text, max_rows integer)
returns table (tenant_id text, session_id text)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query select s.tenant_id, s.session_id from sessions s
    where s.status in ('working', 'input_required') and (s.tenant_id, s.session_id) > (tenant, session)
    order by s.tenant_id, s.session_id
    limit max_rows;
    perform set_config('jig.sweep', '', true);
end $$;

-- Returns the number of the latest event of each given session. Processes poll it in case a notification was lost.
create function jig_last_seqs(tenants text[], sessions text[])
returns table (tenant_id text, session_id text, last_seq bigint)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query select s.tenant_id, s.session_id, s.last_seq
    from unnest($1, $2) as w(tenant_id, session_id)
    join sessions s on s.tenant_id = w.tenant_id and s.session_id = w.session_id;
    perform set_config('jig.sweep', '', true);
end $$;

-- Counts the sessions of all tenants that have not ended. A session of which a call waits for a person needs input.
create function jig_sessions_open() returns table (tenant text, status text, count bigint)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select s.tenant_id, case when a.session_id is null then s.status else 'input_required' end, count(*)
    from sessions s
    left join (select distinct o.tenant_id, o.session_id from approvals o where o.status = 'open') a
        on a.tenant_id = s.tenant_id and a.session_id = s.session_id
    where s.status in ('working', 'input_required') group by 1, 2;
    perform set_config('jig.sweep', '', true);
end $$;

revoke all on function jig_sessions_open(), jig_live_sessions(integer), jig_sessions_after(text, text, integer), jig_last_seqs(text[], text[]) from public;

-- Those whose words a session works with: its principal, those of the session that started it, the authors of messages, events and answers, and those who
-- changed the input of a call or denied one with a reason.
-- Calls of later passes than pass rest on them; words that were there at the start have pass -1.
create table askers (
    tenant_id  text not null,
    session_id text not null,
    principal  text not null check (principal <> ''),
    claimed    boolean not null default false,
    by         text not null check (by in ('started', 'triggered', 'message', 'event', 'answer', 'review')),
    maker      text not null default '', -- who made the asker's credential
    pass       integer not null,
    primary key (tenant_id, session_id, principal, claimed, by, maker),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
select jig_isolate('askers');

-- +goose StatementEnd
