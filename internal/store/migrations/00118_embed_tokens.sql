-- Tokens for pages of other sites, each for one session or one tool and one origin. Workers have no rights on them.

-- +goose Up
create table embed_tokens (
    tenant_id  text not null check (tenant_id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    token_id   text not null check (token_id ~ '^[a-z2-7]{16}$'),
    hash       bytea not null check (octet_length(hash) = 32), -- of the token
    session_id text not null, -- '': the token is for a tool
    tool       text not null,
    origin     text not null check (origin <> ''),
    principal  text not null check (principal <> ''),
    maker_kind text not null check (maker_kind in ('api_key', 'access_token', 'login', 'dev_login')),
    maker_id   text not null check (maker_id <> ''),
    issuer     text not null, -- '': the identity provider says nothing about the principal
    subject    text not null,
    groups     text[] not null,
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null,
    revoked_at timestamptz,
    revoked_by text not null default '',
    primary key (tenant_id, token_id),
    check ((session_id = '') <> (tool = '')),
    check (expires_at <= created_at + interval '16 minutes')
);
create unique index embed_tokens_id on embed_tokens (token_id);
create index embed_tokens_origin on embed_tokens (origin, expires_at);
select jig_isolate('embed_tokens');
-- As for API keys, the tenant follows from the token.
create policy sweep on embed_tokens to current_role using (current_setting('jig.sweep', true) = 'on');

-- Reports whether a token is valid now: it ends with the credential that made it. Access tokens bound its expiry.
-- +goose StatementBegin
create function jig_embed_token_counts(t embed_tokens) returns boolean
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

-- Returns the token with an id and a hash, if it is valid now.
-- +goose StatementBegin
create function jig_embed_token(id text, secret bytea) returns setof embed_tokens
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select t.* from embed_tokens t where t.token_id = id and t.hash = secret and jig_embed_token_counts(t);
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- Returns those of the given tokens that are valid now.
-- +goose StatementBegin
create function jig_embed_tokens_valid(ids text[]) returns setof text
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select t.token_id from embed_tokens t where t.token_id = any(ids) and jig_embed_token_counts(t);
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd

-- Reports whether there is a valid token for the pages of an origin.
-- +goose StatementBegin
create function jig_embed_origin(page text) returns boolean
language plpgsql volatile security definer
set search_path from current
as $$
declare
    known boolean;
begin
    perform set_config('jig.sweep', 'on', true);
    select exists (select from embed_tokens t where t.origin = page and t.expires_at > now() and jig_embed_token_counts(t)) into known;
    perform set_config('jig.sweep', '', true);
    return known;
end $$;
-- +goose StatementEnd
revoke all on function jig_embed_token_counts(embed_tokens), jig_embed_token(text, bytea), jig_embed_tokens_valid(text[]), jig_embed_origin(text) from public;

-- +goose Down
drop function jig_embed_origin(text), jig_embed_tokens_valid(text[]), jig_embed_token(text, bytea), jig_embed_token_counts(embed_tokens);
drop table embed_tokens;
