-- The effect ledger: one row for each call. Compositions, whose steps are calls of their own, and the events that they wait for.

-- +goose Up
-- +goose StatementBegin

create table calls (
    tenant_id       text not null,
    session_id      text not null,
    call_id         text not null,
    pass            integer not null check (pass >= 0),
    ordinal         integer not null check (ordinal > 0),
    frame           text not null default '', -- the call whose composition made this one
    nth             integer not null default 0, -- its position among the calls that were admitted together
    -- What is called, and with what.
    provider_id     text not null default '',
    tool            text not null,
    version         text not null default '',
    write           boolean not null default false,
    idempotent      boolean not null default false,
    input           bytea,
    signature       text not null default '',
    concurrency_key text not null default '',
    reads_private   boolean not null default false, -- what its result may contain
    reads_untrusted boolean not null default false,
    flow            json, -- where its arguments come from; null if the session had read neither private nor untrusted data
    idempotency_key text not null check (idempotency_key <> '' and octet_length(idempotency_key) <= 255),
    duplicate_of    text not null default '',
    -- What policy and people decided.
    verdict         text not null check (verdict in ('run', 'ask', 'deny', 'refuse')),
    reasons         json,
    policy_version  text not null default '',
    digest          text not null default '',
    preview         json, -- what people were shown of its effect; null if its tool has no previews or nobody was asked
    previews        integer not null default 0 check (previews >= 0), -- how often the preview turned out to be different before the call ran
    patch           json, -- what people changed in the input, relative to the input that approval was requested for
    edited_by       text not null default '',
    -- The state of the call.
    status          text not null check (status in ('waiting', 'reserved', 'executing', 'unknown',
                                                    'succeeded', 'failed', 'denied', 'expired', 'canceled', 'duplicate')),
    fence           integer not null default 0 check (fence >= 0),
    attempt         text not null default '', -- the name of the attempt that holds the fence
    failed_at       timestamptz, -- the first failure of the open call that may pass
    failures        integer not null default 0 check (failures >= 0), -- the attempts that ended with such a failure
    tried           boolean not null default false, -- an attempt began before the ledger knew of it, and has not reported
    model_wait      json, -- see ledger.ModelWait; null if no request has failed. The call waits only while it is reserved and its fence is the attempt
    held_by         text not null default '', -- the latest pause that held the call back, so that it has one event
    in_doubt        boolean not null default false, -- an earlier attempt may have taken effect, or may have begun since the backup that was restored
    child           text not null default '', -- the session that the call started
    request         text not null default '', -- what it asks of another session, as a hash, so that nobody else can ask something else in its name
    -- How it ended.
    result          bytea,
    summary         text not null default '',
    error           bytea,
    result_artifact text not null default '',
    created_at      timestamptz not null default now(),
    started_at      timestamptz,
    finished_at     timestamptz,
    -- The frame while the call is open. The index over it does not contain result or status, because an index over either would
    -- prevent HOT updates of all calls.
    open_frame      text generated always as (case when frame <> '' and result is null then frame end) stored,
    primary key (tenant_id, session_id, call_id),
    foreign key (tenant_id, session_id) references sessions on delete cascade,
    constraint calls_final_has_result
        check ((status in ('waiting', 'reserved', 'executing', 'unknown')) = (result is null)),
    constraint calls_only_asked_wait check (status <> 'waiting' or verdict = 'ask'),
    constraint calls_executing_has_fence check (status <> 'executing' or fence > 0),
    constraint calls_named_after_frame check (frame = '' or starts_with(call_id, frame || '/'))
) with (fillfactor = 70);
alter table calls alter column input set storage external;
alter table calls alter column result set storage external;
create index calls_order on calls (tenant_id, session_id, frame, pass, ordinal, created_at, nth);
create index calls_signature on calls (tenant_id, session_id, signature) where signature <> '';
create index calls_open_of_frame on calls (tenant_id, session_id, open_frame, created_at, nth) where open_frame is not null;
create index calls_started on calls (tenant_id, started_at) where started_at is not null; -- for reports of usage
-- For finding what waits in the sessions that a session started. A session has few such calls, even a long one.
create index calls_delegated on calls (tenant_id, session_id) where child <> '';
select jig_isolate('calls');

