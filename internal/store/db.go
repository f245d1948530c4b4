package store

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/livetext"
)

// Options are the settings of a DB.
type Options struct {
	// MaxConns is the maximum number of connections in use at once, not counting the one for listening. Default: 4 per CPU, at least
	// 8.
	MaxConns int
	// NotifyEvery is the shortest time between two notifications sent by this process. Default: 10 ms.
	NotifyEvery time.Duration
	// AskEvery is the shortest time between two questions whether another process listens, while none does. Default: 250 ms.
	AskEvery time.Duration
	// ListenIdle is how long this process listens after the last watcher has left. Default: 30 s.
	ListenIdle time.Duration
	// PollEvery is how often watched sessions are polled in case a notification was lost. Default: 1 s.
	PollEvery time.Duration
	// TextEvery is the shortest time between two notifications with texts that models are writing. Default: 50 ms.
	TextEvery time.Duration
	// Installation overrides the installation id stored in the database, so that a copy of a database gets its own. "" keeps the
	// stored id.
	Installation string
	// Setting is the name of the setting that the URL comes from, for errors. Default: JIG_DATABASE_URL.
	Setting string
	// Observer is told what this process stores. The default is nobody.
	Observer Observer
	// Logger receives a line for each call that ends, and failures that cannot be returned to a caller (listening, notifying). Default:
	// slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MaxConns <= 0 {
		o.MaxConns = max(8, 4*runtime.NumCPU())
	}
	if o.NotifyEvery <= 0 {
		o.NotifyEvery = 10 * time.Millisecond
	}
	if o.AskEvery <= 0 {
		o.AskEvery = 250 * time.Millisecond
	}
	if o.ListenIdle <= 0 {
		o.ListenIdle = 30 * time.Second
	}
	if o.PollEvery <= 0 {
		o.PollEvery = time.Second
	}
	if o.TextEvery <= 0 {
		o.TextEvery = 50 * time.Millisecond
	}
	o.Setting = cmp.Or(o.Setting, settingURL)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Settings that URLs come from.
const (
	settingURL   = "JIG_DATABASE_URL"
	settingOwner = "JIG_DATABASE_OWNER_URL"
)

// DB is an open store. It is safe for concurrent use.
type DB struct {
	pool    *pgxpool.Pool
	queries queries
	options Options
	hub     *hub
	turns   *turns
	// gatherer, reads and finishes combine what is asked about the calls of one session at the same time.
	gatherer combiner[gathered, struct{}]
	reads    combiner[[]string, callsRead]
	finishes combiner[[]*ledger.QuickCompletion, quickFinished]
	// installation scopes the idempotency keys of the calls that this DB admits.
	installation string
	// seal encrypts the texts that models are writing on their way to other processes.
	seal *livetext.Seal
	// cursors seals the positions at which pages end.
	cursors cursors
}

