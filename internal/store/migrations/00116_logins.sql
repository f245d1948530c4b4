-- Logins of people with a browser. Workers have no rights on them.

-- +goose Up
create table logins (
    tenant_id  text not null check (tenant_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    login_id   text not null check (login_id ~ '^[a-z2-7]{16}$'),
    hash       bytea not null check (octet_length(hash) = 32), -- of the cookie
    attempt    bytea not null check (octet_length(attempt) = 32), -- identifies the attempt of which the login came
    issuer     text not null, -- '': a development login
    subject    text not null check (subject <> ''),
    name       text not null,
    groups     text[] not null,
    created_at timestamptz not null default clock_timestamp(),
    used_at    timestamptz not null default clock_timestamp(), -- to the minute
    expires_at timestamptz not null,
    revoked_at timestamptz,
    primary key (tenant_id, login_id)
);
create unique index logins_id on logins (login_id);
create unique index logins_attempt on logins (attempt);
select jig_isolate('logins');
-- As for API keys, the tenant follows from the login.
create policy sweep on logins to current_role using (current_setting('jig.sweep', true) = 'on');

-- Returns the login with an id and a hash, if it is valid now, and notes that it was used.
-- +goose StatementBegin
create function jig_login(id text, secret bytea, idle interval)
returns table (tenant_id text, login_id text, issuer text, subject text, name text, groups text[], created_at timestamptz, expires_at timestamptz)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    update logins l set used_at = now()
    where l.login_id = id and l.hash = secret and l.revoked_at is null and l.expires_at > now()
        and l.used_at > now() - idle and l.used_at < now() - interval '1 minute';
    return query select l.tenant_id, l.login_id, l.issuer, l.subject, l.name, l.groups, l.created_at, l.expires_at from logins l
    where l.login_id = id and l.hash = secret and l.revoked_at is null and l.expires_at > now() and l.used_at > now() - idle;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- Returns those of the given logins that are valid now.
-- +goose StatementBegin
create function jig_logins_valid(ids text[], idle interval) returns setof text
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select l.login_id from logins l
    where l.login_id = any(ids) and l.revoked_at is null and l.expires_at > now() and l.used_at > now() - idle;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd
revoke all on function jig_login(text, bytea, interval), jig_logins_valid(text[], interval) from public;

-- +goose Down
drop function jig_logins_valid(text[], interval), jig_login(text, bytea, interval);
drop table logins;
