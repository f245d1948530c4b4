package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
)

// Options say where a server keeps its data and where it listens.
type Options struct {
	// DatabaseURL connects to any database of the PostgreSQL server, as a role that may create databases or owns the two
	// below. Required. TCP only.
	DatabaseURL string
	// Database holds workflows and queues; created when it is missing. Default "temporal".
	Database string
	// VisibilityDatabase holds what can be searched; created when it is missing. Default "temporal_visibility".
	VisibilityDatabase string
	// Frontend, History, Matching and Worker are the addresses of the four services, host:port. Required; the ports must be
	// free.
	Frontend, History, Matching, Worker string
	// Shards of history; fixed when the database is made. Default 16.
	Shards int32
	// MaxConns is the largest number of connections of each of the four services to each of the two databases. Default 8.
	MaxConns int
	// Settings are dynamic configuration, by Temporal's names, and win over ours.
	Settings map[string]any
	// Log gets warnings and errors of the server. Required.
	Log *slog.Logger
	// OnFatal is told why the server cannot go on, should that happen after Start. It must not call Stop and wait. Required.
	OnFatal func(error)
}

// withDefaults fills in what was left empty.
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

// parseDatabase takes a connection URL apart the way Temporal wants it.
func parseDatabase(raw string) (database, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of net/url repeats the URL, with its password.
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
