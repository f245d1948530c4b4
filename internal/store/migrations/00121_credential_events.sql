-- What happened with credentials. Workers have no rights on it.

-- +goose Up

-- One row for everything that is the same within a minute, so that repeating it does not fill the table.
create table credential_events (
    tenant_id       text not null check (tenant_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    id              bigint generated always as identity,
    kind            text not null check (kind in ('refused', 'logged_in', 'logged_out', 'key_created', 'key_revoked', 'embed_created', 'embed_revoked')),
    reason          text not null check (kind = 'refused' or reason = ''),
    credential_kind text not null,
    credential_id   text not null,
    principal       text not null, -- '': the operator, or the row counts what had no row of its own
    address         text not null,
    minute          timestamptz not null,
    digest          bytea not null check (octet_length(digest) = 32), -- of the five columns before minute
    count           bigint not null default 1,
    last_at         timestamptz not null default clock_timestamp(),
    primary key (tenant_id, id)
);
create unique index credential_events_once on credential_events (tenant_id, kind, minute, digest);
create index credential_events_old on credential_events (tenant_id, minute);
select jig_isolate('credential_events');

-- Deletes the rows of the current tenant that are older than 90 days. The server has no right to delete others.
create function jig_forget_credential_events() returns void
language sql volatile security definer
set search_path from current
as $$
    delete from credential_events e where e.tenant_id = nullif(current_setting('jig.tenant', true), '') and e.minute < now() - interval '90 days'
$$;

-- Returns the credential with an id and a hash if it is not valid any more, with the reason. Without the secret, nobody finds it.
-- +goose StatementBegin
create function jig_ended_credential(id text, secret bytea, idle interval)
returns table (tenant_id text, kind text, reason text, principal text, issuer text, subject text)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query
        select k.tenant_id, 'api_key', case when k.revoked_at is not null then 'revoked' else 'expired' end, k.principal, '', '' from api_keys k
        where k.key_id = id and k.hash = secret and (k.revoked_at is not null or k.expires_at <= now())
        union all
        select l.tenant_id, case when l.issuer = '' then 'dev_login' else 'login' end, case when l.revoked_at is not null then 'revoked' else 'expired' end,
            case when l.issuer = '' then l.subject else '' end, l.issuer, l.subject from logins l
        where l.login_id = id and l.hash = secret and (l.revoked_at is not null or l.expires_at <= now() or l.used_at <= now() - idle)
        union all
        select t.tenant_id, 'embed_token', case when t.revoked_at is null and t.expires_at <= now() then 'expired' else 'revoked' end, t.principal, '', ''
        from embed_tokens t where t.token_id = id and t.hash = secret and not jig_embed_token_counts(t);
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd
revoke all on function jig_forget_credential_events(), jig_ended_credential(text, bytea, interval) from public;

-- +goose Down
drop function jig_ended_credential(text, bytea, interval), jig_forget_credential_events();
drop table credential_events;
