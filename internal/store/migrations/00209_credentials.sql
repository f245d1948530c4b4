-- Who acts: the keys of servers, tokens that were used, and what the server keeps for itself: credentials and what happened with them. Workers have no
-- rights on the last two.

-- +goose Up
-- +goose StatementBegin

-- The server's role revokes keys and credentials, and must not undo that: whoever steals a server's key often finds the database's password beside it.
create function jig_keep_revoked() returns trigger
language plpgsql
set search_path from current
as $$
begin
    raise exception 'what was revoked stays revoked' using errcode = 'insufficient_privilege';
end $$;

-- The keys of servers. Only the certificate counts, which the root key signs; workers have the public root key in their settings.
create table server_keys (
    key_id      text primary key check (key_id ~ '^srv_[0-9a-f]{32}$'),
    certificate text not null check (certificate <> ''),
    created_at  timestamptz not null default clock_timestamp(),
    revoked_at  timestamptz -- null: never
);
create trigger keep_revoked before update on server_keys for each row
when (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at) execute function jig_keep_revoked();

-- Tokens that have been used; each can be used for one request. A row stays until its token has expired, even if the tenant is
-- erased before then, so there is no foreign key.
create table used_tokens (
    tenant_id  text not null,
    token      text not null check (token <> ''), -- SHA-256 of the key's id and the token's id
    request    text not null, -- the request that used it, which may be retried
    changed    boolean not null, -- whether that request changed anything
    expires_at timestamptz not null,
    primary key (tenant_id, token)
);
create index used_tokens_age on used_tokens (expires_at);
select jig_isolate('used_tokens');
-- Only the owner sees the tokens of all tenants, and only in functions that set jig.sweep.
create policy sweep on used_tokens to current_role using (current_setting('jig.sweep', true) = 'on');

-- Deletes up to max_rows tokens, of all tenants, that expired more than age ago. Returns how many it deleted.
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
revoke all on function jig_forget_tokens(interval, integer) from public;

