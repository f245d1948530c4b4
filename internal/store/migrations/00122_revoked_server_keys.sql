-- +goose Up

-- The server's role revokes keys, and must not undo that: whoever steals a server's key often finds the database's password beside it.
-- +goose StatementBegin
create function jig_keep_revoked() returns trigger
language plpgsql
set search_path from current
as $$
begin
    raise exception 'a server''s key that was revoked stays revoked' using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
create trigger keep_revoked before update on server_keys for each row
when (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at) execute function jig_keep_revoked();

-- +goose Down
drop trigger keep_revoked on server_keys;
drop function jig_keep_revoked();
