-- API keys that people make over HTTP: the scope manage, and who made and revoked a key. Both are empty for the command line.

-- +goose Up
alter table api_keys drop constraint api_keys_scopes_check,
    add constraint api_keys_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'run', 'decide', 'manage']),
    add column created_by text not null default '',
    add column revoked_by text not null default '';

-- +goose Down
delete from api_keys where 'manage' = any(scopes);
alter table api_keys drop column revoked_by, drop column created_by, drop constraint api_keys_scopes_check,
    add constraint api_keys_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'run', 'decide']);