-- What the server issues, with the SHA-256 of each text. Workers have no rights on it. The last two groups of columns are empty for kinds that do not need them.
create table credentials (
    tenant_id      text not null check (tenant_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    credential_id  text not null check (credential_id ~ '^[a-z2-7]{16}$'),
    kind           text not null check (kind in ('api_key', 'login', 'dev_login', 'embed_token')),
    hash           bytea not null check (octet_length(hash) = 32),
    name           text not null, -- what a key is for, or the name of the person who logged in
    principal      text not null check ((principal = '') = (kind = 'login')), -- that of a login follows from the tenant's document
    scopes         text[] not null check (scopes <@ array['read', 'run', 'decide', 'author', 'operate', 'manage'] and (cardinality(scopes) > 0 or kind in ('login', 'dev_login'))),
    created_at     timestamptz not null default clock_timestamp(),
    expires_at     timestamptz check (expires_at is not null or kind = 'api_key'), -- null: never
    revoked_at     timestamptz,
    used_at        timestamptz, -- to the minute
    created_by     text not null, -- '': the operator
    revoked_by     text not null default '',
    maker          text not null, -- '': the principal itself
    made_with_kind text not null check (made_with_kind in ('', 'api_key', 'access_token', 'login', 'dev_login') and (made_with_kind <> '' or kind <> 'embed_token')), -- '': the command line of the operator
    made_with_id   text not null check ((made_with_id = '') = (made_with_kind = '')),
    persons        text[] not null, -- the principals of the credential whom the tenant's document listed

    issuer         text not null check (issuer <> '' or kind <> 'login'), -- the identity provider that named the person, of a login or of an embed token that a login made
    subject        text not null check ((subject = '') = (issuer = '')),
    groups         text[] not null,
    attempt        bytea check ((attempt is null) = (kind not in ('login', 'dev_login')) and octet_length(attempt) = 32), -- identifies the attempt of which a login came

    session_id     text not null, -- '': an embed token is for a tool
    tool           text not null,
    origin         text not null check ((origin = '') = (kind <> 'embed_token')),

    primary key (tenant_id, credential_id),
    check ((session_id <> '')::int + (tool <> '')::int = (kind = 'embed_token')::int),
    check (kind <> 'embed_token' or expires_at <= created_at + interval '16 minutes')
);
create unique index credentials_id on credentials (credential_id);
create unique index credentials_attempt on credentials (attempt);
create index credentials_in_order on credentials (tenant_id, kind, created_at, credential_id);
select jig_isolate('credentials');
-- The tenant follows from the credential, so credentials are looked up without one. Only functions of the owner that set jig.sweep may do that.
create policy sweep on credentials to current_role using (current_setting('jig.sweep', true) = 'on');

create trigger keep_revoked before update on credentials for each row
when (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at) execute function jig_keep_revoked();

-- Follows each credential to the one that made it, and so on. valid reports that none of them was revoked, has expired or is missing; a login also ends
-- when it was not used for the time idle, unless that is null. Access tokens are not stored, but what they make expires no later than they do. A key does not end with the login
-- that made it: that stands for a person, whom the caller looks up. lineage has the API keys, the latest first. Only functions that set jig.sweep can use this.
create function jig_lineage(ids text[], idle interval) returns table (credential_id text, valid boolean, lineage jsonb)
language sql stable
set search_path from current
as $$
    with recursive line as (
        select c.credential_id as leaf, 1 as depth, c.tenant_id, c.credential_id, c.kind, c.made_with_kind, c.made_with_id
        from credentials c where c.credential_id = any(ids)
        union all
        select l.leaf, l.depth + 1, m.tenant_id, m.credential_id, m.kind, m.made_with_kind, m.made_with_id
        from line l left join credentials m on m.tenant_id = l.tenant_id and m.credential_id = l.made_with_id and m.kind = l.made_with_kind
        where l.made_with_kind = 'api_key' or l.kind = 'embed_token' and l.made_with_kind <> 'access_token'
    ) cycle credential_id set again using passed
    select l.leaf,
        bool_and(c.credential_id is not null and c.revoked_at is null and (c.expires_at is null or c.expires_at > now())
            and (idle is null or c.kind not in ('login', 'dev_login') or coalesce(c.used_at, c.created_at) > now() - idle)),
        jsonb_agg(jsonb_build_object('id', c.credential_id, 'principal', c.principal, 'maker', c.maker, 'created_by', c.created_by, 'persons', c.persons) order by l.depth)
            filter (where c.kind = 'api_key')
    from line l left join credentials c on c.tenant_id = l.tenant_id and c.credential_id = l.credential_id
    group by l.leaf
$$;

-- Returns the lineage of a tenant's API key.
create function jig_key_lineage(tenant text, id text) returns table (valid boolean, lineage jsonb)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select l.valid, l.lineage from credentials c join jig_lineage(array[id], null) l on l.credential_id = c.credential_id
    where c.tenant_id = tenant and c.credential_id = id and c.kind = 'api_key';
    perform set_config('jig.sweep', '', true);
end $$;

-- Returns the credential with an id and a hash, if it is valid now, and notes that it was used.
create function jig_credential(id text, secret bytea, idle interval) returns table (found credentials, lineage jsonb)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query
        with one as materialized (
            select c as found, l.lineage from credentials c join jig_lineage(array[id], idle) l on l.credential_id = c.credential_id
            where c.credential_id = id and c.hash = secret and l.valid
        ), used as (
            update credentials c set used_at = now() from one o
            where c.tenant_id = (o.found).tenant_id and c.credential_id = (o.found).credential_id and (c.used_at is null or c.used_at < now() - interval '1 minute')
        )
        select o.found, o.lineage from one o;
    perform set_config('jig.sweep', '', true);
end $$;

-- Returns those of the given credentials that are valid now.
create function jig_credentials_valid(ids text[], idle interval) returns setof text
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select l.credential_id from jig_lineage(ids, idle) l where l.valid;
    perform set_config('jig.sweep', '', true);
end $$;

-- Returns the credential with an id and a hash if it is not valid any more, with the reason. Without the secret, nobody finds it.
create function jig_ended_credential(id text, secret bytea, idle interval) returns table (found credentials, lineage jsonb, reason text)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query
        select c, l.lineage, case when c.revoked_at is null and (c.expires_at <= now() or c.kind in ('login', 'dev_login')) then 'expired' else 'revoked' end
        from credentials c join jig_lineage(array[id], idle) l on l.credential_id = c.credential_id
        where c.credential_id = id and c.hash = secret and not l.valid;
    perform set_config('jig.sweep', '', true);
end $$;

-- Deletes the credentials of the current tenant that nobody needs any more: embed tokens after a week, and logins a day after they ended, when not
-- even their attempts must be recognized. API keys are kept. The server has no right to delete others.
create function jig_forget_credentials(idle interval) returns void
language sql volatile security definer
set search_path from current
as $$
    delete from credentials c where c.tenant_id = nullif(current_setting('jig.tenant', true), '') and c.kind = 'embed_token' and c.created_at < now() - interval '7 days';
    delete from credentials c where c.tenant_id = nullif(current_setting('jig.tenant', true), '') and c.kind in ('login', 'dev_login')
        and least(c.expires_at, coalesce(c.used_at, c.created_at) + idle, c.revoked_at) < now() - interval '1 day'
$$;
revoke all on function jig_lineage(text[], interval), jig_key_lineage(text, text), jig_credential(text, bytea, interval), jig_credentials_valid(text[], interval),
    jig_ended_credential(text, bytea, interval), jig_forget_credentials(interval) from public;

-- One row for everything that is the same within a minute, so that repeating it does not fill the table.
create table credential_events (
    tenant_id       text not null check (tenant_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    id              bigint generated always as identity,
    kind            text not null check (kind in ('refused', 'logged_in', 'logged_out', 'key_created', 'key_revoked', 'key_taken_over', 'embed_created', 'embed_revoked')),
    reason          text not null check (kind = 'refused' or reason = ''),
    credential_kind text not null,
    credential_id   text not null,
    principal       text not null, -- '': the operator, or the row counts what had no row of its own
    address         text not null,
    minute          timestamptz not null,
    digest          bytea not null check (octet_length(digest) = 32), -- of the five columns before minute, and of source
    source          text not null, -- who pays for the credential, so that nobody fills the table with credentials of their own
    count           bigint not null default 1,
    last_at         timestamptz not null default clock_timestamp(),
    primary key (tenant_id, id)
);
create unique index credential_events_once on credential_events (tenant_id, kind, minute, digest);
create index credential_events_sources on credential_events (tenant_id, kind, minute, source);
create index credential_events_old on credential_events (tenant_id, minute);
select jig_isolate('credential_events');

-- Deletes the rows of the current tenant that are older than 90 days. The server has no right to delete others.
create function jig_forget_credential_events() returns void
language sql volatile security definer
set search_path from current
as $$
    delete from credential_events e where e.tenant_id = nullif(current_setting('jig.tenant', true), '') and e.minute < now() - interval '90 days'
$$;

revoke all on function jig_forget_credential_events() from public;

-- +goose StatementEnd
