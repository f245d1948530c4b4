-- +goose Up
-- What the contract of the tool meant when the grant was given; a grant without it covers nothing.
alter table grants add column meaning text not null default '';

-- +goose Down
alter table grants drop column meaning;
