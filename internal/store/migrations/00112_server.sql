-- What the server keeps for itself. Workers have no rights on these tables.

-- +goose Up

-- API keys, with the SHA-256 of each. A key acts as one principal of one tenant.
create table api_keys (
    tenant_id  text not null check (tenant_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    key_id     text not null check (key_id ~ '^[a-z2-7]{16}$'),
    name       text not null,
    principal  text not null check (principal <> ''),
    scopes     text[] not null check (cardinality(scopes) > 0 and scopes <@ array['read', 'run', 'decide']),
    hash       bytea not null check (octet_length(hash) = 32),
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz, -- null: never
    revoked_at timestamptz,
    used_at    timestamptz, -- to the minute
    primary key (tenant_id, key_id)
);
create unique index api_keys_id on api_keys (key_id);
select jig_isolate('api_keys');
-- The tenant follows from the key, so keys are looked up without one. Only functions of the owner that set jig.sweep may do that.
create policy sweep on api_keys to current_role using (current_setting('jig.sweep', true) = 'on');

-- Returns the key with an id and a hash, if it is valid now, and notes that it was used.
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

-- Returns those of the given keys that are valid now.
-- +goose StatementBegin
create function jig_api_keys_valid(ids text[]) returns setof text
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
revoke all on function jig_api_key(text, bytea), jig_api_keys_valid(text[]) from public;

-- +goose Down
drop function jig_api_keys_valid(text[]), jig_api_key(text, bytea);
drop table api_keys;
