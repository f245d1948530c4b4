-- Calls whose effect may have happened although their last attempt did not succeed.

-- +goose Up
alter table calls add column in_doubt boolean not null default false; -- an attempt began that may have taken effect, or may have begun since the backup that the database was restored from

-- +goose Down
alter table calls drop column in_doubt;
