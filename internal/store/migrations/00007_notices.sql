-- The outbox: word of approvals, stored in the transaction that it tells of, and how far each target has been told.

-- +goose Up
create table notices (
    tenant_id  text not null,
    id         text not null check (id <> ''),
    kind       text not null check (kind <> ''),
    session_id text not null,
    call_id    text not null,
    body       bytea not null,
    next_at    timestamptz default now(), -- when a dispatcher takes it up; null once its deliveries are open
    created_at timestamptz not null default now(),
    primary key (tenant_id, id),
    foreign key (tenant_id, session_id) references sessions on delete cascade
);
create index notices_due on notices (next_at) where next_at is not null;
create index notices_of_session on notices (tenant_id, session_id);
create index notices_age on notices (created_at);

-- One for each webhook that a notice goes to. A target is the hash of the webhook's address.
create table notice_deliveries (
    tenant_id  text not null,
    notice_id  text not null,
    target     text not null check (target <> ''),
    status     text not null default 'pending' check (status in ('pending', 'sent', 'given_up', 'gone')),
    attempts   integer not null default 0 check (attempts >= 0),
    next_at    timestamptz not null default now(), -- of a pending one: when it is due, or until when a dispatcher has it
    last_error text not null default '',
    settings   text not null default '', -- of one whose target is gone: the version of the settings that named it
    ended_at   timestamptz,
    primary key (tenant_id, notice_id, target),
    foreign key (tenant_id, notice_id) references notices on delete cascade,
    check ((status = 'pending') = (ended_at is null))
);
create index notice_deliveries_due on notice_deliveries (tenant_id, target, next_at) where status = 'pending';
create index notice_deliveries_gone on notice_deliveries (tenant_id, target) where status = 'gone';

-- +goose StatementBegin
do $$
declare name text;
begin
    foreach name in array array['notices', 'notice_deliveries'] loop
        execute format('alter table %I enable row level security', name);
        execute format('alter table %I force row level security', name);
        execute format($p$create policy tenant on %I
            using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
            with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global')$p$, name);
        -- Only the owner, and only inside a function that says so, sees those of all tenants.
        execute format($p$create policy sweep on %I to current_role using (current_setting('jig.sweep', true) = 'on')$p$, name);
    end loop;
end $$;
-- +goose StatementEnd

-- Takes the notices of all tenants whose deliveries are not open yet, for as long as the lease lasts.
-- +goose StatementBegin
create function jig_take_notices(max_rows integer, lease interval)
returns table (tenant_id text, body bytea)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query with picked as materialized (
        select q.tenant_id, q.id from notices q
        where q.next_at <= now()
        order by q.next_at
        limit max_rows
        for update skip locked
    )
    update notices n set next_at = clock_timestamp() + lease
    from picked
    where n.tenant_id = picked.tenant_id and n.id = picked.id
    returning n.tenant_id, n.body;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- Takes the delivery that has been due longest of each target, at most per_tenant of one tenant, those under way included,
-- and none of a target that has one under way. What is under way with the caller stands in two arrays of one length.
-- +goose StatementBegin
create function jig_take_deliveries(max_rows integer, per_tenant integer, busy_tenants text[], busy_targets text[], lease interval)
returns table (tenant_id text, target text, attempts integer, body bytea)
language plpgsql volatile security definer
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('jig.sweep', 'on', true);
    return query with recursive targets as ( -- from target to target by the index, however much waits for each
        (select d.tenant_id, d.target from notice_deliveries d where d.status = 'pending' order by d.tenant_id, d.target limit 1)
        union all
        select following.* from targets t cross join lateral (
            select d.tenant_id, d.target from notice_deliveries d
            where d.status = 'pending' and (d.tenant_id, d.target) > (t.tenant_id, t.target)
            order by d.tenant_id, d.target limit 1) following
    ), heads as materialized (
        select h.* from targets t cross join lateral (
            select d.tenant_id, d.notice_id, d.target, d.next_at from notice_deliveries d
            where d.tenant_id = t.tenant_id and d.target = t.target and d.status = 'pending' and d.next_at <= now()
            order by d.next_at limit 1
            for update skip locked) h
        where not exists (select from unnest(busy_tenants, busy_targets) as b(tenant_id, target)
            where b.tenant_id = t.tenant_id and b.target = t.target)
    ), ranked as (
        select h.*, row_number() over (partition by h.tenant_id order by h.next_at) as place from heads h
    ), picked as materialized (
        select r.tenant_id, r.notice_id, r.target from ranked r
        where r.place + cardinality(array_positions(busy_tenants, r.tenant_id)) <= per_tenant
        order by r.next_at limit max_rows
    )
    update notice_deliveries d set next_at = clock_timestamp() + lease
    from picked join notices n on n.tenant_id = picked.tenant_id and n.id = picked.notice_id
    where d.tenant_id = picked.tenant_id and d.notice_id = picked.notice_id and d.target = picked.target
    returning d.tenant_id, d.target, d.attempts, n.body;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- Deletes notices of all tenants, at most so many at once, that are older than age and whose deliveries all ended before it.
-- +goose StatementBegin
create function jig_forget_notices(age interval, max_rows integer) returns bigint
language plpgsql volatile security definer
set search_path from current
as $$
declare
    gone bigint;
begin
    perform set_config('jig.sweep', 'on', true);
    with old as materialized (
        select q.tenant_id, q.id from notices q
        where q.created_at < now() - age and q.next_at is null and not exists (
            select from notice_deliveries d where d.tenant_id = q.tenant_id and d.notice_id = q.id
            and (d.ended_at is null or d.ended_at >= now() - age))
        order by q.created_at
        limit max_rows
        for update skip locked
    )
    delete from notices n using old where n.tenant_id = old.tenant_id and n.id = old.id;
    get diagnostics gone = row_count;
    perform set_config('jig.sweep', '', true);
    return gone;
end $$;
-- +goose StatementEnd

revoke all on function jig_take_notices(integer, interval), jig_take_deliveries(integer, integer, text[], text[], interval),
    jig_forget_notices(interval, integer) from public;

-- +goose Down
drop function jig_forget_notices(interval, integer), jig_take_deliveries(integer, integer, text[], text[], interval),
    jig_take_notices(integer, interval);
drop table notice_deliveries, notices;
