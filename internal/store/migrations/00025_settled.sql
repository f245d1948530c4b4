-- Calls that were settled late whose workflow was not told yet: it holds them to be unknown.

-- +goose Up
create table settled_calls (
    tenant_id  text not null,
    session_id text not null,
    call_id    text not null,
    frame      text not null default '', -- the call whose composition waits for this one
    told_at    timestamptz not null default clock_timestamp(), -- when somebody last set out to tell the workflow
    primary key (tenant_id, session_id, call_id),
    foreign key (tenant_id, session_id, call_id) references calls on delete cascade
);
create index settled_calls_age on settled_calls (told_at);
alter table settled_calls enable row level security;
alter table settled_calls force row level security;
create policy tenant on settled_calls
    using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
    with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global');
-- Only the owner, and only inside a function that says so, sees those of all tenants.
create policy sweep on settled_calls to current_role using (current_setting('jig.sweep', true) = 'on');

-- Takes the calls of all tenants that nobody set out to tell of for as long as age, oldest first. What is taken is not taken again
-- before age has passed once more.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- Deletes the row of a call of the current tenant: its workflow knows.
-- +goose StatementBegin
create function jig_told_settled(session text, call text) returns void
language plpgsql volatile security definer
set search_path from current
as $$
begin
    delete from settled_calls s
    where s.tenant_id = nullif(current_setting('jig.tenant', true), '') and s.session_id = session and s.call_id = call;
end $$;
-- +goose StatementEnd
revoke all on function jig_take_settled(interval, integer), jig_told_settled(text, text) from public;

-- +goose Down
drop function jig_told_settled(text, text), jig_take_settled(interval, integer);
drop table settled_calls;
