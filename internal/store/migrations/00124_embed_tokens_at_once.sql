-- +goose Up

-- Returns those of the given tokens that are valid now, by the rules of jig_embed_token_counts. Servers ask twice a second for the tokens of all their
-- streams, and calling that function for each token is slow.
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

-- +goose Down
-- +goose StatementBegin
create or replace function jig_embed_tokens_valid(ids text[]) returns setof text
language plpgsql volatile security definer
set search_path from current
as $$
begin
    perform set_config('jig.sweep', 'on', true);
    return query select t.token_id from embed_tokens t where t.token_id = any(ids) and jig_embed_token_counts(t);
    perform set_config('jig.sweep', '', true);
end $$;
-- +goose StatementEnd
