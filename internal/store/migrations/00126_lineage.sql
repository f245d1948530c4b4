-- Who made an API key, and with which credential: a key counts only as long as the keys in its lineage do. Also the scope operate.

-- +goose Up
alter table api_keys drop constraint api_keys_scopes_check,
    add constraint api_keys_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'run', 'decide', 'author', 'operate', 'manage']),
    add column maker text not null default '', -- '': the principal itself
    add column made_with_kind text not null default '', -- '': the command line of the operator
    add column made_with_id text not null default '',
    add column persons text[] not null default '{}'; -- the principals of the key whom the tenant's document listed
create index api_keys_made_with on api_keys (tenant_id, made_with_id) where made_with_id <> '';

-- Returns the lineage of each key: the key itself, the key that made it, and so on. stands reports that none of them was revoked or has expired.
-- Only functions that set jig.sweep can use it. Keys are never deleted, and a login or an access token stands for a person, whom the caller looks up.
create function jig_lineage(ids text[]) returns table (key_id text, stands boolean, links jsonb)
language sql stable
set search_path from current
as $$
    with recursive line as (
        select k.key_id as leaf, k.tenant_id, k.key_id, k.made_with_kind, k.made_with_id, 1 as depth,
            k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) as valid,
            jsonb_build_object('principal', k.principal, 'maker', k.maker, 'created_by', k.created_by, 'persons', k.persons) as link
        from api_keys k where k.key_id = any(ids)
        union all
        select l.leaf, k.tenant_id, k.key_id, k.made_with_kind, k.made_with_id, l.depth + 1,
            k.revoked_at is null and (k.expires_at is null or k.expires_at > now()),
            jsonb_build_object('principal', k.principal, 'maker', k.maker, 'created_by', k.created_by, 'persons', k.persons)
        from line l join api_keys k on l.made_with_kind = 'api_key' and k.tenant_id = l.tenant_id and k.key_id = l.made_with_id
    ) cycle key_id set again using passed
    select l.leaf, bool_and(l.valid), jsonb_agg(l.link order by l.depth) from line l group by l.leaf
$$;

-- Returns the lineage of a tenant's key.
-- +goose StatementBegin
create function jig_key_lineage(tenant text, id text) returns table (stands boolean, links jsonb)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select l.stands, l.links from api_keys k join jig_lineage(array[id]) l on l.key_id = k.key_id where k.tenant_id = tenant and k.key_id = id;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

drop function jig_api_key(text, bytea);

-- Returns the key with an id and a hash, if it is valid now, and notes that it was used.
-- +goose StatementBegin
create function jig_api_key(id text, secret bytea)
returns table (tenant_id text, key_id text, name text, principal text, scopes text[], created_at timestamptz, expires_at timestamptz, maker text, links jsonb)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    update api_keys k set used_at = now() from jig_lineage(array[id]) l
    where k.key_id = id and k.hash = secret and l.key_id = k.key_id and l.stands and (k.used_at is null or k.used_at < now() - interval '1 minute');
    return query select k.tenant_id, k.key_id, k.name, k.principal, k.scopes, k.created_at, k.expires_at, k.maker, l.links
    from api_keys k join jig_lineage(array[id]) l on l.key_id = k.key_id where k.key_id = id and k.hash = secret and l.stands;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- Returns those of the given keys that are valid now.
-- +goose StatementBegin
create or replace function jig_api_keys_valid(ids text[]) returns setof text
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select l.key_id from jig_lineage(ids) l where l.stands;
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- Reports whether a token is valid now: it ends with the credential that made it. Access tokens bound its expiry.
-- +goose StatementBegin
create or replace function jig_embed_token_counts(t embed_tokens) returns boolean
language sql stable
set search_path from current
as $$
    select t.revoked_at is null and t.expires_at > now() and case t.maker_kind
        when 'access_token' then true
        when 'api_key' then exists (
            select from api_keys k join jig_lineage(array[t.maker_id]) l on l.key_id = k.key_id where k.tenant_id = t.tenant_id and l.stands)
        else exists (
            select from logins l where l.tenant_id = t.tenant_id and l.login_id = t.maker_id and l.revoked_at is null and l.expires_at > now())
    end
$$;
-- +goose StatementEnd

