-- Who sends messages and events to a session, and what a session waits for.

-- +goose Up

alter table messages add column sender text not null default ''; -- the session whose call sent it; empty for people and programs

-- +goose Down
alter table messages drop column sender;
