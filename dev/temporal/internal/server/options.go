package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
)

// Options says where a server keeps its data and where it listens.
type Options struct {
	// DatabaseURL connects to any database of the PostgreSQL server, as a role that may create databases or owns the two
	// below. Required. TCP only.
	DatabaseURL string
	// Database holds workflows and queues. It is created if it does not exist. Default "temporal".
	Database string
	// VisibilityDatabase holds the data of workflow searches. It is created if it does not exist. Default "temporal_visibility".
	VisibilityDatabase string
	// Frontend, History, Matching and Worker are the addresses of the four services, host:port. Required; the ports must be
	// free.
	Frontend, History, Matching, Worker string
	// Shards is the number of history shards. It cannot be changed after the database has been created. Default 16.
	Shards int32
	// MaxConns limits the connections of each of the four services to each of the two databases. Default 8.
	MaxConns int
	// Namespace is the namespace to register, with its search attributes.
	Namespace Namespace
	// Settings holds dynamic configuration by Temporal's names. It overrides the settings of this package.
	Settings map[string]any
	// Log receives the warnings and errors of the server. Required.
	Log *slog.Logger
	// OnFatal is called with the reason if the server cannot continue after Start. It must not call Stop and wait. Required.
	OnFatal func(error)
}

// withDefaults returns the options with defaults for empty fields.
func (o Options) withDefaults() Options {
	o.Database = cmp.Or(o.Database, "temporal")
	o.VisibilityDatabase = cmp.Or(o.VisibilityDatabase, "temporal_visibility")
	o.Shards = cmp.Or(o.Shards, 16)
	o.MaxConns = cmp.Or(o.MaxConns, 8)
	return o
}

// database is a parsed DatabaseURL.
type database struct {
	user, password, addr string
	attributes           map[string]string
}

// parseDatabase splits a connection URL into the parts that Temporal's configuration needs.
func parseDatabase(raw string) (database, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of net/url would repeat the URL with its password.
		return database{}, errors.New("the database address for Temporal is not a URL like postgres://user:password@host:5432/name")
	}
	if u.Hostname() == "" || u.User.Username() == "" {
		return database{}, errors.New("the database address for Temporal needs a user and a TCP host: postgres://user:password@host:5432/name")
	}
	password, _ := u.User.Password()
	db := database{
		user: u.User.Username(), password: password, attributes: map[string]string{},
		addr: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "5432")),
	}
	for name, values := range u.Query() {
		if len(values) != 1 {
			return database{}, fmt.Errorf("the database address for Temporal gives %s %d times", name, len(values))
		}
		db.attributes[name] = values[0]
	}
	return db, nil
}
