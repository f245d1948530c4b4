package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/jig-run/jig"
)

// GrantServer gives the server's role its rights in a migrated database: it reads what tenants have, under row-level security, and writes
// only the tables that are its own.
func GrantServer(ctx context.Context, ownerURL, role string) error {
	config, db, err := openOwner(ctx, ownerURL)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return grantAs(ctx, db, config, role, func(to string) []string {
		return []string{
			"grant select on tenants, sessions, messages, turns, pass_ends, events, calls, approvals, decisions, artifacts, artifact_chunks, " +
				"documents, frames, grants, pauses, bundles, usage_records, rate_calls, entities, entity_tasks" + to,
			"grant select on installation, " + versionTable + to,
			"grant select, insert on credentials" + to,
			"grant update (hash, revoked_at, revoked_by, created_by, maker, made_with_kind, made_with_id, persons) on credentials" + to,
			"grant select, insert on credential_events" + to,
			"grant update (count, last_at) on credential_events" + to,
			"grant select, insert on server_keys" + to,
			"grant update (revoked_at) on server_keys" + to,
			"grant execute on function jig_last_seqs(text[], text[]), jig_key_lineage(text, text), jig_credential(text, bytea, interval), " +
				"jig_credentials_valid(text[], interval), jig_ended_credential(text, bytea, interval), jig_embed_origin(text), " +
				"jig_forget_credentials(interval), jig_forget_credential_events()" + to,
		}
	})
}

// unfit returns an error if a role cannot be one of jig's own.
func unfit(config *pgx.ConnConfig, role string, known bool) error {
	if !known {
		return jig.Errorf(jig.CodeNotFound, "there is no database role %q", role).
			WithHint("create it first: create role " + pgx.Identifier{role}.Sanitize() + " login")
	}
	if role == config.User {
		return jig.Errorf(jig.CodeInvalidInput, "the owner of the tables cannot be the application role").
			WithHint("use two roles: one in JIG_DATABASE_OWNER_URL, another in JIG_DATABASE_URL")
	}
	return nil
}
