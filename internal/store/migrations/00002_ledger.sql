-- The effect ledger: one row for each call, what waits for a person, and the decisions that were taken.

-- +goose Up
create table calls (
    tenant_id       text not null,
    session_id      text not null,
    call_id         text not null,
    pass            integer not null check (pass >= 0),
    ordinal         integer not null check (ordinal > 0),
    provider_id     text not null default '',
    tool            text not null,
    version         text not null default '',
    write           boolean not null default false,
    idempotent      boolean not null default false,
    input           bytea,
    signature       text not null default '',
    concurrency_key text not null default '',
    digest          text not null default '',
    policy_version  text not null default '',
    verdict         text not null check (verdict in ('run', 'ask', 'deny', 'refuse')),
    reasons         json,
    status          text not null check (status in ('waiting', 'reserved', 'executing', 'unknown',
                                                    'succeeded', 'failed', 'denied', 'expired', 'canceled', 'duplicate')),
    fence           integer not null default 0 check (fence >= 0),
    attempt         text not null default '', -- the name of the attempt that holds the fence
    duplicate_of    text not null default '',
    result          bytea,
    summary         text not null default '',
    error           bytea,
    result_artifact text not null default '',
    created_at      timestamptz not null default now(),
    started_at      timestamptz,
    finished_at     timestamptz,
    primary key (tenant_id, session_id, call_id),
    foreign key (tenant_id, session_id) references sessions on delete cascade,
    constraint calls_final_has_result
        check ((status in ('waiting', 'reserved', 'executing', 'unknown')) = (result is null)),
    constraint calls_only_asked_wait check (status <> 'waiting' or verdict = 'ask'),
    constraint calls_executing_has_fence check (status <> 'executing' or fence > 0)
) with (fillfactor = 70);
alter table calls alter column input set storage external;
alter table calls alter column result set storage external;
create index calls_order on calls (tenant_id, session_id, pass, ordinal, call_id);
create index calls_signature on calls (tenant_id, session_id, signature) where signature <> '';

create table approvals (
    tenant_id       text not null,
    id              bigint generated always as identity,
    session_id      text not null,
    call_id         text not null,
    kind            text not null check (kind in ('approval', 'reconcile', 'question')),
    status          text not null default 'open'
                    check (status in ('open', 'approved', 'denied', 'expired', 'canceled', 'consumed')),
    tool            text not null,
    input           json,
    truncated       boolean not null default false,
    summary         text not null default '',
    reasons         json,
    digest          text not null default '', -- as shown
    approved_digest text not null default '', -- as approved: differs when the decision edited the input
    requested_by    text not null default '',
    requested_at    timestamptz not null,
    expires_at      timestamptz, -- null: never
    answer          text not null default '',
    decided_by      text not null default '',
    claimed         boolean not null default false,
    note            text not null default '',
    reason          text not null default '',
    decision_key    text not null default '',
    input_before    bytea,
    input_after     bytea,
    decided_at      timestamptz,
    consumed_at     timestamptz,
    primary key (tenant_id, id),
    foreign key (tenant_id, session_id, call_id) references calls on delete cascade,
    constraint approvals_consumed_once check ((status = 'consumed') = (consumed_at is not null)),
    constraint approvals_decided check ((status = 'open') = (decided_at is null))
);
create unique index approvals_one_open on approvals (tenant_id, session_id, call_id) where status = 'open';
create index approvals_call on approvals (tenant_id, session_id, call_id, id);
create index approvals_waiting on approvals (tenant_id, requested_at, id) where status = 'open';

-- The answer given to each decision, under its key, so that a decision takes effect once.
create table decisions (
    tenant_id  text not null,
    session_id text not null,
    key        text not null check (key <> ''),
    ruled      json not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, session_id, key),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);

-- +goose StatementBegin
do $$
declare name text;
begin
    foreach name in array array['calls', 'approvals', 'decisions'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy tenant on %I
            using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
            with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global')$p$, name);
    end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
drop table decisions, approvals, calls;
