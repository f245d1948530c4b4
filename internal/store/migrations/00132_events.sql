-- Who sends messages and events to a session, and what a session waits for.

-- +goose Up

alter table messages add column sender text not null default ''; -- the session whose call sent it; empty for people and programs

alter table received
    add column claimed boolean not null default false, -- nobody proved who sent it
    add column size bigint not null default 0 check (size >= 0); -- the bytes of this event and of all before it

alter table frames add column waits json; -- the steps that wait for events or times

-- +goose Down
alter table frames drop column waits;
alter table received drop column size, drop column claimed;
alter table messages drop column sender;
