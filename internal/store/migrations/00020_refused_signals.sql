-- How many signals of a session named no call of it. The first ones are recorded each, and those after them counted here.

-- +goose Up
alter table sessions add column refused_signals bigint not null default 0;

-- +goose Down
alter table sessions drop column refused_signals;
