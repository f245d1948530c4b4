-- The scope author of API keys, which allows changing documents. Keys that could do so with run keep that.

-- +goose Up
alter table api_keys drop constraint api_keys_scopes_check,
    add constraint api_keys_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'run', 'decide', 'author', 'manage']);
update api_keys set scopes = array_append(scopes, 'author') where 'run' = any(scopes);

-- +goose Down
delete from api_keys where scopes = array['author'];
update api_keys set scopes = array_remove(scopes, 'author');
alter table api_keys drop constraint api_keys_scopes_check,
    add constraint api_keys_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'run', 'decide', 'manage']);
