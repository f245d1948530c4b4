-- +goose Up

-- The attempt that a question about an unknown outcome is about. An answer about another attempt does not count.
alter table approvals add column attempt integer not null default 0;