-- Returns those of the given tokens that are valid now, by the rules of jig_embed_token_counts.
-- +goose StatementBegin
create or replace function jig_embed_tokens_valid(ids text[]) returns setof text
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query
        with line as materialized (
            select m.key_id from jig_lineage(array(select distinct t.maker_id from embed_tokens t where t.token_id = any(ids) and t.maker_kind = 'api_key')) m
            where m.stands
        )
        select t.token_id from embed_tokens t
        left join api_keys k on t.maker_kind = 'api_key' and k.tenant_id = t.tenant_id and k.key_id = t.maker_id and k.key_id in (select m.key_id from line m)
        left join logins l on t.maker_kind in ('login', 'dev_login') and l.tenant_id = t.tenant_id and l.login_id = t.maker_id
            and l.revoked_at is null and l.expires_at > now()
        where t.token_id = any(ids) and t.revoked_at is null and t.expires_at > now()
            and (t.maker_kind = 'access_token' or k.key_id is not null or l.login_id is not null);
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- Returns the credential with an id and a hash if it is not valid any more, with the reason. Without the secret, nobody finds it.
-- +goose StatementBegin
create or replace function jig_ended_credential(id text, secret bytea, idle interval)
returns table (tenant_id text, kind text, reason text, principal text, issuer text, subject text)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query
        select k.tenant_id, 'api_key', case when k.revoked_at is null and k.expires_at <= now() then 'expired' else 'revoked' end, k.principal, '', ''
        from api_keys k join jig_lineage(array[id]) l on l.key_id = k.key_id
        where k.key_id = id and k.hash = secret and not l.stands
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
revoke all on function jig_api_key(text, bytea), jig_key_lineage(text, text), jig_lineage(text[]) from public;

alter table credential_events drop constraint credential_events_kind_check,
    add constraint credential_events_kind_check
        check (kind in ('refused', 'logged_in', 'logged_out', 'key_created', 'key_revoked', 'key_taken_over', 'embed_created', 'embed_revoked'));

-- +goose Down
-- The functions as the migrations before left them.
-- +goose StatementBegin
create or replace function jig_api_keys_valid(ids text[]) returns setof text
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select k.key_id from api_keys k
    where k.key_id = any(ids) and k.revoked_at is null and (k.expires_at is null or k.expires_at > now());
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace function jig_embed_token_counts(t embed_tokens) returns boolean
language sql stable
set search_path from current
as $$
    select t.revoked_at is null and t.expires_at > now() and case t.maker_kind
        when 'access_token' then true
        when 'api_key' then exists (
            select from api_keys k where k.tenant_id = t.tenant_id and k.key_id = t.maker_id and k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))
        else exists (
            select from logins l where l.tenant_id = t.tenant_id and l.login_id = t.maker_id and l.revoked_at is null and l.expires_at > now())
    end
$$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace function jig_embed_tokens_valid(ids text[]) returns setof text
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query
        select t.token_id from embed_tokens t
        left join api_keys k on t.maker_kind = 'api_key' and k.tenant_id = t.tenant_id and k.key_id = t.maker_id
            and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
        left join logins l on t.maker_kind in ('login', 'dev_login') and l.tenant_id = t.tenant_id and l.login_id = t.maker_id
            and l.revoked_at is null and l.expires_at > now()
        where t.token_id = any(ids) and t.revoked_at is null and t.expires_at > now()
            and (t.maker_kind = 'access_token' or k.key_id is not null or l.login_id is not null);
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace function jig_ended_credential(id text, secret bytea, idle interval)
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
drop function jig_api_key(text, bytea);
-- +goose StatementBegin
create function jig_api_key(id text, secret bytea)
returns table (tenant_id text, key_id text, name text, principal text, scopes text[], created_at timestamptz, expires_at timestamptz)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    update api_keys k set used_at = now()
    where k.key_id = id and k.hash = secret and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
        and (k.used_at is null or k.used_at < now() - interval '1 minute');
    return query select k.tenant_id, k.key_id, k.name, k.principal, k.scopes, k.created_at, k.expires_at from api_keys k
    where k.key_id = id and k.hash = secret and k.revoked_at is null and (k.expires_at is null or k.expires_at > now());
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd
revoke all on function jig_api_key(text, bytea) from public;
alter table credential_events drop constraint credential_events_kind_check;
delete from credential_events where kind = 'key_taken_over';
alter table credential_events add constraint credential_events_kind_check
    check (kind in ('refused', 'logged_in', 'logged_out', 'key_created', 'key_revoked', 'embed_created', 'embed_revoked'));
drop function jig_key_lineage(text, text), jig_lineage(text[]);
delete from api_keys where scopes = array['operate'];
update api_keys set scopes = array_remove(scopes, 'operate');
alter table api_keys drop column persons, drop column made_with_id, drop column made_with_kind, drop column maker, drop constraint api_keys_scopes_check,
    add constraint api_keys_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'run', 'decide', 'author', 'manage']);
