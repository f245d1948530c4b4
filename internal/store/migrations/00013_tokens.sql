-- Tokens that were used: each proves who acts once. Kept until nobody could use them any more.

-- +goose Up
create table used_tokens (
    tenant_id  text not null references tenants on delete cascade,
    token      text not null check (token <> ''), -- SHA-256 of its key's id and its own
    request    text not null, -- that it was used in: the same one may be tried again
    changed    boolean not null, -- what that one brought about
    expires_at timestamptz not null,
    primary key (tenant_id, token)
);
create index used_tokens_age on used_tokens (expires_at);
alter table used_tokens enable row level security;
alter table used_tokens force row level security;
create policy tenant on used_tokens
    using (tenant_id = nullif(current_setting('jig.tenant', true), ''))
    with check (tenant_id = nullif(current_setting('jig.tenant', true), '') and tenant_id <> '_global');
-- Only the owner, and only inside a function that says so, sees those of all tenants.
create policy sweep on used_tokens to current_role using (current_setting('jig.sweep', true) = 'on');

-- Deletes the tokens of all tenants, at most so many at once, that expired longer than age ago.
-- +goose StatementBegin
create function jig_forget_tokens(age interval, max_rows integer) returns bigint
language plpgsql volatile security definer
set search_path from current
as $$
declare
    gone bigint;
begin
    perform set_config('jig.sweep', 'on', true);
    with old as materialized (
        select q.tenant_id, q.token from used_tokens q
        where q.expires_at < now() - age
        order by q.expires_at
        limit max_rows
        for update skip locked
    )
    delete from used_tokens u using old where u.tenant_id = old.tenant_id and u.token = old.token;
    get diagnostics gone = row_count;
    perform set_config('jig.sweep', '', true);
    return gone;
end $$;
-- +goose StatementEnd
revoke all on function jig_forget_tokens(interval, integer) from public;

-- +goose Down
drop function jig_forget_tokens(interval, integer);
drop table used_tokens;