-- The state of each composition, under the call that it answers.
create table frames (
    tenant_id       text not null,
    session_id      text not null,
    call_id         text not null,
    kind            text not null,
    name            text not null,
    version         text not null,
    entity_id       text not null default '', -- the entity that it fills
    received_before bigint not null default 0, -- the number of the last event that the session had received when it began
    fence           integer not null default 0 check (fence >= 0),
    state           bytea,
    waits           json, -- the steps that wait for events or times
    revision        bigint not null default 0 check (revision >= 0),
    done            boolean not null default false,
    result          bytea,
    result_artifact text not null default '',
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    primary key (tenant_id, session_id, call_id),
    foreign key (tenant_id, session_id, call_id) references calls on delete cascade,
    constraint frames_done_has_result check (done = (result is not null))
) with (fillfactor = 60);
alter table frames alter column state set storage external;
alter table frames alter column result set storage external;
select jig_isolate('frames');

-- The values that a composition has computed: in value, or in an artifact if they are large.
create table frame_values (
    tenant_id  text not null,
    session_id text not null,
    frame      text not null,
    path       text not null,
    value      bytea,
    artifact   text,
    primary key (tenant_id, session_id, frame, path),
    foreign key (tenant_id, session_id, frame) references frames on delete cascade,
    check ((value is null) <> (artifact is null))
);
alter table frame_values alter column value set storage external;
select jig_isolate('frame_values');

-- The events that were sent to a session, numbered in the order of their arrival.
create table received (
    tenant_id  text not null,
    session_id text not null,
    n          bigint not null check (n > 0),
    key        text not null check (key <> ''), -- an event with the same key is stored once
    name       text not null check (name <> ''),
    data       json,
    size       bigint not null default 0 check (size >= 0), -- the bytes of this event and of all before it
    by         text not null default '',
    claimed    boolean not null default false, -- nobody proved who sent it
    at         timestamptz not null,
    primary key (tenant_id, session_id, n),
    unique (tenant_id, session_id, key),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
select jig_isolate('received');

-- The received events that a composition has consumed.
create table received_consumed (
    tenant_id  text not null,
    session_id text not null,
    frame      text not null,
    n          bigint not null,
    primary key (tenant_id, session_id, frame, n),
    foreign key (tenant_id, session_id, frame) references frames on delete cascade
);
select jig_isolate('received_consumed');

-- Which call of another session undoes a call, so that nothing is undone twice. The row outlives that other session.
create table undos (
    tenant_id  text not null,
    session_id text not null,
    call_id    text not null,
    by_session text not null,
    by_call    text not null,
    primary key (tenant_id, session_id, call_id),
    foreign key (tenant_id, session_id, call_id) references calls on delete cascade
);
select jig_isolate('undos');

-- Calls that a late result settled, and whose workflow does not know that yet.
create table settled_calls (
    tenant_id  text not null,
    session_id text not null,
    call_id    text not null,
    frame      text not null default '', -- the call whose composition waits for this one
    told_at    timestamptz not null default clock_timestamp(), -- when a process last began to inform the workflow
    primary key (tenant_id, session_id, call_id),
    foreign key (tenant_id, session_id, call_id) references calls on delete cascade
);
create index settled_calls_age on settled_calls (told_at);
select jig_isolate('settled_calls');
-- Only the owner sees the settled calls of all tenants, and only in functions that set jig.sweep.
create policy sweep on settled_calls to current_role using (current_setting('jig.sweep', true) = 'on');

-- Takes up to max_rows settled calls, of all tenants, that no process has taken for the duration age, the oldest first. Nobody else
-- gets them until that duration has passed again.
create function jig_take_settled(age interval, max_rows integer)
returns table (tenant_id text, session_id text, call_id text, frame text)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query with picked as materialized (
        select q.tenant_id, q.session_id, q.call_id from settled_calls q
        where q.told_at < clock_timestamp() - age
        order by q.told_at
        limit max_rows
        for update skip locked
    )
    update settled_calls s set told_at = clock_timestamp()
    from picked
    where s.tenant_id = picked.tenant_id and s.session_id = picked.session_id and s.call_id = picked.call_id
    returning s.tenant_id, s.session_id, s.call_id, s.frame;
    perform set_config('jig.sweep', '', true);
end $$;

-- Deletes a settled call of the current tenant, because its workflow has been informed.
create function jig_told_settled(session text, call text) returns void
language plpgsql volatile security definer
set search_path from current
as $$
begin
    delete from settled_calls s
    where s.tenant_id = nullif(current_setting('jig.tenant', true), '') and s.session_id = session and s.call_id = call;
end $$;
revoke all on function jig_take_settled(interval, integer), jig_told_settled(text, text) from public;

-- +goose StatementEnd