// Open connects to url as the application role. It refuses a role that could see other tenants' rows, and a schema version that this
// program was not built for. ctx limits only the opening.
func Open(ctx context.Context, url string, options Options) (*DB, error) {
	options = options.withDefaults()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, badURL(options.Setting)
	}
	list, err := loadQueries()
	if err != nil {
		return nil, err
	}
	config.AfterConnect = inUTC
	config.MaxConns = int32(options.MaxConns) //nolint:gosec // the number of connections is small
	tune(config.ConnConfig)
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		registerTypes(conn.TypeMap())
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, unavailable(config.ConnConfig, options.Setting, err)
	}
	db := &DB{pool: pool, queries: list, options: options, turns: newTurns(options.MaxConns)}
	if err := db.check(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	if err := db.identify(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	db.hub = newHub(ctx, db)
	return db, nil
}

// tune sets the parameters of every connection. Plans are generic and made once, because almost every statement finds its rows by key; those
// with optional filters are marked with [customPlan]. A report uses one core at most. Timeouts keep a lost client from holding locks.
func tune(config *pgx.ConnConfig) {
	for name, value := range map[string]string{
		"application_name":                    "jig",
		"plan_cache_mode":                     "force_generic_plan",
		"max_parallel_workers_per_gather":     "0",
		"jit":                                 "off",
		"lock_timeout":                        milliseconds(10 * time.Second),
		"statement_timeout":                   milliseconds(30 * time.Second),
		"idle_in_transaction_session_timeout": milliseconds(30 * time.Second),
	} {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
}

// inUTC makes a connection return times in UTC.
func inUTC(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
	return nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Close stops listening, sends the notifications that are still queued and closes the connections. Subscriptions end, and
// [DB.WaitEvents] returns no events. Closing twice is safe.
func (db *DB) Close() {
	db.hub.close()
	db.pool.Close()
}

// Ping returns an error unless the database answers.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.pool.Ping(ctx); err != nil {
		return db.translate(err)
	}
	return nil
}

// Ready returns an error unless the database answers and has the role and the schema version that [Open] demands.
func (db *DB) Ready(ctx context.Context) error { return db.check(ctx) }

// Installation returns the id of this jig installation: the one in [Options], or else the one that the database got from its first
// migration.
func (db *DB) Installation() string { return db.installation }

// identify sets the installation id and the key of texts.
func (db *DB) identify(ctx context.Context) error {
	var key []byte
	if err := db.pool.QueryRow(ctx, db.queries["Installation"]).Scan(&db.installation, &key); err != nil {
		return db.translate(err)
	}
	var err error
	if db.seal, err = livetext.NewSeal(key); err != nil {
		return err
	}
	if db.cursors, err = newCursors(key); err != nil {
		return err
	}
	if db.options.Installation != "" {
		db.installation = db.options.Installation
		return jig.CheckInstallation(db.installation)
	}
	return nil
}

// roleCheck is the row of the query RoleCheck.
type roleCheck struct {
	Name     string
	Super    bool
	Bypass   bool
	Migrated bool
	Owner    bool
	Granted  bool
	// Temporary and Creates report whether the role may create temporary tables, or objects in a schema of its search path.
	Temporary, Creates bool
}

// check refuses a role that is not bound by row-level security, and a schema of another version.
func (db *DB) check(ctx context.Context) error {
	rows, err := db.pool.Query(ctx, db.queries["RoleCheck"])
	if err != nil {
		return db.translate(err)
	}
	role, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[roleCheck])
	if err != nil {
		return db.translate(err)
	}
	hint := "set " + db.options.Setting + " to a role that is neither superuser nor owner of the tables and lacks BYPASSRLS; " +
		settingOwner + " is for `jig migrate`"
	refuse := func(what string) error {
		return jig.Errorf(jig.CodeNotPermitted, "the database role %q %s, so tenants would not be separated", role.Name, what).
			WithField(db.options.Setting).WithHint(hint)
	}
	switch {
	case role.Super:
		return refuse("is a superuser")
	case role.Bypass:
		return refuse("has BYPASSRLS")
	case !role.Migrated:
		return jig.Errorf(jig.CodeUnavailable, "the database does not have jig's schema yet").WithHint("run `jig migrate`")
	case role.Owner:
		return refuse("owns the tables")
	case !role.Granted:
		return jig.Errorf(jig.CodeNotPermitted, "the database role %q has no rights on the schema", role.Name).
			WithField(db.options.Setting).WithHint("run `jig migrate` with " + db.options.Setting + " set, so that it knows the role")
	case role.Temporary:
		return jig.Errorf(jig.CodeNotPermitted, "the database role %q may create temporary tables, which jig never needs", role.Name).
			WithHint("as the owner of the database: revoke temporary on database NAME from public")
	case role.Creates:
		return jig.Errorf(jig.CodeNotPermitted, "the database role %q may create tables and functions in a schema that jig uses", role.Name).
			WithHint("as the owner of the schema: revoke create on schema public from public")
	}
	return db.checkVersion(ctx)
}

func (db *DB) checkVersion(ctx context.Context) error {
	var lowest, have int64
	if err := db.pool.QueryRow(ctx, db.queries["SchemaVersions"]).Scan(&lowest, &have); err != nil {
		return db.translate(err)
	}
	if err := refuseOutdated(lowest); err != nil {
		return err
	}
	_, want, err := schemaVersions()
	switch {
	case err != nil:
		return err
	case have < want:
		return jig.Errorf(jig.CodeUnavailable, "the database's schema has version %d, this program needs %d", have, want).
			WithHint("run `jig migrate`")
	case have > want:
		return jig.Errorf(jig.CodeUnavailable, "the database's schema has version %d, this program knows %d", have, want).
			WithHint("run the newer program, or `jig migrate` of this version against another database")
	}
	return nil
}
