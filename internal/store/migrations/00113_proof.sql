-- What proves who acts: the keys with which servers vouch for principals.

-- +goose Up

-- The keys of servers. Only the certificate counts, which the root key signs; workers have the public root key in their settings.
create table server_keys (
    key_id      text primary key check (key_id ~ '^srv_[0-9a-f]{32}$'),
    certificate text not null check (certificate <> ''),
    created_at  timestamptz not null default clock_timestamp(),
    revoked_at  timestamptz -- null: never
);

-- With which proof a standing approval was given; '' in rows from before there were levels of proof.
alter table grants add column proof text not null default '';

-- What an executing call asks of another session, as a hash, so that nobody else can ask something else in its name; '' if nothing.
alter table calls add column request text not null default '';

alter table sessions drop constraint sessions_source_check,
    add constraint sessions_source_check check (source in ('web', 'api', 'mcp', 'cli', 'schedule', 'agent', 'temporal'));

-- +goose Down
update sessions set source = 'api' where source = 'temporal';
alter table sessions drop constraint sessions_source_check,
    add constraint sessions_source_check check (source in ('web', 'api', 'mcp', 'cli', 'schedule', 'agent'));
alter table calls drop column request;
alter table grants drop column proof;
drop table server_keys;
