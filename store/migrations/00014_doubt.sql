-- Calls whose effect may have happened although their last attempt did not succeed.

-- +goose Up
alter table calls add column in_doubt boolean not null default false; -- an attempt of a call that writes began and may have taken effect

-- +goose Down
alter table calls drop column in_doubt;
