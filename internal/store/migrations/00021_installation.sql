-- The installation's id, and the idempotency key of every call, which is scoped by it.

-- +goose Up
-- One row, made once. The workers read it and cannot change it.
create table installation (
    single     boolean primary key default true check (single),
    id         text not null check (id ~ '^[a-z0-9][a-z0-9_-]{0,39}$'),
    created_at timestamptz not null default now()
);
insert into installation (id) values ('ins_' || replace(gen_random_uuid()::text, '-', ''));

alter table calls add column idempotency_key text check (idempotency_key <> '' and octet_length(idempotency_key) <= 255);
-- Calls from before keep the key that their effects ran under.
alter table calls no force row level security;
update calls set idempotency_key = session_id || '/' || call_id;
alter table calls force row level security;
alter table calls alter column idempotency_key set not null;

-- +goose Down
alter table calls drop column idempotency_key;
drop table installation;
