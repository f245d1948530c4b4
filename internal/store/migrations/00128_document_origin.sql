-- +goose Up

-- Whether the text of a version may be an outsider's: a call registered it whose arguments could not be traced. It stays so when the same version is
-- registered or restored again. null: nobody has registered the version, it was only run.
alter table documents add column untrusted boolean;
update documents set untrusted = false;

-- +goose Down
alter table documents drop column untrusted;
